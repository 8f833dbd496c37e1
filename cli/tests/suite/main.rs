//! The `ebb` command as its users meet it: the real binary, in processes of its own.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod apart;
mod browser;
mod care;
mod crash;
mod ebb;
mod errors;
mod first_run;
mod identity;
mod leaks;
mod lists;
mod load;
mod operate;
mod schedules;
mod secrets;
mod serve;
mod signals;
mod test;
mod triggers;
mod versions;
mod workers;
