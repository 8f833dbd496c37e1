//! Fires durable timers, publishes lost messages again, detects dead workers, and repairs inconsistencies.
//!
//! The scheduler wakes it every minute; a message wakes it if a timer is due before the next tick. It stays up only while
//! timers are due soon or a worker may be dead; with nothing due it runs one query and ends. With exact wake-ups it is called
//! when something is due, and requests the next call before it ends; the scheduler then ticks once an hour, for lost ones. Any
//! number of sweeps may run concurrently: what two of them find is settled once.

mod archive;
mod liveness;
mod retention;
mod sweep;

use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use host::{App, Problem, Push, Reply, Verdict, check_no_query, health};
use model::message::WorkerKill;
use model::{Instant, Message, WorkerCommand, WorkerCommandKind, WorkerFacts, WorkerId};
use store::Heartbeat;
use tracing::Instrument;

pub use archive::{Archive, Bucket, Folder};
pub use retention::Retention;
pub use sweep::Sweep;

#[derive(Clone)]
struct Shared {
    app: App,
    sweep: Arc<Sweep>,
}

impl axum::extract::FromRef<Shared> for App {
    fn from_ref(shared: &Shared) -> App {
        shared.app.clone()
    }
}

/// Who woke the sweep.
enum Waker {
    /// The scheduler, or a requested wake-up.
    Call,
    /// A message: something is due then.
    Push(Instant),
}

/// `POST /sweep`: the scheduler's tick, or a requested wake-up. `POST /push`: a timer is due before the next one.
pub fn router(app: App) -> Router {
    let sweep = Sweep::new(app.runtime.clone());
    router_with(app, sweep)
}

/// The router of a sweep with other settings.
pub fn router_with(app: App, sweep: Sweep) -> Router {
    let shared = Shared { app: app.clone(), sweep: Arc::new(sweep) };
    Router::new()
        .route("/sweep", post(tick))
        .route("/push", post(push))
        .layer(from_fn(check_no_query))
        .with_state(shared)
        .merge(health(app.reporting_load()))
}

async fn tick(State(shared): State<Shared>, request: Request) -> Response {
    let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if let Err(error) = shared.app.push.check(authorization, shared.app.now()).await {
        return Problem::from(error).into_response();
    }
    match sweep(&shared, Waker::Call).await {
        Ok(()) => Reply::Ack.into_response(),
        Err(error) => Reply::Retry(error.to_string()).into_response(),
    }
}

/// Sweeps in a separate task: other callers may rely on a sweep whose caller hangs up.
async fn sweep(shared: &Shared, waker: Waker) -> runtime::Result<()> {
    let sweep = shared.sweep.clone();
    let sweeping = async move {
        match waker {
            Waker::Call => sweep.tick().await,
            Waker::Push(wake_at) => sweep.announced(wake_at).await,
        }
    };
    tokio::spawn(sweeping.in_current_span()).await.unwrap_or(Err(runtime::Error::Defect))
}

async fn push(State(shared): State<Shared>, Push(delivery): Push) -> Reply {
    let outcome = match &delivery.message {
        Message::TimerArmed(armed) => {
            sweep(&shared, Waker::Push(armed.wake_at)).await.map(|()| Verdict::Done)
        }
        Message::WorkerRegistered(registered) => {
            let facts = Some(registered.facts.clone());
            record_heartbeat(&shared.app, registered.worker, facts, registered.at).await
        }
        Message::WorkerHeartbeat(heartbeat) => {
            record_heartbeat(&shared.app, heartbeat.worker, None, heartbeat.at).await
        }
        Message::WorkerKill(kill) => kill_worker(&shared.app, kill).await,
        other => Ok(Verdict::Reject(format!("sweep does not handle `{}`", other.kind()))),
    };
    shared.app.reply(&delivery, outcome).await
}

/// Records the heartbeat of a worker that cannot reach the database. Times in the future are cut off, since such a worker
/// would seem alive for too long.
async fn record_heartbeat(
    app: &App,
    worker: WorkerId,
    facts: Option<WorkerFacts>,
    at: Instant,
) -> runtime::Result<Verdict> {
    app.runtime.store().beat(&Heartbeat { worker, facts, at: at.min(app.now()) }).await?;
    Ok(Verdict::Done)
}

/// Stores the command, which the worker receives with its next heartbeat.
async fn kill_worker(app: &App, kill: &WorkerKill) -> runtime::Result<Verdict> {
    let (actor, reason) = (kill.actor.clone(), kill.reason.clone());
    let command = WorkerCommand { kind: WorkerCommandKind::Kill, actor, reason, at: app.now() };
    // A worker that has left in the meantime need not be killed.
    app.runtime.store().command_worker(kill.worker, &command).await?;
    Ok(Verdict::Done)
}

/// The function as a service: reads its configuration and serves until shutdown.
pub fn main() -> ExitCode {
    host::main("sweep", |config, connected| async move {
        let retention = Retention::new(config.retention).with_accounts(connected.accounts);
        let sweep = Sweep::new(connected.app.runtime.clone())
            .with_retention(retention)
            .with_log_filter(host::telemetry::follow_filter)
            .with_wake_ups(config.wake.build(connected.app.runtime.clock())?);
        Ok(router_with(connected.app, sweep))
    })
}
