//! Settles commands that arrive as messages: results that a worker could not settle itself, ends of child runs and shared
//! tasks, cancellations and nudges. Also stores dead letters.

use std::process::ExitCode;

use axum::Router;
use axum::extract::State;
use axum::middleware::from_fn;
use axum::routing::post;
use chrono::TimeDelta;
use engine::Command;
use host::{App, Push, Reply, Verdict, check_no_query, health, receive_dead_letter, request_timeout};
use model::message::CancelRequested;
use model::{Message, RunId};
use runtime::Settled;

/// `POST /push`: a result, a request or a nudge. `POST /dead-letters`: dead letters of any topic.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/push", post(push))
        .route("/dead-letters", post(receive_dead_letter))
        .layer(from_fn(check_no_query))
        .with_state(app.clone())
        .merge(health(app))
}

async fn push(State(app): State<App>, Push(delivery): Push) -> Reply {
    let outcome = evaluate(&app, &delivery.message).await;
    app.reply(&delivery, outcome).await
}

/// Settles the message. One that was settled before is stale and changes nothing.
async fn evaluate(app: &App, message: &Message) -> runtime::Result<Verdict> {
    let (run, command) = match message.clone() {
        Message::TaskReported(report) => {
            let (task, attempt) = (report.key.task, report.attempt);
            let (started_at, result) = (report.started_at, report.result);
            (report.key.run, Command::Report { task, attempt, worker: report.worker, started_at, result })
        }
        Message::ChildFinished(finished) => {
            return app
                .runtime
                .child_runs()
                .ended(&finished)
                .await
                .map(|settled| verdict(settled, finished.parent.key.run));
        }
        Message::SharedFinished(finished) => {
            return app.runtime.child_runs().shared_ended(&finished).await.map(|()| Verdict::Done);
        }
        Message::ConcurrencyGroupFreed(freed) => {
            return app.runtime.admit(&freed).await.map(|()| Verdict::Done);
        }
        Message::CancelRequested(CancelRequested { run, actor, reason }) => {
            // A run that does not exist was never created, and will not be: its requester has ended.
            let cancel = Command::Cancel { actor, reason: Some(reason) };
            return app.runtime.settle(run, cancel).await.map(|_| Verdict::Done);
        }
        Message::RunNudged(nudge) => {
            (nudge.run, Command::Recheck { claim_timeout: TimeDelta::zero(), served: None })
        }
        other => return Ok(Verdict::Reject(format!("evaluate does not handle `{}`", other.kind()))),
    };
    Ok(verdict(app.runtime.settle(run, command).await?, run))
}

fn verdict(settled: Settled, run: RunId) -> Verdict {
    match settled {
        Settled::Applied | Settled::Stale => Verdict::Done,
        Settled::NoSuchRun => Verdict::Reject(format!("there is no run {run}")),
    }
}

/// The function as a service: reads its configuration and serves until shutdown.
pub fn main() -> ExitCode {
    host::main(
        "evaluate",
        |_, connected| async move { Ok(router(connected.app).layer(from_fn(request_timeout))) },
    )
}
