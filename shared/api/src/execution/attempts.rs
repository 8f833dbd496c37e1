//! The reports of remote workers about attempts that they hold.
//!
//! The process that gave an attempt away knows its task: it settles the first report about it without reading anything, on
//! condition that the worker still holds the attempt. In any other case the task is read. A worker that received no response sends
//! its report again: the history of the task shows whether the attempt ended by that report, which then counts as recorded, or was
//! taken away.

mod bodies;

use auth::Permission::Work;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::message::TaskResult;
use model::{Event, Failure, Instant, RunId, TaskKey};
use read::LogLine;
use runtime::reports::{End, ReportedAttempt, Standing};
use runtime::{AttemptName, Command, ExpectedTask, GivenAttempt, Settled};
use serde_json::Value;
use tracing::warn;

use super::{settle, worker_id};
use crate::logs::LineView;
use crate::request::{self, Path};
use crate::tasks::{self, Found};
use crate::{Api, Caller, error, explain};
pub use bodies::{CheckpointBody, CompleteBody, FailBody, FailClass, LogBody, ReleaseBody, StepView};

/// How often a report is tried that counts by what was read, while its task moves on each time.
const MAX_TRIES: u32 = 3;

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

pub(super) const TAKEN: Json<StepView> = Json(StepView { applied: true });

pub(super) type Address = Path<(RunId, String, u32)>;

/// A worker that reports about an attempt.
pub(super) struct Reporter<'r> {
    api: &'r Api,
    caller: &'r Caller,
    name: AttemptName,
}

/// What a worker reports that ends its attempt.
enum Report {
    Result(TaskResult),
    HandBack { reason: String, begun: bool },
}

impl<'r> Reporter<'r> {
    pub(super) fn new(
        api: &'r Api,
        caller: &'r Caller,
        Path((run, task, attempt)): Address,
        worker: &str,
    ) -> Result<Self, Problem> {
        let worker = worker_id(caller, worker)?;
        Ok(Self { api, caller, name: AttemptName { run, task, attempt, worker } })
    }

    /// Settles a report. One that was recorded before gets the same response.
    async fn settle(&self, report: &Report) -> Result<Json<StepView>, Problem> {
        if let Some(GivenAttempt { key, claimed_at, .. }) = self.given() {
            let held = self.attempt(key).held();
            if self.applies(report, key, held, claimed_at).await? {
                return Ok(TAKEN);
            }
        }
        for _ in 0..MAX_TRIES {
            let found = self.find().await?;
            match self.standing(&found, report).await? {
                // If it does not apply, the task has moved on since it was read.
                Standing::Counts { expected, started_at } => {
                    if self.applies(report, found.key(), expected, started_at).await? {
                        return Ok(TAKEN);
                    }
                }
                Standing::Recorded => return Ok(TAKEN),
                Standing::Lost => break,
            }
        }
        Err(self.lost())
    }

    /// The attempt, if this process gave it to the worker, which reports about it for the first time.
    fn given(&self) -> Option<GivenAttempt> {
        let given = self.api.app.runtime.workers().leases().recall(&self.name)?;
        self.caller.may(Work, &given.workflow).then_some(given)
    }

    async fn find(&self) -> Result<Found, Problem> {
        let id = self.name.run;
        let run = self.api.reader(self.caller).runs().for_worker(id).await?;
        let run = run.ok_or_else(|| Problem::not_found(format!("there is no run {id}")))?;
        tasks::find_in(self.api, run, &self.name.task).await
    }

    /// Settles the report if the task is as expected. Returns whether it was.
    async fn applies(
        &self,
        report: &Report,
        key: TaskKey,
        expected: ExpectedTask,
        started_at: Instant,
    ) -> Result<bool, Problem> {
        let AttemptName { attempt, worker, .. } = self.name;
        let (workers, task) = (self.api.app.runtime.workers(), key.task);
        let command = match report {
            Report::Result(result) => {
                let (worker, result) = (Some(worker), result.clone());
                Command::Report { task, attempt, worker, started_at, result }
            }
            Report::HandBack { reason, begun: true } => {
                let hand_back = workers.hand_back(key, attempt, worker, reason.clone()).await;
                hand_back.map_err(error::runtime)?
            }
            Report::HandBack { reason, begun: false } => {
                Command::HandBack { task, attempt, worker, reason: reason.clone(), saved: true }
            }
        };
        let command = Command::Expecting { task: expected, then: Box::new(command) };
        if settle(self.api, key.run, command).await? != Settled::Applied {
            return Ok(false);
        }
        if matches!(report, Report::Result(_))
            && let Err(error) = workers.count_done(worker).await
        {
            // The number is for people, and not worth an error.
            warn!("An attempt that worker {worker} ended is not counted: {error}");
        }
        Ok(true)
    }

    async fn standing(&self, found: &Found, report: &Report) -> Result<Standing, Problem> {
        let end = match report {
            Report::Result(TaskResult::Succeeded(_)) => End::Succeeded,
            // As the history shows it: the outcome of an attempt that must not be repeated is unknown after a loss.
            Report::Result(TaskResult::Failed(failure)) => {
                End::Failed(runtime::classify(found.spec(), failure.clone()))
            }
            Report::HandBack { .. } => End::HandedBack,
        };
        let (attempt, row) = (self.attempt(found.key()), &found.record.task);
        let history = if attempt.is_held(row) { Vec::new() } else { history(found, attempt).await? };
        Ok(attempt.standing(&end, row, &history))
    }

    /// The task of an attempt that the worker holds, or ended itself.
    pub(super) async fn held_or_ended(&self) -> Result<TaskKey, Problem> {
        let found = self.find().await?;
        let attempt = self.attempt(found.key());
        if attempt.is_held(&found.record.task)
            || attempt.was_ended_by_worker(&history(&found, attempt).await?)
        {
            Ok(found.key())
        } else {
            Err(self.lost())
        }
    }

    fn attempt(&self, TaskKey { task, .. }: TaskKey) -> ReportedAttempt {
        let AttemptName { attempt, worker, .. } = self.name;
        ReportedAttempt { task, attempt, worker }
    }

    pub(super) fn number(&self) -> u32 {
        self.name.attempt
    }

    fn lost(&self) -> Problem {
        let AttemptName { task, attempt, .. } = &self.name;
        let message = format!("this worker no longer holds attempt {attempt} of `{task}`; stop it");
        Problem::new(StatusCode::CONFLICT, "attempt_lost", message)
    }
}

/// The events that show what became of an attempt.
async fn history(found: &Found, attempt: ReportedAttempt) -> Result<Vec<Event>, Problem> {
    explain::read_events(&found.reader, Some(attempt.task), |event| attempt.concerns(event)).await
}

/// Reports that an attempt succeeded.
pub(crate) async fn post_complete(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    request::Json(body): request::Json<CompleteBody>,
) -> Result<Json<StepView>, Problem> {
    let reporter = Reporter::new(&api, &caller, address, &body.worker)?;
    reporter.settle(&Report::Result(TaskResult::Succeeded(body.output))).await
}

/// Reports that an attempt failed. The task's retry policy decides on another one.
pub(crate) async fn post_fail(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    request::Json(body): request::Json<FailBody>,
) -> Result<Json<StepView>, Problem> {
    let reporter = Reporter::new(&api, &caller, address, &body.worker)?;
    let message: String = body.message.chars().take(MAX_LINE).collect();
    let failure = Failure {
        exit_code: body.exit_code,
        signal: body.signal,
        detail: body.detail.map(brief_detail),
        retry_after_seconds: body.retry_after_seconds,
        ..Failure::new(body.class.class(), message)
    };
    reporter.settle(&Report::Result(TaskResult::Failed(failure))).await
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
    let reporter = Reporter::new(&api, &caller, address, &body.worker)?;
    let reason = body.reason.unwrap_or_else(|| "its worker handed it back".to_owned());
    reporter.settle(&Report::HandBack { reason, begun: body.begun }).await
}

/// Records the checkpoint of an attempt.
pub(crate) async fn post_checkpoint(
    State(api): State<Api>,
    caller: Caller,
    address: Address,
    request::Json(body): request::Json<CheckpointBody>,
) -> Result<Json<StepView>, Problem> {
    let reporter = Reporter::new(&api, &caller, address, &body.worker)?;
    let (task, workers) = (reporter.held_or_ended().await?, api.app.runtime.workers());
    let kept = workers.keep_checkpoint(task, reporter.number(), body.checkpoint).await;
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
    let reporter = Reporter::new(&api, &caller, address, &body.worker)?;
    let task = reporter.held_or_ended().await?;
    let line = |LineView { at, stream, level, line }: LineView| {
        let line = line.chars().take(MAX_LINE).collect();
        LogLine { at, stream, level, line }
    };
    let lines = body.lines.into_iter().map(line).collect();
    let workers = api.app.runtime.workers();
    let appended = workers.append_log(task, reporter.number(), body.first, lines).await;
    appended.map_err(error::runtime)?;
    Ok(TAKEN)
}
