//! The contract of the API: each endpoint's response, and each way to be refused.

#![expect(clippy::unwrap_used, reason = "what a test sets up must be there")]

mod access;
mod approvals;
mod breakers;
mod contract;
mod dead_letters;
mod doctor;
mod execution;
mod explain;
mod explain_runs;
mod fans;
mod growth;
mod hostile;
mod large_outputs;
mod leases;
mod limits;
mod listing;
mod live;
mod log_filters;
mod logs;
mod mutations;
mod operate;
mod other_runs;
mod parameters;
mod pausing;
mod properties;
mod refusals;
mod runs;
mod schedules;
mod sizes;
mod task_types;
mod tasks;
mod tenants;
mod timers;
mod triggers;
mod versions;
mod workers;
mod workflows;
mod world;
