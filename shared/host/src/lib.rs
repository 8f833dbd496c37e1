//! What every function shares: configuration, serving, logs, push requests and their answers.

mod app;
mod body;
pub mod config;
mod connections;
mod health;
mod limit;
mod login;
pub mod metrics;
mod observe;
mod operations;
pub mod outgoing;
mod problem;
mod push;
mod reply;
pub mod secrets;
mod serve;
pub mod storage;
pub mod telemetry;
mod traces;

pub use app::{App, Connected};
pub use body::read_body;
pub use bus::envelope;
pub use config::Config;
pub use health::health;
pub use limit::in_time;
pub use observe::{note_run, observed};
pub use operations::Operations;
pub use outgoing::Outgoing;
pub use problem::Problem;
pub use push::{AnyPush, MAX_PUSH_BYTES, Push, keep_undelivered};
pub use reply::{Reply, Verdict};
pub use secrets::Secrets;
pub use serve::{GRACE, Serving, Stop, Stopping, main, serve, until_asked_to_stop};
pub use telemetry::init as init_telemetry;
