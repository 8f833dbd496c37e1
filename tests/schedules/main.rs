//! Schedules and backfills under virtual time: years pass in seconds.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod backfill;
mod drift;
mod firing;
mod overlap;
mod punctual;
mod quota;
mod rerun;
mod tenants;
mod two_years;
mod world;
