//! What concerns a run as a whole: its turn, its time, its end from outside, and what got lost in it.

use chrono::TimeDelta;
use model::change::Recheck;
use model::message::CancelRequested;
use model::{
    ErrorClass, EventKind, Failure, Message, Occasion, RunId, Task, TaskEvent, TaskIndex, TaskState,
    TimerKind,
};
use serde_json::{Value, json};

use crate::command::Outcome;
use crate::run_slice::{RECHECK_AFTER, RunSlice};

/// How long past its time-out an attempt is left to the worker that holds it, which asks it to end, gives it half a
/// minute and then kills it.
const TIMEOUT_SLACK: TimeDelta = TimeDelta::seconds(60);

/// The sweep looks at a run again after so long while it waits for timers only, or is paused.
pub(crate) const RECHECK_WHILE_WAITING: TimeDelta = TimeDelta::minutes(10);

impl RunSlice<'_> {
    /// Others in the run's group have ended: it begins.
    pub(crate) fn admit(&mut self) -> Outcome {
        if self.run.state.is_final() || !self.run.waiting {
            return Outcome::Stale;
        }
        self.run.waiting = false;
        self.record(EventKind::RunAdmitted, None, None, Value::Null);
        self.go_on();
        self.recheck = Recheck::At(self.now + RECHECK_AFTER);
        Outcome::Applied
    }

    /// One of the run's own timers is due.
    pub(crate) fn wake_run(&mut self, kind: TimerKind) -> Outcome {
        // A run whose last task ended just now is in time, though its end is derived only at the close.
        if self.run.state.is_final() || self.run.counts.unfinished() == 0 {
            return Outcome::Stale;
        }
        self.unset_timers(None);
        match kind {
            TimerKind::Timeout => self.time_out(),
            TimerKind::Deadline => {
                self.set_timeout();
                self.record(EventKind::RunMissedDeadline, None, None, Value::Null);
                self.call_back_for_run(None, Occasion::MissedDeadline);
            }
            TimerKind::Retry | TimerKind::Sleep => return Outcome::Stale,
        }
        Outcome::Applied
    }

    /// The run took too long: what was begun has failed, and what was not cannot begin any more.
    fn time_out(&mut self) {
        let limit = self.graph.workflow().timeout_seconds.unwrap_or_default();
        let message = format!("the run took longer than its timeout_seconds of {limit}");
        self.record(EventKind::RunTimedOut, None, None, json!({"timeout_seconds": limit}));
        // Counted for itself, since the tasks that were still open may all be allowed to fail.
        self.run.failures += 1;
        self.run.error.get_or_insert(message.clone());
        self.abandon("the run's time-out");
        let failure = Failure::new(ErrorClass::Timeout, message);
        for index in self.unfinished(|_| true) {
            if self.tasks[&index].state == TaskState::Pending {
                self.must(index, TaskEvent::UpstreamFailed, EventKind::TaskUpstreamFailed, Value::Null);
            } else {
                let said = json!({"class": failure.class, "message": failure.message});
                self.must(
                    index,
                    TaskEvent::GivenUp { failure: failure.clone() },
                    EventKind::TaskFailed,
                    said,
                );
            }
        }
        self.drop_the_rest();
    }

    /// The run ends from outside: so do the runs that its tasks started and wait for.
    fn abandon(&mut self, actor: &str) {
        self.abandoned = true;
        let reason = format!("the run {} that started it ended", self.run.id);
        for index in self.unfinished(|_| true) {
            self.cancel_child(index, actor, &reason);
        }
    }

    /// Asks for the end of the run that a task started and waits for, if it does.
    pub(crate) fn cancel_child(&mut self, index: TaskIndex, actor: &str, reason: &str) {
        let task = &self.tasks[&index];
        if task.state == TaskState::Sleeping && self.spec(index).kind.starts_run() {
            let run = RunId::of_task(self.key(index), task.attempt);
            let (actor, reason) = (actor.into(), reason.into());
            self.outbox.push(Message::CancelRequested(CancelRequested { run, actor, reason }));
        }
    }

    /// Notes that someone was told what became of the run, or could not be.
    pub(crate) fn called_back(&mut self, what: &str, error: Option<&str>) -> Outcome {
        self.record(EventKind::RunCalledBack, None, None, json!({"what": what, "error": error}));
        Outcome::Applied
    }

    pub(crate) fn cancel(&mut self, actor: &str, reason: Option<&str>) -> Outcome {
        let open: Vec<TaskIndex> = self.unfinished(|_| true);
        if self.run.state.is_final() || open.is_empty() {
            return Outcome::Stale;
        }
        let data = reason.map_or(Value::Null, |reason| json!({"reason": reason}));
        self.abandon(actor);
        for index in open {
            self.apply(index, TaskEvent::Cancelled).expect("whatever has not ended can be cancelled");
            self.record(EventKind::TaskCancelled, Some(index), Some(actor), data.clone());
        }
        self.drop_the_rest();
        Outcome::Applied
    }

    /// Looks for what got lost on the way: messages nobody acted on, attempts nobody ended.
    pub(crate) fn recheck(&mut self, patience: TimeDelta) -> Outcome {
        let now = self.now;
        if self.run.waiting {
            // The message that the group has room may have got lost.
            self.announcements.extend(self.concurrency_group());
            self.recheck = Recheck::At(now + RECHECK_AFTER);
            return Outcome::Applied;
        }
        if self.is_paused() {
            self.end_overdue();
            self.recheck = Recheck::At(now + RECHECK_WHILE_WAITING);
            return Outcome::Applied;
        }
        let waiting = self.unfinished(|task| task.state == TaskState::Sleeping);
        let for_others: Vec<TaskIndex> =
            waiting.into_iter().filter(|index| self.waits_for_others(*index)).collect();
        // Their request, or the message that it is done, may have got lost: they ask again.
        let unheard = |index: &&TaskIndex| self.tasks[index].since + patience <= now;
        self.undirected.extend(for_others.iter().filter(unheard).copied().collect::<Vec<_>>());
        for index in
            self.unfinished(|task| task.state == TaskState::Dispatched && task.since + patience <= now)
        {
            self.record(EventKind::TaskRedispatched, Some(index), None, Value::Null);
            self.announce(index);
        }
        self.end_overdue();
        // A task whose grant got lost, or that is missing from its wait queue, requests its slot again.
        self.unfinished(|task| task.state == TaskState::Queued)
            .into_iter()
            .for_each(|index| self.relaunch(index));
        self.unfinished(|task| task.state == TaskState::Pending)
            .into_iter()
            .for_each(|index| self.consider(index));
        self.turn_all();
        let waiting = !self.unfinished(|task| task.state == TaskState::Pending).is_empty();
        let moving = !self.unfinished(|task| task.state != TaskState::Pending).is_empty();
        if waiting && !moving && self.is_at_rest() {
            self.stall();
        }
        // The next recheck is set at the close, once everything that follows from this one is known.
        self.recheck = Recheck::Never;
        self.patience = patience;
        Outcome::Applied
    }

    /// Whether a task was given a slot here, or began to wait for one or for another run.
    pub(crate) fn has_begun_something(&self) -> bool {
        self.before.keys().any(|index| {
            let state = self.tasks[index].state;
            let waits = state == TaskState::Sleeping && self.waits_for_others(*index);
            state.holds_slots() || state == TaskState::Queued || waits
        })
    }

    /// When to recheck the run next, after a recheck of everything unfinished. A message that was too young to count as
    /// lost counts as lost before a full interval is over: otherwise a recheck that comes early puts off the repair.
    pub(crate) fn next_recheck(&self) -> Recheck {
        let any = |wanted: &dyn Fn(&Task) -> bool| !self.unfinished(wanted).is_empty();
        let for_others = |task: &Task| task.state == TaskState::Sleeping && self.waits_for_others(task.index);
        if any(&|task| task.state.holds_slots()) || any(&for_others) {
            let by_message = |task: &Task| task.state == TaskState::Dispatched || for_others(task);
            let lost_at = |index: TaskIndex| self.tasks[&index].since + self.patience;
            let young = self.unfinished(by_message).into_iter().map(lost_at).filter(|at| *at > self.now);
            Recheck::At(young.chain([self.now + RECHECK_AFTER]).min().unwrap_or(self.now))
        } else if any(&|task| task.state == TaskState::Queued)
            || !any(&|task| task.state != TaskState::Pending)
        {
            Recheck::At(self.now + RECHECK_WHILE_WAITING)
        } else {
            // Its timers are rows, and signals and answers arrive as commands: a run that sleeps costs nothing.
            Recheck::Never
        }
    }

    /// Ends attempts that took too long, and that their workers did not end.
    fn end_overdue(&mut self) {
        let now = self.now;
        for index in self.unfinished(|task| task.state == TaskState::Running) {
            let timeout = self.spec(index).timeout_seconds;
            let started_at = self.tasks[&index].started_at.unwrap_or(now);
            let end = started_at + TimeDelta::seconds(timeout.into());
            if self.give_up_at(index).map_or(end, |give_up_at| end.min(give_up_at)) + TIMEOUT_SLACK <= now {
                let message = format!("the attempt took longer than its timeout_seconds of {timeout}");
                self.fail(index, Failure::new(ErrorClass::Timeout, message));
            }
        }
    }
}
