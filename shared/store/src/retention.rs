//! What is kept for a time, and how much of it is deleted at once.

use async_trait::async_trait;
use model::{Instant, RunId};

use crate::Result;

/// A part of a run that is kept for a time of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Part {
    /// What its tasks delivered.
    Outputs,
    /// What its attempts wrote.
    Logs,
    /// All of it.
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

/// What is left of things that are no part of a run.
#[async_trait]
pub trait Remnants: Send + Sync {
    /// Forgets dead letters that were buried by that instant, the oldest first, some at a time. Answers how many.
    async fn forget_letters(&self, before: Instant) -> Result<u64>;

    /// Forgets what triggers heard of so long before that instant that it is remembered no more, also those that are
    /// there no more, some at a time. Answers how many.
    async fn forget_trigger_events(&self, now: Instant) -> Result<u64>;
}

/// No more runs are forgotten in one transaction.
pub(crate) const FORGOTTEN_AT_ONCE: u32 = 500;

/// No more tasks are forgotten in one transaction, unless one run has more.
const TASKS_FORGOTTEN_AT_ONCE: u32 = 20_000;

/// As many of the runs as may be forgotten at once, by how many tasks they have.
pub(crate) fn at_once(runs: impl IntoIterator<Item = (RunId, u32)>) -> Vec<RunId> {
    let mut tasks = 0;
    let fits = |(place, (run, count)): (usize, (RunId, u32))| {
        tasks += count;
        (place == 0 || tasks <= TASKS_FORGOTTEN_AT_ONCE).then_some(run)
    };
    runs.into_iter().enumerate().map_while(fits).collect()
}
