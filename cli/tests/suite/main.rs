//! The `ebb` command as people use it: the real binary, in processes of its own.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod apart;
mod bad_input;
mod browser;
mod containment;
mod crash;
mod errors;
mod first_run;
mod identity;
mod leaks;
mod lists;
mod operate;
mod project;
mod repairs;
mod schedules;
mod secrets;
mod serve;
mod telemetry;
mod test;
mod triggers;
mod versions;
mod workers;
