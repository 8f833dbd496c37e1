//! What the server does with the report of a worker outside: as the API, it accepts one that it has recorded before.

use engine::Command;
use host::App;
use model::message::TaskResult;
use model::{ErrorClass, Event, EventKind, Failure, TaskIndex, TaskKey, TaskState, WorkerId};
use runtime::{Result, Settled};

use crate::leasing::{Leased, Response};

/// What the server checks.
#[derive(Clone, Copy)]
pub(crate) struct ReportChecks {
    /// A report counts only from the worker that holds the attempt.
    pub(crate) held: bool,
    /// One that was recorded before is accepted.
    pub(crate) recorded: bool,
}

/// Settles a report of a worker that holds the attempt, and recognizes the repetition of one that was settled before.
pub(crate) async fn serve(
    app: &App,
    worker: WorkerId,
    leased: Leased,
    checks: ReportChecks,
) -> Result<Response> {
    let (TaskKey { run, task }, attempt) = leased.attempt;
    if !checks.held || is_held(app, worker, &leased).await? {
        let result = leased.result.clone().map_or_else(TaskResult::Failed, TaskResult::Succeeded);
        let started_at = app.now();
        let report = Command::Report { task, attempt, worker: Some(worker), started_at, result };
        if app.runtime.settle(run, report).await? == Settled::Applied {
            app.runtime.workers().count_done(worker).await?;
            return Ok(Response::Accepted);
        }
    }
    let is_recorded = checks.recorded && is_recorded(app, worker, &leased).await?;
    Ok(if is_recorded { Response::Accepted } else { Response::Refused })
}

pub(crate) async fn is_held(app: &App, worker: WorkerId, leased: &Leased) -> Result<bool> {
    let (TaskKey { run, task }, attempt) = leased.attempt;
    let (of, before) = (leased.child.map(|child| child.of), task.0.checked_sub(1).map(TaskIndex));
    let rows = app.runtime.store().run_tasks(run, of, before, 1).await?;
    Ok(rows.iter().map(|row| &row.task).any(|row| {
        (row.index, row.attempt, row.worker) == (task, attempt, Some(worker))
            && row.state == TaskState::Running
    }))
}

/// Whether the history says that the worker began the attempt, and that it ended as reported.
async fn is_recorded(app: &App, worker: WorkerId, leased: &Leased) -> Result<bool> {
    let (TaskKey { run, task }, attempt) = leased.attempt;
    let events = app.runtime.store().events(run, 0, i32::MAX as u32).await?;
    let own = events.iter().map(|(_, event)| event);
    let own: Vec<&Event> = own.filter(|event| event.task == Some(task) && event.attempt == attempt).collect();
    let began = own.iter().any(|event| {
        event.kind == EventKind::TaskStarted
            && serde_json::from_value(event.data["worker"].clone())
                .is_ok_and(|begun: WorkerId| begun == worker)
    });
    Ok(began && own.iter().any(|event| follows(event, &leased.result, leased.recorded.as_ref())))
}

/// Whether an event follows from a result; a failure is recorded as `failure`.
fn follows(
    event: &Event,
    result: &std::result::Result<serde_json::Value, Failure>,
    failure: Option<&Failure>,
) -> bool {
    match (event.kind, result) {
        (EventKind::TaskSucceeded, Ok(_)) => true,
        (EventKind::TaskFailed, Ok(_)) => {
            event.actor.is_none() && event.data["class"] == ErrorClass::Permanent.name()
        }
        (EventKind::TaskFailed | EventKind::TaskRetrying, Err(_)) => failure.is_some_and(|failure| {
            event.data["class"] == failure.class.name() && event.data["message"] == failure.message
        }),
        _ => false,
    }
}
