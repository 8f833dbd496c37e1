//! What tests share: a Postgres of their own, Google's emulator where there is one, a clock they move, definitions in
//! short notation.

mod clock;
mod database;
mod workflow;

pub use clock::ManualClock;
pub use database::{Database, database};
pub use embedded::Emulator;
pub use workflow::workflow;
