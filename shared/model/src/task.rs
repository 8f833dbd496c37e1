//! A task of a run and the one function that moves it.
//!
//! A task moves only by [`Task::on`]. No other code builds a next state and no SQL invents one.

use serde::{Deserialize, Serialize};

use crate::{Failure, Instant, TaskIndex, WorkerId};

/// The state of a task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Waits for the tasks it depends on.
    Pending,
    /// Ready; waits for a slot.
    Queued,
    /// A work message exists or must exist for its current attempt.
    Dispatched,
    /// A worker holds its current attempt.
    Running,
    /// Waits for a timer, a signal or an external job; holds no slot.
    Sleeping,
    /// Failed, and waits for its next attempt.
    UpForRetry,
    /// One of its attempts succeeded, or a person marked it so.
    Succeeded,
    /// It failed, and no attempt follows.
    Failed,
    /// Cannot run, since a task it depends on failed.
    UpstreamFailed,
    /// It did not have to run.
    Skipped,
    /// A person or a policy ended it.
    Cancelled,
    /// No longer part of the run.
    Removed,
}

impl TaskState {
    /// Every state, in the order in which counts are kept.
    pub const ALL: [TaskState; 12] = [
        Self::Pending,
        Self::Queued,
        Self::Dispatched,
        Self::Running,
        Self::Sleeping,
        Self::UpForRetry,
        Self::Succeeded,
        Self::Failed,
        Self::UpstreamFailed,
        Self::Skipped,
        Self::Cancelled,
        Self::Removed,
    ];

    /// Whether nothing more will happen to the task by itself.
    pub fn is_final(self) -> bool {
        self >= Self::Succeeded
    }

    /// Whether a task in this state holds a slot of every limit that it needs.
    pub fn holds_slots(self) -> bool {
        matches!(self, Self::Dispatched | Self::Running)
    }

    /// The name used in rows, API responses and pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Queued => "queued",
            Self::Dispatched => "dispatched",
            Self::Running => "running",
            Self::Sleeping => "sleeping",
            Self::UpForRetry => "up_for_retry",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::UpstreamFailed => "upstream_failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
            Self::Removed => "removed",
        }
    }

    /// The state of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// How many of the tasks that a task depends on have ended, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Those that have ended, in whatever state.
    pub done: u32,
    /// Of these, those that succeeded.
    pub succeeded: u32,
    /// Of these, those that failed or could not run.
    pub failed: u32,
    /// Of these, those that were skipped.
    pub skipped: u32,
}

impl Tally {
    /// Counts one more task that ended in `state`.
    pub fn count(&mut self, state: TaskState) {
        self.done += 1;
        match state {
            TaskState::Succeeded => self.succeeded += 1,
            TaskState::Failed | TaskState::UpstreamFailed => self.failed += 1,
            TaskState::Skipped => self.skipped += 1,
            _ => {}
        }
    }
}

/// Which child of which fan-out a task is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Child {
    /// The fan-out that created it.
    pub of: TaskIndex,
    /// The position of its item in the list.
    pub item: u32,
}

/// The progress of a fan-out. The indices of its children follow each other, in the order of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fan {
    /// The index of the first child.
    pub first: TaskIndex,
    /// The number of its children.
    pub total: u32,
    /// How many of them may begin or have begun; the next one is `first + released`.
    pub released: u32,
    /// How many have ended, and how.
    pub ended: Tally,
}

impl Fan {
    /// The indices of all children, in order.
    pub fn children(&self) -> impl Iterator<Item = TaskIndex> + use<> {
        (self.first.0..self.first.0 + self.total).map(TaskIndex)
    }

    /// The next child that may begin; none if all have.
    pub fn next(&self) -> Option<TaskIndex> {
        (self.released < self.total).then(|| TaskIndex(self.first.0 + self.released))
    }
}

/// An event in the life of a task, named for the fact and not for the state it leads to.
#[derive(Clone, PartialEq, Debug)]
pub enum TaskEvent {
    /// The tasks it depends on have ended as its trigger rule requires.
    Readied,
    /// It was given a slot: its work message may be published.
    Released,
    /// A worker claimed the attempt.
    Claimed {
        /// The attempt that the worker was asked for.
        attempt: u32,
        /// The worker that claimed it.
        worker: WorkerId,
    },
    /// It waits for a timer, a signal or a run, and no worker is involved.
    FellAsleep,
    /// The event it waited for will not come: the same attempt is dispatched.
    WokeUp,
    /// An attempt succeeded. A late success of an earlier attempt counts, too: the work was done.
    Succeeded {
        /// The attempt that succeeded.
        attempt: u32,
    },
    /// An attempt did not succeed.
    Errored {
        /// The attempt that failed.
        attempt: u32,
        /// Why the attempt failed.
        failure: Failure,
        /// Whether another attempt follows.
        retry: bool,
    },
    /// Its worker had to stop before the attempt ended, or its breaker kept the attempt from beginning: the next attempt
    /// follows, and no retry is used.
    HandedBack {
        /// The attempt that did not end.
        attempt: u32,
    },
    /// Its run timed out: it is given up, whatever its state.
    GivenUp {
        /// Why it was given up.
        failure: Failure,
    },
    /// The delay before the next attempt is over.
    RetryDue,
    /// A task it depends on failed.
    UpstreamFailed,
    /// It does not have to run.
    Skipped,
    /// The run was cancelled.
    Cancelled,
    /// A person re-runs it: it waits again for the tasks it depends on, and its attempts so far are void.
    Cleared,
    /// A fan-out that ended waits again for children that a person re-runs.
    Reopened,
    /// Its fan-out was cleared or marked: it is no longer part of the run.
    Removed,
    /// A person decided that it succeeded.
    MarkedSucceeded,
    /// A person decided that it failed.
    MarkedFailed {
        /// Who decided it and why.
        failure: Failure,
    },
}

/// An event that does not fit the task's state or attempt. It changes nothing.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("a {} task at attempt {attempt} cannot take {event:?}", from.name())]
pub struct IllegalMove {
    /// The state it was in.
    pub from: TaskState,
    /// The attempt it was at.
    pub attempt: u32,
    /// The event that was refused.
    pub event: TaskEvent,
}

/// One task of a run: the small row that evaluation touches.
#[derive(Clone, PartialEq, Debug)]
pub struct Task {
    /// Its position in the version's list of tasks.
    pub index: TaskIndex,
    /// The state, which only [`Task::on`] changes.
    pub state: TaskState,
    /// The current attempt; 0 before the first. It fences reports of earlier ones.
    pub attempt: u32,
    /// How many attempts were handed back by workers that had to stop: they use no retry.
    pub handed_back: u32,
    /// The last attempt before it was cleared; 0 if it never was. Attempts up to it are void: their results no longer
    /// count, and they use no retry.
    pub voided: u32,
    /// Counts the writes to this row; a write based on another revision is refused.
    pub revision: i32,
    /// How the tasks it depends on have ended.
    pub parents: Tally,
    /// Which child it is, if it is one of a fan-out.
    pub child: Option<Child>,
    /// The progress of its children, if it is a fan-out that has begun.
    pub fan: Option<Fan>,
    /// The worker that holds the current attempt.
    pub worker: Option<WorkerId>,
    /// When it entered this state.
    pub since: Instant,
    /// When its first attempt was given its slot.
    pub begun_at: Option<Instant>,
    /// When the current attempt started.
    pub started_at: Option<Instant>,
    /// When the task ended.
    pub finished_at: Option<Instant>,
    /// Why the last attempt failed, if it did.
    pub failure: Option<Failure>,
}

impl Task {
    /// A task that waits for the tasks it depends on.
    pub fn pending(index: TaskIndex, now: Instant) -> Self {
        Self {
            index,
            state: TaskState::Pending,
            attempt: 0,
            handed_back: 0,
            voided: 0,
            revision: 0,
            parents: Tally::default(),
            child: None,
            fan: None,
            worker: None,
            since: now,
            begun_at: None,
            started_at: None,
            finished_at: None,
            failure: None,
        }
    }

    /// How many of its attempts count as tries: those since it was cleared that were not handed back.
    pub fn tries(&self) -> u32 {
        self.attempt.saturating_sub(self.voided).saturating_sub(self.handed_back)
    }

    /// Moves the task, or refuses and leaves it as it was. Every legal transition is in this `match`.
    pub fn on(&mut self, event: TaskEvent, now: Instant) -> Result<(), IllegalMove> {
        use TaskEvent as E;
        use TaskState as S;
        let (voided, current) = (self.voided, self.attempt);
        let next = match (self.state, &event) {
            (S::Pending, E::Readied) => S::Queued,
            (S::Queued, E::Released) => S::Dispatched,
            (S::Pending | S::Queued, E::FellAsleep) => S::Sleeping,
            (S::Dispatched, E::Claimed { attempt, .. }) if *attempt == current => S::Running,
            (S::UpForRetry, E::RetryDue) | (S::Sleeping, E::WokeUp) => S::Queued,
            (from, E::Succeeded { attempt })
                if from.is_begun() && (voided + 1..=current).contains(attempt) =>
            {
                S::Succeeded
            }
            (S::Dispatched | S::Running | S::Sleeping, E::Errored { attempt, retry, .. })
                if *attempt == current =>
            {
                if *retry {
                    S::UpForRetry
                } else {
                    S::Failed
                }
            }
            (S::Dispatched | S::Running, E::HandedBack { attempt }) if *attempt == current => S::Queued,
            (from, E::GivenUp { .. }) if from.is_begun() => S::Failed,
            (S::Pending, E::UpstreamFailed) => S::UpstreamFailed,
            (S::Pending | S::Sleeping, E::Skipped) => S::Skipped,
            (from, E::Cancelled) if !from.is_final() => S::Cancelled,
            (from, E::Cleared) if !matches!(from, S::Pending | S::Removed) => S::Pending,
            (S::Succeeded | S::Failed | S::Cancelled, E::Reopened) if self.fan.is_some() => S::Sleeping,
            (from, E::Removed) if from != S::Removed && self.child.is_some() => S::Removed,
            (from, E::MarkedSucceeded) if !from.is_final() => S::Succeeded,
            (from, E::MarkedFailed { .. }) if !from.is_final() => S::Failed,
            (from, _) => return Err(IllegalMove { from, attempt: current, event }),
        };
        self.enter(next, event, now);
        Ok(())
    }

    fn enter(&mut self, next: TaskState, event: TaskEvent, now: Instant) {
        let handed_back = matches!(event, TaskEvent::HandedBack { .. });
        self.handed_back += u32::from(handed_back);
        let idle = |state| matches!(state, TaskState::Pending | TaskState::UpForRetry);
        let begins = (handed_back || idle(self.state) && !idle(next)) && !next.is_final();
        if begins {
            self.attempt += 1;
            self.started_at = None;
            self.begun_at.get_or_insert(now);
        }
        match event {
            TaskEvent::FellAsleep => self.started_at = Some(now),
            TaskEvent::Claimed { worker, .. } => {
                self.worker = Some(worker);
                self.started_at = Some(now);
            }
            TaskEvent::Succeeded { .. } | TaskEvent::MarkedSucceeded => self.failure = None,
            TaskEvent::Errored { failure, .. }
            | TaskEvent::GivenUp { failure }
            | TaskEvent::MarkedFailed { failure } => self.failure = Some(failure),
            TaskEvent::Cleared => self.reset(),
            TaskEvent::Reopened => self.failure = None,
            _ => {}
        }
        self.state = next;
        self.since = now;
        if next != TaskState::Running {
            self.worker = None;
        }
        self.finished_at = next.is_final().then_some(now);
    }

    /// Forgets everything but the numbers of its attempts, which only ever grow.
    fn reset(&mut self) {
        self.voided = self.attempt;
        self.handed_back = 0;
        self.fan = None;
        self.begun_at = None;
        self.started_at = None;
        self.failure = None;
    }
}

impl TaskState {
    /// Whether an attempt has begun and none has ended the task yet.
    fn is_begun(self) -> bool {
        matches!(self, Self::Queued | Self::Dispatched | Self::Running | Self::Sleeping | Self::UpForRetry)
    }
}

#[cfg(test)]
mod tests;
