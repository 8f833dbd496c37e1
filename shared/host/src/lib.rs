//! Shared by all functions: configuration, the server, telemetry, push requests and their responses, secrets and egress.

mod allocator;
mod app;
mod body;
pub mod config;
mod database_login;
pub mod egress;
mod file_problems;
mod health;
mod listener;
mod log_filter;
pub mod metrics;
mod observe;
mod operations;
mod problem;
mod push;
mod query;
mod reply;
mod request_timeout;
pub mod secrets;
mod serve;
mod starting;
pub mod storage;
pub mod telemetry;
mod traces;

pub use allocator::limit_arenas;
pub use app::{App, Connected};
pub use body::read_body;
pub use bus::{WakeUps, envelope, wake_up};
pub use config::Config;
pub use egress::EgressPolicy;
pub use file_problems::FileProblems;
pub use health::health;
pub use listener::MAX_CONNECTIONS;
pub use log_filter::follow_log_filter;
pub use observe::{label_run, observe_request};
pub use operations::Operations;
pub use problem::Problem;
pub use push::{AnyPush, MAX_PUSH_BYTES, Push, receive_dead_letter};
pub use query::{check_no_query, check_query, did_you_mean, unknown_parameter};
pub use reply::{Reply, Verdict};
pub use request_timeout::{RequestDeadline, request_timeout};
pub use secrets::{Secrets, TenantSecrets};
pub use serve::{
    DEFAULT_GRACE_PERIOD, OnShutdown, Serving, ShutdownNotice, ShutdownSignal, main, serve, shutdown_signal,
};
pub use telemetry::init as init_telemetry;
