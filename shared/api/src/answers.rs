//! What people and programs say to a run that waits: signals, approvals and refusals.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use engine::Command;
use host::Problem;
use language::config::{self, Approval};
use model::{RunId, TaskKind, TaskSpec};
use runtime::Settled;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::request::{self, Path, Text};
use crate::views::RunView;
use crate::{Api, Caller, error, runs, tasks};

/// No signal's name is longer.
const MAX_NAME: usize = 100;

/// The answers to the approval's form.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApproveBody {
    #[serde(default)]
    fields: Map<String, Value>,
}

/// The reason for a rejection.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RejectBody {
    reason: Option<String>,
}

/// Sends a signal. Whoever waits for it goes on with its payload; if nobody does yet, it is kept.
pub(crate) async fn post_signal(
    State(api): State<Api>,
    caller: Caller,
    Path((id, name)): Path<(RunId, String)>,
    headers: HeaderMap,
    Text(body): Text,
) -> Result<Json<RunView>, Problem> {
    request::check_type(&headers, &["application/json"])?;
    if name.is_empty() || name.len() > MAX_NAME {
        let message = format!("a signal's name must have 1 to {MAX_NAME} characters");
        return Err(Problem::bad_request(message));
    }
    let payload = if body.trim().is_empty() { Value::Null } else { request::parse(&body)? };
    runs::find(&api, &caller, id).await?;
    let command = Command::Signal { name, payload, actor: caller.name.clone() };
    settle(&api, &caller, id, command, "takes no signals any more").await
}

/// Approves what a task asks for.
pub(crate) async fn post_approve(
    State(api): State<Api>,
    caller: Caller,
    Path((id, task)): Path<(RunId, String)>,
    request::Json(body): request::Json<ApproveBody>,
) -> Result<Json<RunView>, Problem> {
    let found = tasks::find(&api, &caller, id, &task).await?;
    let spec = found.spec();
    let ask = asked(spec)?;
    check_approver(&ask, spec, &caller)?;
    check_fields(&ask, &body.fields)?;
    let payload = Value::Object(body.fields);
    let task = found.record.task.index;
    let command = Command::Answer { task, approved: true, payload, actor: caller.name.clone() };
    settle(&api, &caller, id, command, "is not waiting for an answer to this task").await
}

/// Does not approve what a task asks for: the task fails.
pub(crate) async fn post_reject(
    State(api): State<Api>,
    caller: Caller,
    Path((id, task)): Path<(RunId, String)>,
    request::Json(body): request::Json<RejectBody>,
) -> Result<Json<RunView>, Problem> {
    let found = tasks::find(&api, &caller, id, &task).await?;
    let spec = found.spec();
    check_approver(&asked(spec)?, spec, &caller)?;
    let payload = body.reason.map_or(Value::Null, Value::String);
    let task = found.record.task.index;
    let command = Command::Answer { task, approved: false, payload, actor: caller.name.clone() };
    settle(&api, &caller, id, command, "is not waiting for an answer to this task").await
}

async fn settle(
    api: &Api,
    caller: &Caller,
    id: RunId,
    command: Command,
    stale: &str,
) -> Result<Json<RunView>, Problem> {
    let settled = api.app.runtime.settle(id, command).await.map_err(error::runtime)?;
    let run = runs::show(api, caller, id).await?;
    match settled {
        Settled::Applied => Ok(Json(run)),
        Settled::Stale | Settled::NoSuchRun => {
            let message = format!("run {id} {stale}");
            Err(Problem::new(StatusCode::CONFLICT, "not_waiting", message).with(json!(run)))
        }
    }
}

/// What a task asks for; refused for one that asks for nothing.
fn asked(spec: &TaskSpec) -> Result<Approval, Problem> {
    if spec.kind != TaskKind::Approval {
        let message = format!("`{}` is of type {}; only approvals can be answered", spec.name, spec.kind);
        return Err(Problem::new(StatusCode::CONFLICT, "not_waiting", message));
    }
    config::read(spec.kind, spec.config.clone()).map_err(|error| Problem::internal(&error))
}

/// Where a task names who may answer, nobody else may.
fn check_approver(ask: &Approval, spec: &TaskSpec, caller: &Caller) -> Result<(), Problem> {
    if ask.allows(&caller.name) {
        return Ok(());
    }
    let message = format!("{} is not an approver of `{}`", caller.name, spec.name);
    Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", message))
}

/// What must be filled in is there, and nothing is that was not asked for.
fn check_fields(ask: &Approval, given: &Map<String, Value>) -> Result<(), Problem> {
    let problems = ask.problems(given);
    if problems.is_empty() {
        return Ok(());
    }
    let message = format!("the answer does not match the form: {}", problems.join("; "));
    Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_answer", message).with(json!(problems)))
}
