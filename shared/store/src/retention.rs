//! What is kept for a time, and how much of it is deleted at once.

use model::RunId;

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
