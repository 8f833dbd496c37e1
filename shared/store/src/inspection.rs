//! What an inspection looks for, and when it counts as found. Both stores read the rows; what is wrong with them is
//! said here.

use async_trait::async_trait;
use chrono::TimeDelta;
use model::{Counts, Instant, Run, RunId, RunState, TaskState, VersionId};

use crate::Result;

/// A timer or an outbox message that is overdue by so much was forgotten.
pub(crate) const OVERDUE_AFTER: TimeDelta = TimeDelta::minutes(1);

/// A run that nobody has looked at for so long after it was due, and a task that nobody took for so long.
pub(crate) const UNHEARD_AFTER: TimeDelta = TimeDelta::minutes(2);

/// A worker that was silent for so long is dead.
pub(crate) const SILENT_AFTER: TimeDelta = TimeDelta::minutes(1);

/// No more than so many things of one kind are counted.
pub(crate) const MAX_COUNTED: u32 = 1_000;

/// So many unfinished runs are looked at in one call.
pub(crate) const PAGE_SIZE: u32 = 50;

/// What can be wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fault {
    /// Timers are due and nobody fires them.
    OverdueTimers,
    /// Messages were committed and not published.
    UnsentMessages,
    /// Runs should have been looked at and were not.
    OverdueRechecks,
    /// Workers are dead and still hold attempts.
    DeadWorkers,
    /// Messages could not be taken in.
    DeadLetters,
    /// Timers of a run are there although nothing waits for them.
    OrphanedTimers,
    /// What is noted about a run does not fit its tasks.
    WrongCounts,
    /// All tasks of a run have ended, and it has not.
    NotEnded,
    /// Tasks of a run were dispatched and nobody took them.
    UnheardTasks,
    /// A run has tasks that have not begun, and nothing in it moves.
    AtRest,
    /// Nobody will look at a run that has not ended.
    NoRecheck,
    /// A run says of itself that it cannot go on.
    Stalled,
    /// A run keeps a version that this program cannot use.
    Unusable,
}

/// Something that should not be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What is wrong.
    pub fault: Fault,
    /// With which run; none where it is about the system as a whole.
    pub run: Option<RunId>,
    /// How many of them, a thousand at most.
    pub count: u32,
    /// Since when, where that is known.
    pub since: Option<Instant>,
}

/// What an inspection found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Inspection {
    /// What should not be.
    pub findings: Vec<Finding>,
    /// The runs that were looked at, each with its version: whether it can be used, the rows do not say.
    pub versions: Vec<(RunId, VersionId)>,
    /// The run after which to go on; none where all were looked at.
    pub next: Option<RunId>,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Fault; 13] = [
        Self::OverdueTimers,
        Self::UnsentMessages,
        Self::OverdueRechecks,
        Self::DeadWorkers,
        Self::DeadLetters,
        Self::OrphanedTimers,
        Self::WrongCounts,
        Self::NotEnded,
        Self::UnheardTasks,
        Self::AtRest,
        Self::NoRecheck,
        Self::Stalled,
        Self::Unusable,
    ];

    /// The name used in answers.
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
            Self::UnheardTasks => "unheard_tasks",
            Self::AtRest => "at_rest",
            Self::NoRecheck => "no_recheck",
            Self::Stalled => "stalled",
            Self::Unusable => "unusable_version",
        }
    }

    /// Whether it can be put right without a person.
    pub fn can_be_repaired(self) -> bool {
        !matches!(self, Self::DeadLetters | Self::Unusable)
    }
}

impl Finding {
    /// Things of that kind, unless there are none.
    pub(crate) fn of_all(fault: Fault, found: impl IntoIterator<Item = Instant>) -> Option<Self> {
        let found: Vec<Instant> = found.into_iter().collect();
        let (count, since) = (found.len() as u32, found.into_iter().min());
        (count > 0).then_some(Self { fault, run: None, count, since })
    }

    /// Orphaned timers of a run.
    pub(crate) fn orphaned_timers(run: RunId, count: u32, since: Instant) -> Self {
        Self { fault: Fault::OrphanedTimers, run: Some(run), count, since: Some(since) }
    }
}

/// An unfinished run with what its rows come to.
pub(crate) struct Seen {
    pub(crate) run: Run,
    pub(crate) recheck_at: Option<Instant>,
    pub(crate) counts: Counts,
    /// How many of its tasks were dispatched long ago.
    pub(crate) unheard: u32,
    /// When one of its tasks last moved.
    pub(crate) moved_at: Option<Instant>,
}

impl Seen {
    /// The run and its version.
    pub(crate) fn version(&self) -> (RunId, VersionId) {
        (self.run.id, self.run.version)
    }

    /// What is wrong with the run.
    pub(crate) fn findings(&self, now: Instant) -> Vec<Finding> {
        let since = self.moved_at.or(Some(self.run.created_at));
        let finding = |fault, count| Finding { fault, run: Some(self.run.id), count, since };
        let is_old = since.is_some_and(|since| since + UNHEARD_AFTER <= now);
        let ended = self.counts.unfinished() == 0;
        let wrong = self.run.counts != self.counts;
        let waiting = self.counts.of(TaskState::Pending);
        let at_rest = waiting > 0 && self.counts.unfinished() == waiting && is_old;
        // What only sleeps cannot get lost, and nobody looks at it.
        let asleep = self.counts.is_asleep();
        let may_move = !self.run.waiting && matches!(self.run.state, RunState::Queued | RunState::Running);
        let found = [
            wrong.then(|| finding(Fault::WrongCounts, 1)),
            ended.then(|| finding(Fault::NotEnded, 1)),
            (self.unheard > 0 && may_move).then(|| finding(Fault::UnheardTasks, self.unheard)),
            (at_rest && may_move).then(|| finding(Fault::AtRest, waiting)),
            (!asleep && self.recheck_at.is_none()).then(|| finding(Fault::NoRecheck, 1)),
            (self.run.state == RunState::Stalled).then(|| finding(Fault::Stalled, 1)),
        ];
        found.into_iter().flatten().collect()
    }
}

/// Looks for what should not be.
#[async_trait]
pub trait Inspections: Send + Sync {
    /// Looks for what should not be: of the system as a whole where `after` is none, and of a bounded number of
    /// unfinished runs after that one. Says where to go on.
    async fn inspect(&self, now: Instant, after: Option<RunId>) -> Result<Inspection>;
}
