//! The reports of remote workers about attempts that they hold.
//!
//! A worker that received no response sends its report again. The history of the task shows whether the attempt ended by that
//! report, which then counts as recorded, or was taken away.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::message::TaskResult;
use model::{ErrorClass, Event, EventKind, Failure, RunId, TaskState, WorkerId};
use read::LogLine;
use runtime::{Command, Settled};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::warn;

use super::{settle, worker_id};
use crate::logs::LineView;
use crate::request::{self, Path};
use crate::tasks::{self, Found};
use crate::{Api, Caller, error, explain};

/// The maximum number of lines per request.
const MAX_LINES: usize = 1_000;

/// The maximum length of a line, in characters; the rest is cut off.
const MAX_LINE: usize = 10_000;

/// The maximum size of the detail of a failure, in bytes of JSON.
const MAX_DETAIL: usize = 64 * 1024;

/// The streams that a worker may write to: those of a program, and what it says itself.
const STREAMS: [&str; 3] = ["stdout", "stderr", "system"];

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
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailBody {
    /// The name of the worker that holds the attempt.
    #[schemars(length(min = 1, max = 100))]
    pub worker: String,
    /// The error message for people.
    #[schemars(length(max = 10_000))]
    pub message: String,
    /// The kind of failure, which decides about a retry; default `program_failed`.
    #[serde(default)]
    pub class: FailClass,
    /// The exit code of the program, if it ended by itself.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The signal that ended the program, if one did.
    #[serde(default)]
    pub signal: Option<i32>,
    /// More about the failure, for people, of at most 64 KiB as JSON.
    #[serde(default)]
    pub detail: Option<Value>,
    /// Minimum delay before the next attempt, in seconds, as another system asked for it. Such a failure does not count towards a
    /// circuit breaker.
    #[serde(default)]
    #[schemars(range(max = 86_400))]
    pub retry_after_seconds: Option<u32>,
}

/// The kinds of failures that a worker can report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailClass {
    /// The work failed, and nothing says why: retried while the policy allows.
    #[default]
    ProgramFailed,
    /// It may pass by itself: retried while the policy allows.
    Transient,
    /// It will not pass: never retried.
    Permanent,
    /// The program was killed by something else than its worker.
    Killed,
    /// The attempt took longer than its timeout.
    Timeout,
}

impl From<ErrorClass> for FailClass {
    fn from(class: ErrorClass) -> Self {
        match class {
            ErrorClass::ProgramFailed => Self::ProgramFailed,
            ErrorClass::Transient | ErrorClass::WorkerLost => Self::Transient,
            ErrorClass::Permanent | ErrorClass::OutcomeUnknown | ErrorClass::NotTaken => Self::Permanent,
            ErrorClass::Killed => Self::Killed,
            ErrorClass::Timeout => Self::Timeout,
        }
    }
}

impl FailClass {
    fn class(self) -> ErrorClass {
        match self {
            Self::ProgramFailed => ErrorClass::ProgramFailed,
            Self::Transient => ErrorClass::Transient,
            Self::Permanent => ErrorClass::Permanent,
            Self::Killed => ErrorClass::Killed,
            Self::Timeout => ErrorClass::Timeout,
        }
    }
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
    /// Whether the worker had begun it; false if it never received the attempt.
    #[serde(default = "begun")]
    pub begun: bool,
}

fn begun() -> bool {
    true
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
    /// The lines; `stream` is `stdout`, `stderr`, or `system` for what the worker says itself.
    #[schemars(length(max = 1000))]
    pub lines: Vec<LineView>,
}

/// Whether a report was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepView {
    /// Always true, also if the same report was recorded before; other reports are refused.
    pub applied: bool,
}

pub(super) const TAKEN: Json<StepView> = Json(StepView { applied: true });

pub(super) type Address = Path<(RunId, String, u32)>;

/// The attempt that a worker reports about.
pub(super) struct Reported {
    pub(super) found: Found,
    worker: WorkerId,
    pub(super) attempt: u32,
}

impl Reported {
    pub(super) async fn read(
        api: &Api,
        caller: &Caller,
        Path((id, task, attempt)): Address,
        worker: &str,
    ) -> Result<Self, Problem> {
        let worker = worker_id(caller, worker)?;
        let run = api.reader(caller).runs().for_worker(id).await?;
        let run = run.ok_or_else(|| Problem::not_found(format!("there is no run {id}")))?;
        Ok(Self { found: tasks::find_in(api, run, &task).await?, worker, attempt })
    }

    /// Whether the worker holds the attempt.
    fn is_held(&self) -> bool {
        let row = &self.found.record.task;
        row.state == TaskState::Running && row.attempt == self.attempt && row.worker == Some(self.worker)
    }

    /// Settles the report of a worker that holds the attempt. If it does not, the report may have been recorded before:
    /// `recorded` recognizes the event that followed from it.
    async fn settle(
        &self,
        api: &Api,
        command: Command,
        recorded: impl Fn(&Event) -> bool,
    ) -> Result<Json<StepView>, Problem> {
        let is_end = matches!(command, Command::Report { .. });
        if self.is_held() && settle(api, self.found.run.id, command).await? == Settled::Applied {
            if is_end && let Err(error) = api.app.runtime.workers().count_done(self.worker).await {
                // The number is for people, and not worth an error.
                warn!("An attempt that worker {} ended is not counted: {error}", self.worker);
            }
            return Ok(TAKEN);
        }
        if self.ended_by(recorded).await? { Ok(TAKEN) } else { Err(self.lost()) }
    }

    /// Whether the worker held the attempt until an event that `recorded` recognizes.
    async fn ended_by(&self, recorded: impl Fn(&Event) -> bool) -> Result<bool, Problem> {
        let task = self.found.record.task.index;
        let own = |event: &Event| event.task == Some(task) && event.attempt == self.attempt;
        let events = explain::read_events(&self.found.reader, Some(task), own).await?;
        let started = |event: &Event| {
            event.kind == EventKind::TaskStarted
                && WorkerId::deserialize(&event.data["worker"]).is_ok_and(|worker| worker == self.worker)
        };
        Ok(events.iter().any(started) && events.iter().any(recorded))
    }

    /// Refuses a worker that neither holds the attempt nor ended it itself.
    pub(super) async fn check_held_or_ended(&self) -> Result<(), Problem> {
        if self.is_held() || self.ended_by(is_own_end).await? { Ok(()) } else { Err(self.lost()) }
    }

    fn lost(&self) -> Problem {
        let task = &self.found.record.task;
        let (name, attempt) = (self.found.graph.name_at(task.index, task.child), self.attempt);
        let message = format!("this worker no longer holds attempt {attempt} of `{name}`; stop it");
        Problem::new(StatusCode::CONFLICT, "attempt_lost", message)
    }

    fn report(&self, result: TaskResult) -> Command {
        let task = &self.found.record.task;
        let (started_at, worker) = (task.started_at.unwrap_or(task.since), Some(self.worker));
        Command::Report { task: task.index, attempt: self.attempt, worker, started_at, result }
    }
}

/// Whether an attempt certainly ended by a report of its worker: the sweep ends attempts as lost or timed out.
fn is_own_end(event: &Event) -> bool {
    let by_sweep =
        [ErrorClass::WorkerLost, ErrorClass::Timeout, ErrorClass::OutcomeUnknown].map(ErrorClass::name);
    match event.kind {
        EventKind::TaskSucceeded | EventKind::TaskHandedBack => true,
        EventKind::TaskFailed | EventKind::TaskRetrying => {
            event.actor.is_none() && by_sweep.iter().all(|class| event.data["class"] != *class)
        }
        _ => false,
    }
}

/// Reports that an attempt succeeded.
pub(crate) async fn post_complete(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    request::Json(body): request::Json<CompleteBody>,
) -> Result<Json<StepView>, Problem> {
    let reported = Reported::read(&api, &caller, address, &body.worker).await?;
    let report = reported.report(TaskResult::Succeeded(body.output));
    let recorded = |event: &Event| match event.kind {
        EventKind::TaskSucceeded => true,
        // An output that does not fit the type of its task is recorded as a failure.
        EventKind::TaskFailed => event.actor.is_none() && event.data["class"] == ErrorClass::Permanent.name(),
        _ => false,
    };
    reported.settle(&api, report, recorded).await
}

/// Reports that an attempt failed. The task's retry policy decides on another one.
pub(crate) async fn post_fail(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    request::Json(body): request::Json<FailBody>,
) -> Result<Json<StepView>, Problem> {
    let reported = Reported::read(&api, &caller, address, &body.worker).await?;
    let message: String = body.message.chars().take(MAX_LINE).collect();
    let failure = Failure {
        exit_code: body.exit_code,
        signal: body.signal,
        detail: body.detail.map(brief_detail),
        retry_after_seconds: body.retry_after_seconds,
        ..Failure::new(body.class.class(), message)
    };
    let task = &reported.found.record.task;
    let spec = reported.found.graph.spec_at(task.index, task.child);
    // As the history shows it: the outcome of an attempt that must not be repeated is unknown after a loss.
    let expected = runtime::classify(spec, failure.clone());
    let recorded = |event: &Event| {
        matches!(event.kind, EventKind::TaskFailed | EventKind::TaskRetrying)
            && event.data["class"] == expected.class.name()
            && event.data["message"] == expected.message
    };
    let report = reported.report(TaskResult::Failed(failure));
    reported.settle(&api, report, recorded).await
}

/// The detail of a failure, or if it is too long, the beginning of its JSON. The report counts all the same.
fn brief_detail(detail: Value) -> Value {
    let text = detail.to_string();
    if text.len() <= MAX_DETAIL {
        return detail;
    }
    // Quotes are escaped once more where this is written.
    Value::String(format!("{}…", &text[..text.floor_char_boundary(MAX_DETAIL / 2)]))
}

/// Hands an attempt back: the next one follows at once and uses no retry.
pub(crate) async fn post_release(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    request::Json(body): request::Json<ReleaseBody>,
) -> Result<Json<StepView>, Problem> {
    let reported = Reported::read(&api, &caller, address, &body.worker).await?;
    let Reported { found, worker, attempt } = &reported;
    let reason = body.reason.unwrap_or_else(|| "its worker handed it back".to_owned());
    let hand_back = match body.begun {
        true => api.app.runtime.workers().hand_back(found.key(), *attempt, *worker, reason).await,
        false => {
            let task = found.record.task.index;
            Ok(Command::HandBack { task, attempt: *attempt, worker: *worker, reason, saved: true })
        }
    };
    let hand_back = hand_back.map_err(error::runtime)?;
    let recorded = |event: &Event| match event.kind {
        EventKind::TaskHandedBack => true,
        // A task that must not be repeated failed when it was handed back.
        EventKind::TaskFailed => event.data["handed_back"] == true,
        _ => false,
    };
    reported.settle(&api, hand_back, recorded).await
}

/// Records the checkpoint of an attempt.
pub(crate) async fn post_checkpoint(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    request::Json(body): request::Json<CheckpointBody>,
) -> Result<Json<StepView>, Problem> {
    let reported = Reported::read(&api, &caller, address, &body.worker).await?;
    reported.check_held_or_ended().await?;
    let kept = api.app.runtime.workers();
    let kept = kept.keep_checkpoint(reported.found.key(), reported.attempt, body.checkpoint).await;
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
    let reported = Reported::read(&api, &caller, address, &body.worker).await?;
    reported.check_held_or_ended().await?;
    let line = |LineView { at, stream, level, line }: LineView| {
        let line = line.chars().take(MAX_LINE).collect();
        LogLine { at, stream, level, line }
    };
    let lines = body.lines.into_iter().map(line).collect();
    let workers = api.app.runtime.workers();
    let appended = workers.append_log(reported.found.key(), reported.attempt, body.first, lines).await;
    appended.map_err(error::runtime)?;
    Ok(TAKEN)
}
