//! The system as a whole, on real parts: Postgres, signed pushes, real processes.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod breakers;
mod callbacks;
mod child_runs;
mod claims;
mod cold_database;
mod database_roles;
mod dead_letters;
mod exact_wake_ups;
mod examples;
mod fan_out;
mod group_commit;
mod growth;
mod idle_connections;
mod inline_next;
mod killed_workers;
mod log_filters;
mod memory;
mod operators;
mod overload;
mod processes;
mod pushes;
mod repairs;
mod request_limits;
mod restore;
mod retention;
mod rows;
mod schedules;
mod slots;
mod tenant_secrets;
mod timers;
mod triggers;
mod unusable;
mod workers;
mod world;
