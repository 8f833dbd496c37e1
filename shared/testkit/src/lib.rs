//! What tests share: a Postgres of their own, Google's emulator where it is installed, a clock they move, reserved ports,
//! deadlines, and definitions in short notation. With the feature `world`: a runtime over all of it.

mod alone;
mod clock;
mod cloud_sql;
mod cloud_tasks;
mod database;
mod fuzzing;
mod growth;
mod port;
mod skip;
mod storage;
mod tracing;
mod wait;
mod workflow;

#[cfg(feature = "world")]
mod definition;
#[cfg(feature = "world")]
mod fake_bus;
#[cfg(feature = "world")]
mod world;

pub use alone::{peak_memory, runs_alone};
pub use clock::ManualClock;
pub use cloud_sql::{CloudSqlServer, CloudSqlState};
pub use cloud_tasks::CloudTasksServer;
pub use database::{Database, database, migrated};
pub use embedded::Emulator;
pub use fuzzing::Fuzzing;
pub use growth::Threads;
pub use port::Port;
pub use skip::skip;
pub use storage::StorageServer;
pub use tracing::subscribe;
pub use wait::{DEADLINE, eventually, eventually_blocking, run_others, within_deadline};
pub use workflow::workflow;

#[cfg(feature = "world")]
pub use definition::{compile, definition, run_requested, start_run};
#[cfg(feature = "world")]
pub use fake_bus::{HangingBus, RecordingBus, SilentBus};
#[cfg(feature = "world")]
pub use world::{World, connect};
