//! A task of a run and the one function that moves it.
//!
//! A task moves only by [`Task::on`]. No other code builds a next state and no SQL invents one.

use serde::{Deserialize, Serialize};

use crate::{Failure, Instant, TaskIndex, WorkerId};

/// Where a task stands.
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
    /// Done.
    Succeeded,
    /// Failed for good.
    Failed,
    /// Cannot run, since something it depends on failed.
    UpstreamFailed,
    /// Not needed.
    Skipped,
    /// Ended by a person or a policy.
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

    /// Whether a task in this state holds a place of every limit that it needs one of.
    pub fn holds_slots(self) -> bool {
        matches!(self, Self::Dispatched | Self::Running)
    }

    /// The name used in rows, answers and pages.
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
    /// Ended, however.
    pub done: u32,
    /// Of these, succeeded.
    pub succeeded: u32,
    /// Of these, failed or could not run.
    pub failed: u32,
    /// Of these, skipped.
    pub skipped: u32,
}

impl Tally {
    /// Counts one more that ended in `state`.
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

/// A child's place in the fan-out that it came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Child {
    /// The fan-out.
    pub of: TaskIndex,
    /// The place of its item in the list.
    pub item: u32,
}

/// How far a fan-out has come. Its children have indices that follow each other, in the order of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fan {
    /// The first child.
    pub first: TaskIndex,
    /// How many there are.
    pub total: u32,
    /// How many of them may go on or have; the next one is `first + released`.
    pub released: u32,
    /// How many have ended, and how.
    pub ended: Tally,
}

impl Fan {
    /// Every child.
    pub fn children(&self) -> impl Iterator<Item = TaskIndex> + use<> {
        (self.first.0..self.first.0 + self.total).map(TaskIndex)
    }

    /// The child whose turn it is next.
    pub fn next(&self) -> Option<TaskIndex> {
        (self.released < self.total).then(|| TaskIndex(self.first.0 + self.released))
    }
}

/// What happened to a task; named for the fact, not for the state it leads to.
#[derive(Clone, PartialEq, Debug)]
pub enum TaskEvent {
    /// What it depends on is settled in its favour.
    Readied,
    /// It was given a slot: its work message may go out.
    Released,
    /// A worker took the attempt.
    Claimed {
        /// The attempt that the worker was asked for.
        attempt: u32,
        /// Who took it.
        worker: WorkerId,
    },
    /// It waits for a timer; nothing of ours runs.
    FellAsleep,
    /// What it waited for will not come: the same attempt must find another way.
    WokeUp,
    /// An attempt delivered. A late delivery of an earlier attempt counts, too: the work was done.
    Succeeded {
        /// The attempt that delivered.
        attempt: u32,
    },
    /// An attempt did not deliver.
    Errored {
        /// The attempt that failed.
        attempt: u32,
        /// Why.
        failure: Failure,
        /// Whether another attempt follows.
        retry: bool,
    },
    /// Its worker had to end before the attempt did: the next one follows, and no retry is used up.
    HandedBack {
        /// The attempt that was not brought to an end.
        attempt: u32,
    },
    /// Its run took too long: whatever was begun is given up.
    GivenUp {
        /// Why.
        failure: Failure,
    },
    /// The delay before the next attempt is over.
    RetryDue,
    /// What it depends on failed.
    UpstreamFailed,
    /// It is not needed.
    Skipped,
    /// The run was cancelled.
    Cancelled,
    /// A person re-runs it: it waits again for what it depends on, and its attempts so far are void.
    Cleared,
    /// A fan-out that ended waits again for children that a person re-runs.
    Reopened,
    /// Its fan-out was cleared or marked: it is no longer part of the run.
    Removed,
    /// A person says that it is done.
    MarkedSucceeded,
    /// A person says that it failed.
    MarkedFailed {
        /// Why.
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
    /// What was tried.
    pub event: TaskEvent,
}

/// One task of a run: the small row that evaluation touches.
#[derive(Clone, PartialEq, Debug)]
pub struct Task {
    /// Its place in the version's list of tasks.
    pub index: TaskIndex,
    /// Where it stands.
    pub state: TaskState,
    /// The current attempt; 0 before the first. It fences reports of earlier ones.
    pub attempt: u32,
    /// How many attempts were handed back by workers that had to end: they use up no retry.
    pub handed_back: u32,
    /// The last attempt before it was cleared; 0 if it never was. Attempts up to it are void: they deliver nothing any
    /// more, and use up no retry.
    pub voided: u32,
    /// Counts the writes to this row; a write that names another one is refused.
    pub revision: i32,
    /// What became of the tasks it depends on.
    pub parents: Tally,
    /// Its place, if it is a child of a fan-out.
    pub child: Option<Child>,
    /// How far it has come, if it is a fan-out that began.
    pub fan: Option<Fan>,
    /// Who holds the current attempt.
    pub worker: Option<WorkerId>,
    /// Since when it is in this state.
    pub since: Instant,
    /// When its first attempt was given its slot.
    pub begun_at: Option<Instant>,
    /// When the current attempt started.
    pub started_at: Option<Instant>,
    /// When the task ended.
    pub finished_at: Option<Instant>,
    /// What went wrong last.
    pub failure: Option<Failure>,
}

impl Task {
    /// A task that waits for what it depends on.
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
            (S::Running, E::HandedBack { attempt }) if *attempt == current => S::Queued,
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
            TaskEvent::Cleared => self.begin_anew(),
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

    /// As if it had never begun, but for the numbers of its attempts, which only ever grow.
    fn begin_anew(&mut self) {
        self.voided = self.attempt;
        self.handed_back = 0;
        self.fan = None;
        self.begun_at = None;
        self.started_at = None;
        self.failure = None;
    }
}

impl TaskState {
    /// Whether an attempt was begun and none has settled the task yet.
    fn is_begun(self) -> bool {
        matches!(self, Self::Queued | Self::Dispatched | Self::Running | Self::Sleeping | Self::UpForRetry)
    }
}

#[cfg(test)]
mod tests;
