//! Carries out one attempt at a task and reports.

mod attempt;
mod callback;
pub mod job;
pub mod kinds;
pub mod log;
mod process;
mod secrets;
mod worker;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRef, State};
use axum::routing::post;
use model::Message;
use service::{App, Push, Reply, Verdict, health};

pub use attempt::Executor;
pub use job::{Context, Job};
pub use kinds::{Kinds, TaskKind};
pub use log::{Level, Log, LogSink, Stream};
pub use secrets::Secrets;
pub use worker::Worker;

#[derive(Clone)]
struct Shared {
    app: App,
    executor: Arc<Executor>,
}

impl FromRef<Shared> for App {
    fn from_ref(shared: &Shared) -> App {
        shared.app.clone()
    }
}

/// `POST /push`: an attempt or a callback to carry out. Scripts are found from the working directory.
pub fn router(app: App) -> Router {
    let worker = Worker::new(app.runtime.clone());
    let executor = Executor::new(app.runtime.clone(), worker, ".");
    router_with(app, executor)
}

/// The same with an executor of one's own making.
pub fn router_with(app: App, executor: Executor) -> Router {
    let shared = Shared { app: app.clone(), executor: Arc::new(executor) };
    Router::new().route("/push", post(push)).with_state(shared).merge(health(app))
}

async fn push(State(shared): State<Shared>, Push(delivery): Push) -> Reply {
    let outcome = match &delivery.message {
        Message::TaskDispatched(work) => shared.executor.carry_out(work).await,
        Message::CallbackDue(due) => shared.executor.call_back(due).await,
        other => Ok(Verdict::Hopeless(format!("execute takes no `{}`", other.kind()))),
    };
    shared.app.reply(&delivery, outcome).await
}
