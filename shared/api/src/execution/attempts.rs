//! What a remote worker reports about an attempt that it holds.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::message::TaskResult;
use model::{ErrorClass, Failure, RunId, TaskState, WorkerId};
use read::LogLine;
use runtime::{Command, Settled};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{settle, worker_id};
use crate::logs::LineView;
use crate::request::{self, Path};
use crate::tasks::{self, Found};
use crate::{Api, Caller, error};

/// The maximum number of lines per request.
const MAX_LINES: usize = 1_000;

/// The maximum length of a line, in characters; the rest is cut off.
const MAX_LINE: usize = 10_000;

/// The streams that a worker may write to.
const STREAMS: [&str; 2] = ["stdout", "stderr"];

/// The levels that a line may have.
const LEVELS: [&str; 4] = ["debug", "info", "warning", "error"];

/// The output of an attempt.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteBody {
    /// The name of the worker that holds the attempt.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
    /// The output of the task.
    #[serde(default)]
    pub output: Value,
}

/// Why an attempt failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailBody {
    /// The name of the worker that holds the attempt.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
    /// The error message for people.
    #[schemars(length(max = 10_000))]
    pub message: String,
    /// Whether a retry cannot succeed.
    #[serde(default)]
    pub permanent: bool,
}

/// Why a worker hands an attempt back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseBody {
    /// The name of the worker that holds the attempt.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
    /// The reason, for people.
    #[serde(default, deserialize_with = "crate::request::brief")]
    #[schemars(length(max = 1000))]
    pub reason: Option<String>,
}

/// The checkpoint of an attempt.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointBody {
    /// The name of the worker that holds the attempt.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
    /// The state from which the next attempt continues, if this one ends early.
    pub checkpoint: Value,
}

/// Lines of an attempt's log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogBody {
    /// The name of the worker that holds the attempt.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
    /// The number of the first line, from 0. Lines already received are ignored.
    pub first: u32,
    /// The lines; `stream` is `stdout` or `stderr`.
    #[schemars(length(max = 1000))]
    pub lines: Vec<LineView>,
}

/// Whether a report was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepView {
    /// Always true; other reports are refused.
    pub applied: bool,
}

const TAKEN: Json<StepView> = Json(StepView { applied: true });

type Address = Path<(RunId, String, u32)>;

/// The attempt that a worker reports about, if it holds it.
async fn held(
    api: &Api,
    caller: &Caller,
    Path((id, task, attempt)): Address,
    worker: &str,
) -> Result<(Found, WorkerId), Problem> {
    let worker = worker_id(caller, worker)?;
    let run = api.reader(caller).runs().for_worker(id).await?;
    let run = run.ok_or_else(|| Problem::not_found(format!("there is no run {id}")))?;
    let found = tasks::find_in(api, run, &task).await?;
    let row = &found.record.task;
    if row.state != TaskState::Running || row.attempt != attempt || row.worker != Some(worker) {
        return Err(lost(&task, attempt));
    }
    Ok((found, worker))
}

fn lost(task: &str, attempt: u32) -> Problem {
    let message = format!("this worker no longer holds attempt {attempt} of `{task}`; stop it");
    Problem::new(StatusCode::CONFLICT, "attempt_lost", message)
}

async fn report(
    api: &Api,
    found: &Found,
    worker: WorkerId,
    result: TaskResult,
) -> Result<Json<StepView>, Problem> {
    let task = &found.record.task;
    let started_at = task.started_at.unwrap_or(task.since);
    let (index, attempt) = (task.index, task.attempt);
    let report = Command::Report { task: index, attempt, worker: Some(worker), started_at, result };
    match settle(api, found.run.id, report).await? {
        Settled::Applied => Ok(TAKEN),
        Settled::Stale | Settled::NoSuchRun => Err(lost(&found.graph.name_at(index, task.child), attempt)),
    }
}

/// Reports that an attempt succeeded.
pub(crate) async fn post_complete(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    request::Json(body): request::Json<CompleteBody>,
) -> Result<Json<StepView>, Problem> {
    let (found, worker) = held(&api, &caller, address, &body.worker).await?;
    report(&api, &found, worker, TaskResult::Succeeded(body.output)).await
}

/// Reports that an attempt failed. The task's retry policy decides on another one.
pub(crate) async fn post_fail(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    request::Json(body): request::Json<FailBody>,
) -> Result<Json<StepView>, Problem> {
    let (found, worker) = held(&api, &caller, address, &body.worker).await?;
    let class = if body.permanent { ErrorClass::Permanent } else { ErrorClass::Transient };
    let message: String = body.message.chars().take(MAX_LINE).collect();
    report(&api, &found, worker, TaskResult::Failed(Failure::new(class, message))).await
}

/// Hands an attempt back: the next one follows at once and uses no retry.
pub(crate) async fn post_release(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    request::Json(body): request::Json<ReleaseBody>,
) -> Result<Json<StepView>, Problem> {
    let (found, worker) = held(&api, &caller, address, &body.worker).await?;
    let (task, attempt) = (found.record.task.index, found.record.task.attempt);
    let reason = body.reason.unwrap_or_else(|| "its worker handed it back".to_owned());
    let hand_back = Command::HandBack { task, attempt, worker, reason };
    match settle(&api, found.run.id, hand_back).await? {
        Settled::Applied => Ok(TAKEN),
        Settled::Stale | Settled::NoSuchRun => {
            Err(lost(&found.graph.name_at(task, found.record.task.child), attempt))
        }
    }
}

/// Records the checkpoint of an attempt.
pub(crate) async fn post_checkpoint(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    request::Json(body): request::Json<CheckpointBody>,
) -> Result<Json<StepView>, Problem> {
    let (found, _) = held(&api, &caller, address, &body.worker).await?;
    let kept = api.app.runtime.workers();
    let kept = kept.keep_checkpoint(found.key(), found.record.task.attempt, body.checkpoint).await;
    kept.map_err(error::runtime)?;
    Ok(TAKEN)
}

/// Appends lines to an attempt's log.
pub(crate) async fn post_log(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    request::Json(body): request::Json<LogBody>,
) -> Result<Json<StepView>, Problem> {
    let refused = |words: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_lines", words);
    if body.lines.len() > MAX_LINES || body.first.checked_add(MAX_LINES as u32).is_none() {
        return Err(refused(format!("at most {MAX_LINES} lines are accepted per request")));
    }
    let known = |line: &LineView| STREAMS.contains(&&*line.stream) && LEVELS.contains(&&*line.level);
    if !body.lines.iter().all(known) {
        let (streams, levels) = (STREAMS.join(" or "), LEVELS.join(", "));
        return Err(refused(format!("`stream` must be {streams}, and `level` one of {levels}")));
    }
    let (found, _) = held(&api, &caller, address, &body.worker).await?;
    let line = |LineView { at, stream, level, line }: LineView| {
        let line = line.chars().take(MAX_LINE).collect();
        LogLine { at, stream, level, line }
    };
    let lines = body.lines.into_iter().map(line).collect();
    let workers = api.app.runtime.workers();
    let appended = workers.append_log(found.key(), found.record.task.attempt, body.first, lines).await;
    appended.map_err(error::runtime)?;
    Ok(TAKEN)
}
