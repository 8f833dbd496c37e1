//! The `ebb` command as people use it: the real binary, in processes of its own.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod apart;
mod bad_input;
mod browser;
mod cloud;
mod containment;
mod crash;
mod definitions;
mod errors;
mod examples;
mod first_run;
mod identity;
mod leaks;
mod lists;
mod migrate;
mod operate;
mod project;
mod python_client;
mod python_packages;
mod remote;
mod repairs;
mod schedules;
mod secrets;
mod serve;
mod task;
mod telemetry;
mod test;
mod triggers;
mod versions;
mod workers;
