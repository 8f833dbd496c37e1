//! The `ebb` command as its users meet it: the real binary, in processes of its own.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod crash;
mod ebb;
mod errors;
mod first_run;
mod operate;
mod secrets;
mod serve;
mod test;
mod versions;
mod workers;
