//! The system as a whole, on real parts: Postgres, signed pushes, real processes.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod callbacks;
mod claims;
mod combining;
mod examples;
mod fans;
mod following;
mod letters;
mod operators;
mod others;
mod overload;
mod places;
mod processes;
mod pushes;
mod repairs;
mod restore;
mod retention;
mod rows;
mod schedules;
mod timers;
mod triggers;
mod unusable;
mod workers;
mod world;
