//! Runs attempts at tasks and reports their results; also sends callbacks and polls sensors.

mod attempt;
mod callback;
pub mod job;
mod limit;
pub mod log;
mod process;
mod reports;
mod runner;
mod sensors;
mod sink;
pub mod task_runners;
mod worker;

use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRef, State};
use axum::middleware::from_fn;
use axum::routing::post;
use containment::{ControlGroups, Controllers, Enforced};
use host::config::ContainmentConfig;
use host::{App, Config, Push, Reply, Serving, Verdict, check_no_query, health};
use model::Message;
use tracing::{info, warn};

pub use attempt::Executor;
pub use job::{Context, Job};
pub use log::{Level, Log, Stream};
pub use process::Containment;
pub use reports::Reports;
pub use runner::{Runner, StopSignals};
pub use sink::{AttemptSink, SinkError};
pub use task_runners::{Breakers, Exec, SharedBreakers, TaskRunner, TaskRunners, Unfinished};
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
    let runner = Runner::new(app.runtime.clock().clone(), ".");
    let executor = Executor::new(app.runtime.clone(), worker, runner);
    router_with(app, executor)
}

/// The router as a process: at shutdown it lets attempts finish or hands them back, and it ends with its worker.
pub fn serving(app: App, config: &Config) -> Serving {
    let worker = Worker::of_queue(config.queue.clone(), app.runtime.clone());
    let runner = Runner::new(app.runtime.clock().clone(), ".")
        .with_egress_policy(config.egress.clone())
        .with_secrets(config.secrets.clone())
        .with_attempt_limit(config.request_limit())
        .with_user_code(config.user_code)
        .with_containment(containment(&config.containment));
    let executor = Executor::new(app.runtime.clone(), worker.clone(), runner)
        .with_storage(config.storage_endpoint.clone());
    let ended = worker.clone();
    Serving {
        router: router_with(app, executor),
        finished: Box::pin(async move { ended.ended().await }),
        on_shutdown: Box::new(move |grace| {
            Box::pin(async move { worker.stop("the worker's process was asked to stop", grace).await })
        }),
    }
}

/// The containment that the settings ask for. What this system cannot enforce is logged once.
pub fn containment(settings: &ContainmentConfig) -> Option<Containment> {
    if !settings.is_on {
        warn!("The programs of tasks are not contained: EBB_CONTAINMENT is off");
        return None;
    }
    if !::containment::can_supervise() {
        warn!("The programs of tasks are not contained: this executable cannot supervise them");
        return None;
    }
    ::containment::protect_this_process();
    let Enforced { users, files } = ::containment::probe();
    if !files {
        warn!("The programs of tasks see all files that their user may read: this system has no Landlock");
    }
    if !users {
        info!(
            "The programs of tasks run as the worker's own user: it is not root. `resources.processes` holds where it may \
             create user namespaces"
        );
    }
    let groups = ControlGroups::open();
    let Controllers { memory, processes, cpu } = groups.controllers();
    // A user of its own has processes of its own.
    let uncounted = [(memory, "memory"), (processes || users, "processes"), (cpu, "cpu")];
    let uncounted: Vec<&str> =
        uncounted.iter().filter(|(counts, _)| !counts).map(|(_, name)| *name).collect();
    if !uncounted.is_empty() {
        warn!(
            "`resources` do not limit all processes of a program together, for {}: this worker may not divide its control \
             group (under systemd, set `Delegate=yes`)",
            uncounted.join(", ")
        );
    }
    let ContainmentConfig { network, readable, writable, .. } = settings.clone();
    Some(Containment::new(network, readable, writable, groups))
}

/// The router with another executor.
pub fn router_with(app: App, executor: impl Into<Arc<Executor>>) -> Router {
    let shared = Shared { app: app.clone(), executor: executor.into() };
    Router::new()
        .route("/push", post(push))
        .layer(from_fn(check_no_query))
        .with_state(shared)
        .merge(health(app))
}

async fn push(State(shared): State<Shared>, Push(delivery): Push) -> Reply {
    if let Some(reason) = shared.executor.worker().shutdown_reason() {
        // Another worker must run it.
        return Reply::Retry(reason.to_owned());
    }
    let outcome = match &delivery.message {
        Message::TaskDispatched(work) => shared.executor.execute(work).await,
        Message::CallbackDue(due) => shared.executor.call_back(due).await,
        Message::PollDue(due) => shared.executor.poll(due).await,
        other => Ok(Verdict::Reject(format!("execute does not handle `{}`", other.kind()))),
    };
    shared.app.reply(&delivery, outcome).await
}

/// The function as a service: reads its configuration and serves until shutdown.
pub fn main() -> ExitCode {
    host::main("execute", |config, connected| async move { Ok(serving(connected.app, &config)) })
}
