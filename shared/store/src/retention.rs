//! Retention: what is kept for a time, and how much of it is deleted at once.

use async_trait::async_trait;
use model::{Instant, RunId, RunState};

use crate::Result;

/// A part of a run that is kept for a time of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Part {
    /// The outputs of its tasks.
    Outputs,
    /// The logs of its attempts.
    Logs,
    /// The run with all its rows.
    Whole,
}

impl Part {
    /// The name used in rows and archives.
    pub fn name(self) -> &'static str {
        match self {
            Self::Outputs => "outputs",
            Self::Logs => "logs",
            Self::Whole => "runs",
        }
    }
}

/// The maximum number of runs that are deleted in one transaction.
pub(crate) const MAX_DELETED_AT_ONCE: u32 = 500;

/// The maximum number of tasks that are deleted in one transaction, unless one run has more.
const MAX_TASKS_DELETED_AT_ONCE: u32 = 20_000;

/// The first of these runs that may be deleted at once, by how many tasks they have.
pub(crate) fn at_once(runs: impl IntoIterator<Item = (RunId, u32)>) -> Vec<RunId> {
    let mut tasks = 0;
    let fits = |(place, (run, count)): (usize, (RunId, u32))| {
        tasks += count;
        (place == 0 || tasks <= MAX_TASKS_DELETED_AT_ONCE).then_some(run)
    };
    runs.into_iter().enumerate().map_while(fits).collect()
}

/// Deletes what has been kept for long enough.
#[async_trait]
pub trait Retention: Send + Sync {
    /// Begins a retention pass, if the next one is due by `now`. No other begins before `until`.
    async fn take_retention(&self, now: Instant, until: Instant) -> Result<bool>;

    /// Postpones the next retention pass until `until`.
    async fn rest_retention(&self, until: Instant) -> Result<()>;

    /// Runs that ended in that state at `before` or earlier and still have that part, as far as is known; those that
    /// ended first come first. A bounded number of them, and no more than have a bounded number of tasks together.
    async fn expired(&self, part: Part, state: RunState, before: Instant) -> Result<Vec<RunId>>;

    /// That part of runs, as documents for an archive.
    async fn documents(&self, part: Part, runs: &[RunId]) -> Result<Vec<serde_json::Value>>;

    /// Creates the next partitions of events and logs, and drops those whose runs have all ended by `before` (logs) or are
    /// all deleted (events).
    async fn turn_pages(&self, now: Instant, before: Instant) -> Result<()>;

    /// Deletes that part of runs that ended, in one short transaction. The runs are those that [`expired`](Self::expired)
    /// named, in that order. Logs and events that lie in partitions go with these. Doing it twice changes nothing.
    async fn forget(&self, part: Part, runs: &[RunId]) -> Result<()>;

    /// Deletes dead letters that are older than that instant, the oldest first, some at a time. Returns how many.
    async fn delete_dead_letters(&self, before: Instant) -> Result<u64>;

    /// Deletes events that triggers received too long before that instant, also those of deleted triggers, some at a time.
    /// Returns how many.
    async fn forget_trigger_events(&self, now: Instant) -> Result<u64>;

    /// Deletes breakers whose last failure and pause were at `before` or earlier, some at a time: those of hosts in whatever
    /// state, since a host that is never called again never closes its own; those of tasks only if they are closed, since
    /// an open one holds slots back. Returns how many.
    async fn forget_breakers(&self, before: Instant) -> Result<u64>;
}
