//! The totals of a run's rows, from which its counters are repaired.

use crate::{Counts, TaskIndex};

/// The totals of a run's rows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Audit {
    /// How many tasks are in each state.
    pub counts: Counts,
    /// Tasks of the definition that ended badly, whether they may or not.
    pub ended_badly: Vec<TaskIndex>,
    /// Whose timers are there although nothing waits for them: tasks that ended, or the run itself.
    pub orphaned_timers: Vec<Option<TaskIndex>>,
}
