//! The faults that an inspection looks for, and from when on they count. Both stores read the rows; this module judges
//! them.

use async_trait::async_trait;
use chrono::TimeDelta;
use model::{Counts, Instant, Run, RunId, RunState, TaskState, VersionId};

use crate::Result;

/// The delay after which a due timer or an outbox message is considered lost.
pub(crate) const OVERDUE_AFTER: TimeDelta = TimeDelta::minutes(1);

/// The delay after which a run is considered missed by its recheck, and a dispatched task unclaimed.
pub(crate) const UNCLAIMED_AFTER: TimeDelta = TimeDelta::minutes(2);

/// The silence after which a worker is considered dead.
pub(crate) const SILENT_AFTER: TimeDelta = TimeDelta::minutes(1);

/// The maximum number of things of one kind that are counted.
pub(crate) const MAX_COUNTED: u32 = 1_000;

/// The number of unfinished runs that one call inspects.
pub(crate) const PAGE_SIZE: u32 = 50;

/// A fault that an inspection can find.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fault {
    /// Timers are due and nothing fires them.
    OverdueTimers,
    /// Messages were committed and not published.
    UnsentMessages,
    /// Runs are overdue for their recheck.
    OverdueRechecks,
    /// Workers are dead and still hold attempts.
    DeadWorkers,
    /// Messages could not be processed.
    DeadLetters,
    /// A run has timers that nothing waits for.
    OrphanedTimers,
    /// A run's counters do not match its tasks.
    WrongCounts,
    /// All tasks of a run have ended, and it has not.
    NotEnded,
    /// Tasks of a run were dispatched and no worker claimed them.
    UnclaimedTasks,
    /// A run has tasks that have not begun, and nothing in it moves.
    AtRest,
    /// A run has not ended and will not be rechecked.
    NoRecheck,
    /// A run is stalled.
    Stalled,
    /// A run is of a version that this program cannot use.
    Unusable,
}

/// Something that should not be, and how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The kind of fault.
    pub fault: Fault,
    /// The run that it concerns; none if it is about the system as a whole.
    pub run: Option<RunId>,
    /// How many there are, a thousand at most.
    pub count: u32,
    /// Since when, if that is known.
    pub since: Option<Instant>,
}

/// The result of an inspection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Inspection {
    /// The faults that were found.
    pub findings: Vec<Finding>,
    /// The runs that were inspected, each with its version: the rows do not show whether it can be used.
    pub versions: Vec<(RunId, VersionId)>,
    /// The run after which the next page begins; none if this was the last page.
    pub next: Option<RunId>,
}

impl Fault {
    /// Every fault, in the order of their declaration.
    pub const ALL: [Fault; 13] = [
        Self::OverdueTimers,
        Self::UnsentMessages,
        Self::OverdueRechecks,
        Self::DeadWorkers,
        Self::DeadLetters,
        Self::OrphanedTimers,
        Self::WrongCounts,
        Self::NotEnded,
        Self::UnclaimedTasks,
        Self::AtRest,
        Self::NoRecheck,
        Self::Stalled,
        Self::Unusable,
    ];

    /// The name used in API responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::OverdueTimers => "overdue_timers",
            Self::UnsentMessages => "unsent_messages",
            Self::OverdueRechecks => "overdue_rechecks",
            Self::DeadWorkers => "dead_workers",
            Self::DeadLetters => "dead_letters",
            Self::OrphanedTimers => "orphaned_timers",
            Self::WrongCounts => "wrong_counts",
            Self::NotEnded => "not_ended",
            Self::UnclaimedTasks => "unclaimed_tasks",
            Self::AtRest => "at_rest",
            Self::NoRecheck => "no_recheck",
            Self::Stalled => "stalled",
            Self::Unusable => "unusable_version",
        }
    }

    /// Whether it can be repaired without a person.
    pub fn can_be_repaired(self) -> bool {
        !matches!(self, Self::DeadLetters | Self::Unusable)
    }
}

impl Finding {
    /// A finding of that kind, unless there are none.
    pub(crate) fn of_all(fault: Fault, found: impl IntoIterator<Item = Instant>) -> Option<Self> {
        let found: Vec<Instant> = found.into_iter().collect();
        let (count, since) = (found.len() as u32, found.into_iter().min());
        (count > 0).then_some(Self { fault, run: None, count, since })
    }

    /// A finding about timers of a run that nothing waits for.
    pub(crate) fn orphaned_timers(run: RunId, count: u32, since: Instant) -> Self {
        Self { fault: Fault::OrphanedTimers, run: Some(run), count, since: Some(since) }
    }
}

/// An unfinished run with what its rows add up to.
pub(crate) struct Seen {
    pub(crate) run: Run,
    pub(crate) recheck_at: Option<Instant>,
    pub(crate) counts: Counts,
    /// How many of its tasks were dispatched long ago.
    pub(crate) unclaimed: u32,
    /// When one of its tasks last moved.
    pub(crate) moved_at: Option<Instant>,
}

impl Seen {
    /// The run and its version.
    pub(crate) fn version(&self) -> (RunId, VersionId) {
        (self.run.id, self.run.version)
    }

    /// The faults of the run.
    pub(crate) fn findings(&self, now: Instant) -> Vec<Finding> {
        let since = self.moved_at.or(Some(self.run.created_at));
        let finding = |fault, count| Finding { fault, run: Some(self.run.id), count, since };
        let is_old = since.is_some_and(|since| since + UNCLAIMED_AFTER <= now);
        let ended = self.counts.unfinished() == 0;
        let wrong = self.run.counts != self.counts;
        let waiting = self.counts.of(TaskState::Pending);
        let at_rest = waiting > 0 && self.counts.unfinished() == waiting && is_old;
        // A run that only sleeps cannot get lost, and is not rechecked.
        let asleep = self.counts.is_asleep();
        let may_move = !self.run.waiting && matches!(self.run.state, RunState::Queued | RunState::Running);
        let found = [
            wrong.then(|| finding(Fault::WrongCounts, 1)),
            ended.then(|| finding(Fault::NotEnded, 1)),
            (self.unclaimed > 0 && may_move).then(|| finding(Fault::UnclaimedTasks, self.unclaimed)),
            (at_rest && may_move).then(|| finding(Fault::AtRest, waiting)),
            (!asleep && self.recheck_at.is_none()).then(|| finding(Fault::NoRecheck, 1)),
            (self.run.state == RunState::Stalled).then(|| finding(Fault::Stalled, 1)),
        ];
        found.into_iter().flatten().collect()
    }
}

/// Inspects everything unfinished for faults.
#[async_trait]
pub trait Inspections: Send + Sync {
    /// Inspects a bounded number of unfinished runs after the given one; without one, also the system as a whole. Returns
    /// where the next page begins.
    async fn inspect(&self, now: Instant, after: Option<RunId>) -> Result<Inspection>;
}
