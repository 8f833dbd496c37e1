//! What the server does with what a worker outside reports about its attempt: as the API, by the same decision.

use engine::Command;
use engine::reports::{End, ReportedAttempt, Standing};
use host::App;
use model::message::TaskResult;
use model::{Event, Instant, RunId, Task, TaskIndex, TaskKey, WorkerId};
use runtime::{ExpectedTask, Result, Settled};

use crate::leasing::{Attempt, Leased, NEVER_RECEIVED, Response};

/// What the server checks.
#[derive(Clone, Copy)]
pub(crate) struct ReportChecks {
    /// A report counts only if the task is as the report expects it.
    pub(crate) expected: bool,
    /// A result that was recorded before is accepted.
    pub(crate) recorded: bool,
    /// A hand-back that was recorded before is accepted.
    pub(crate) handed_back: bool,
    /// A checkpoint is accepted after the worker ended its attempt.
    pub(crate) ended: bool,
}

/// A worker that reports about attempts.
pub(crate) struct Reporter<'a> {
    pub(crate) app: &'a App,
    pub(crate) worker: WorkerId,
    pub(crate) checks: ReportChecks,
}

impl Reporter<'_> {
    /// Settles the result of an attempt.
    pub(crate) async fn report(&self, leased: &Leased) -> Result<Response> {
        let run = leased.attempt.0.run;
        let attempt = self.attempt(leased.attempt);
        if self.settles(leased, attempt.held(), self.app.now()).await? {
            return Ok(Response::Accepted);
        }
        let end = match &leased.recorded {
            None => End::Succeeded,
            Some(failure) => End::Failed(failure.clone()),
        };
        let row = self.row(leased).await?;
        let history = self.history(run, attempt).await?;
        let standing = row.map(|row| attempt.standing(&end, &row, &history));
        // The row of a child is gone once its fan-out was re-run; its history stays.
        let is_recorded = standing == Some(Standing::Recorded) || attempt.is_recorded(&end, &history);
        let is_accepted = match standing {
            Some(Standing::Counts { expected, started_at }) => {
                self.settles(leased, expected, started_at).await?
            }
            _ => self.checks.recorded && is_recorded,
        };
        Ok(response(is_accepted))
    }

    /// Hands an attempt back.
    pub(crate) async fn release(&self, released: Attempt, reason: &str) -> Result<Response> {
        let ((key, number), worker, attempt) = (released, self.worker, self.attempt(released));
        let workers = self.app.runtime.workers();
        let hand_back = match reason {
            NEVER_RECEIVED => never_received(released, worker),
            _ => workers.hand_back(key, number, worker, reason.to_owned()).await?,
        };
        if self.applies(key.run, attempt.held(), hand_back).await? {
            return Ok(Response::Accepted);
        }
        let history = self.history(key.run, attempt).await?;
        Ok(response(self.checks.handed_back && attempt.is_recorded(&End::HandedBack, &history)))
    }

    /// Keeps a checkpoint of an attempt that the worker holds, or ended itself.
    pub(crate) async fn save(&self, leased: &Leased, checkpoint: serde_json::Value) -> Result<Response> {
        let ((key, number), attempt) = (leased.attempt, self.attempt(leased.attempt));
        let is_held = self.row(leased).await?.is_some_and(|row| attempt.is_held(&row));
        let is_accepted = is_held
            || self.checks.ended && attempt.was_ended_by_worker(&self.history(key.run, attempt).await?);
        if is_accepted {
            self.app.runtime.workers().keep_checkpoint(key, number, checkpoint).await?;
        }
        Ok(response(is_accepted))
    }

    async fn settles(&self, leased: &Leased, expected: ExpectedTask, started_at: Instant) -> Result<bool> {
        let (TaskKey { run, task }, attempt) = leased.attempt;
        let result = leased.result.clone().map_or_else(TaskResult::Failed, TaskResult::Succeeded);
        let report = Command::Report { task, attempt, worker: Some(self.worker), started_at, result };
        let applies = self.applies(run, expected, report).await?;
        if applies {
            self.app.runtime.workers().count_done(self.worker).await?;
        }
        Ok(applies)
    }

    async fn applies(&self, run: RunId, expected: ExpectedTask, command: Command) -> Result<bool> {
        let command = match self.checks.expected {
            true => Command::Expecting { task: expected, then: Box::new(command) },
            false => command,
        };
        Ok(self.app.runtime.settle(run, command).await? == Settled::Applied)
    }

    fn attempt(&self, (TaskKey { task, .. }, attempt): Attempt) -> ReportedAttempt {
        ReportedAttempt { task, attempt, worker: self.worker }
    }

    async fn row(&self, leased: &Leased) -> Result<Option<Task>> {
        let TaskKey { run, task } = leased.attempt.0;
        let (of, before) = (leased.child.map(|child| child.of), task.0.checked_sub(1).map(TaskIndex));
        let rows = self.app.runtime.store().run_tasks(run, of, before, 1).await?;
        Ok(rows.into_iter().map(|row| row.task).find(|row| row.index == task))
    }

    async fn history(&self, run: RunId, attempt: ReportedAttempt) -> Result<Vec<Event>> {
        let events = self.app.runtime.store().events(run, 0, i32::MAX as u32).await?;
        Ok(events.into_iter().map(|(_, event)| event).filter(|event| attempt.concerns(event)).collect())
    }
}

/// The hand-back of an attempt that did not reach its worker.
pub(crate) fn never_received((TaskKey { task, .. }, attempt): Attempt, worker: WorkerId) -> Command {
    Command::HandBack { task, attempt, worker, reason: NEVER_RECEIVED.to_owned(), saved: true }
}

fn response(is_accepted: bool) -> Response {
    if is_accepted { Response::Accepted } else { Response::Refused }
}
