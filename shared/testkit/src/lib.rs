//! What tests share: a Postgres of their own, a clock they move, definitions in short notation.

mod clock;
mod database;
mod workflow;

pub use clock::ManualClock;
pub use database::{Database, database};
pub use workflow::workflow;
