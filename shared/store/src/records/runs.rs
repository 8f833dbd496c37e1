//! Which runs to list.

use model::{RunId, RunState};

/// Which of the newest runs to list.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunFilter {
    /// Only of this workflow.
    pub workflow: Option<String>,
    /// Only in this state.
    pub state: Option<RunState>,
    /// Only those that tasks of this run started.
    pub parent: Option<RunId>,
    /// The maximum number of runs.
    pub limit: u32,
}
