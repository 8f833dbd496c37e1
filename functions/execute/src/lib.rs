//! Runs one attempt at a task and reports.

mod attempt;
mod callback;
pub mod job;
pub mod log;
pub mod performers;
mod process;
mod sensors;
mod worker;

use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRef, State};
use axum::routing::post;
use host::{App, Config, Push, Reply, Serving, Verdict, health};
use model::Message;

pub use attempt::Executor;
pub use job::{Context, Job};
pub use log::{Level, Log, LogSink, Stream};
pub use performers::{Performer, Performers};
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

/// `POST /push`: an attempt or a callback to run. Script paths are relative to the working directory.
pub fn router(app: App) -> Router {
    let worker = Worker::new(app.runtime.clone());
    let executor = Executor::new(app.runtime.clone(), worker, ".");
    router_with(app, executor)
}

/// The same as a process: asked to stop, it lets attempts finish or permits them back, and it ends with its worker.
pub fn serving(app: App, config: &Config) -> Serving {
    let worker = Worker::of_queue(config.queue.clone(), app.runtime.clone());
    let executor = Executor::new(app.runtime.clone(), worker.clone(), ".");
    let executor = executor
        .with_outgoing(config.outgoing.clone())
        .with_secrets(config.secrets.clone())
        .with_storage(config.storage_endpoint.clone());
    let ending = worker.clone();
    Serving {
        router: router_with(app, executor),
        ended: Box::pin(async move { ending.ended().await }),
        let_go: Box::new(move |grace| {
            Box::pin(async move { worker.stop("the worker's process was asked to stop", grace).await })
        }),
    }
}

/// The same with another executor.
pub fn router_with(app: App, executor: impl Into<Arc<Executor>>) -> Router {
    let shared = Shared { app: app.clone(), executor: executor.into() };
    Router::new().route("/push", post(push)).with_state(shared).merge(health(app))
}

async fn push(State(shared): State<Shared>, Push(delivery): Push) -> Reply {
    if let Some(why) = shared.executor.worker().closing() {
        // Another worker must run it.
        return Reply::Retry(why.to_owned());
    }
    let outcome = match &delivery.message {
        Message::TaskDispatched(work) => shared.executor.carry_out(work).await,
        Message::CallbackDue(due) => shared.executor.call_back(due).await,
        Message::PollDue(due) => shared.executor.poll(due).await,
        other => Ok(Verdict::Hopeless(format!("execute takes no `{}`", other.kind()))),
    };
    shared.app.reply(&delivery, outcome).await
}

/// The function as a service: reads its configuration and serves until it is asked to stop.
pub fn main() -> ExitCode {
    host::main("execute", |config, connected| async move { Ok(serving(connected.app, &config)) })
}
