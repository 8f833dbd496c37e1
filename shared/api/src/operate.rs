//! The operations of people on runs and tasks: pause, resume, retry, evaluate; clear, mark, wake.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use futures::FutureExt;
use futures::future::BoxFuture;
use host::Problem;
use model::{Run, RunId, RunState, TaskIndex, TaskState, WaitsFor};
use runtime::Settled;
use runtime::{By, Mark, Operation};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::request::{self, Path};
use crate::tasks::Found;
use crate::views::RunView;
use crate::{Api, Caller, approvals, error, runs, tasks};

/// The reason for a change.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReasonBody {
    /// The reason, for the timeline.
    #[serde(default, deserialize_with = "crate::request::brief")]
    #[schemars(length(max = 1000))]
    pub reason: Option<String>,
}

/// The output to give a task, and the reason.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SucceedBody {
    /// The task's output; null for none. A switch names the branches that continue: `{"next": ["left"]}`.
    pub output: Value,
    /// The reason, for the timeline.
    #[serde(default, deserialize_with = "crate::request::brief")]
    #[schemars(length(max = 1000))]
    pub reason: Option<String>,
}

type Reason = request::Json<ReasonBody>;
type Response = BoxFuture<'static, Result<Json<RunView>, Problem>>;

/// The handler of an operation on a run.
pub(crate) fn on_run(
    operation: Operation,
) -> impl Fn(State<Api>, Caller, Path<RunId>, Reason) -> Response + Clone + Send + Sync {
    move |State(api), caller, Path(id), request::Json(body)| {
        let operation = operation.clone();
        async move { operate_on_run(&api, &caller, id, operation, body.reason).await }.boxed()
    }
}

/// The handler of an operation on a task.
pub(crate) fn on_task(
    operation: fn(TaskIndex) -> Operation,
) -> impl Fn(State<Api>, Caller, Path<(RunId, String)>, Reason) -> Response + Clone + Send + Sync {
    move |State(api), caller, Path((id, task)), request::Json(body)| {
        async move {
            let found = tasks::find(&api, &caller, id, &task).await?;
            let operation = operation(found.record.task.index);
            operate_on_task(&api, &caller, &found, &task, operation, body.reason).await
        }
        .boxed()
    }
}

/// Marks a task as succeeded, with an output.
pub(crate) async fn post_succeed(
    State(api): State<Api>,
    caller: Caller,
    Path((id, task)): Path<(RunId, String)>,
    request::Json(body): request::Json<SucceedBody>,
) -> Result<Json<RunView>, Problem> {
    let found = tasks::find(&api, &caller, id, &task).await?;
    let mark = Operation::Mark(found.record.task.index, Mark::Succeeded(body.output));
    operate_on_task(&api, &caller, &found, &task, mark, body.reason).await
}

async fn operate_on_run(
    api: &Api,
    caller: &Caller,
    id: RunId,
    operation: Operation,
    reason: Option<String>,
) -> Result<Json<RunView>, Problem> {
    let found = runs::find(api, caller, id).await?;
    let settled = settle(api, caller, &found.run, operation.clone(), reason).await?;
    let run = runs::show(api, caller, id).await?;
    answer(settled, run, |run| refusal(&operation, id, run.state))
}

async fn operate_on_task(
    api: &Api,
    caller: &Caller,
    found: &Found,
    name: &str,
    operation: Operation,
    reason: Option<String>,
) -> Result<Json<RunView>, Problem> {
    if let Operation::Mark(..) = operation {
        approvals::check_may_mark(found.spec(), caller)?;
    }
    let id = found.run.id;
    let settled = settle(api, caller, &found.run, operation.clone(), reason).await?;
    let run = runs::show(api, caller, id).await?;
    let now =
        if settled == Settled::Applied { None } else { Some(tasks::find(api, caller, id, name).await?) };
    answer(settled, run, |_| refusal_of_task(&operation, name, now.as_ref().unwrap_or(found)))
}

async fn settle(
    api: &Api,
    caller: &Caller,
    run: &Run,
    operation: Operation,
    reason: Option<String>,
) -> Result<Settled, Problem> {
    let by = By { actor: caller.name.clone(), reason };
    api.app.runtime.operate(run, operation, by).await.map_err(error::runtime)
}

fn answer(
    settled: Settled,
    run: RunView,
    why_not: impl FnOnce(&RunView) -> String,
) -> Result<Json<RunView>, Problem> {
    if settled == Settled::Applied {
        return Ok(Json(run));
    }
    Err(Problem::new(StatusCode::CONFLICT, "not_possible", why_not(&run)).with(json!(run)))
}

/// Why an operation is not possible in the run's state.
fn refusal(operation: &Operation, id: RunId, state: RunState) -> String {
    let name = state.name();
    match (operation, state) {
        (Operation::Pause, RunState::Paused) => format!("run {id} is already paused"),
        (Operation::Pause, _) => format!("run {id} is {name} and cannot be paused"),
        (Operation::Resume, _) => format!("run {id} is {name}; only a paused run can be resumed"),
        (Operation::Retry, _) => {
            format!("run {id} is {name} and has no failed tasks to retry")
        }
        _ => format!("run {id} is {name}; there is nothing to re-evaluate"),
    }
}

/// Why an operation is not possible in the task's state.
fn refusal_of_task(operation: &Operation, name: &str, found: &Found) -> String {
    let (task, kind, run) = (&found.record.task, &found.spec().kind, found.run.id);
    let current = format!("task `{name}` of run {run} is {}", task.state.name());
    match (operation, task.state) {
        (Operation::Clear(_), _) => {
            format!("{current} and has not started, nor has anything downstream; there is nothing to clear")
        }
        (Operation::Wake(_), TaskState::Sleeping) => {
            let instead = match kind.waits_for() {
                Some(WaitsFor::Signal) => "it is waiting for a signal; send it",
                Some(WaitsFor::Approval) => "it is waiting for approval; approve or reject it",
                Some(WaitsFor::Timer | WaitsFor::Sensor | WaitsFor::Children | WaitsFor::Run) | None => {
                    "it is waiting for other work; mark it to stop waiting"
                }
            };
            format!("{current}: {instead}")
        }
        (Operation::Wake(_), _) => {
            format!("{current}; only a sleep or a retry delay can be ended early")
        }
        (Operation::Mark(..), _) if task.child.is_some() => {
            format!(
                "{current}; a child can be marked only while it is in progress: clear it, or mark its fan-out"
            )
        }
        _ => format!("{current} already"),
    }
}
