//! What tests share: a Postgres of their own, Google's emulator where there is one, a clock they move, ports, deadlines,
//! definitions in short notation.

mod clock;
mod database;
mod port;
mod storage;
mod wait;
mod workflow;

pub use clock::ManualClock;
pub use database::{Database, database, migrated};
pub use embedded::Emulator;
pub use port::Port;
pub use storage::StorageServer;
pub use wait::{DEADLINE, eventually, within_deadline};
pub use workflow::workflow;
