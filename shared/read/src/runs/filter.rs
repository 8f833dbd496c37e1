//! Which runs a list has, and in which order.

use model::{Instant, Run, RunId, RunState};

/// A run's position in a list: the instant that the list is ordered by, and the run.
pub type RunCursor = (Instant, RunId);

/// The order of a list of runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RunSort {
    /// By creation, newest first.
    #[default]
    Newest,
    /// By creation, oldest first.
    Oldest,
    /// By end, latest first, without unfinished runs.
    LastEnded,
    /// By end, earliest first, without unfinished runs.
    FirstEnded,
}

impl RunSort {
    /// Whether runs are ordered by their ends.
    pub fn is_by_end(self) -> bool {
        matches!(self, Self::LastEnded | Self::FirstEnded)
    }

    /// A run's position in a list of this order. Unfinished runs have none in a list by end.
    pub(super) fn position(self, run: &Run) -> Option<RunCursor> {
        let at = if self.is_by_end() { run.finished_at? } else { run.created_at };
        Some((at, run.id))
    }
}

/// Which runs to list.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunFilter {
    /// Only of this workflow.
    pub workflow: Option<String>,
    /// Only in this state.
    pub state: Option<RunState>,
    /// Only those that tasks of this run started.
    pub parent: Option<RunId>,
    /// Only those with this label, `name=value`, in the order of their creation.
    pub label: Option<String>,
    /// Only those created then or later.
    pub created_after: Option<Instant>,
    /// Only those created before.
    pub created_before: Option<Instant>,
    /// Only those with this text in their id, workflow, error, labels or origin, ignoring case.
    pub text: Option<String>,
    /// The order of the list.
    pub sort: RunSort,
    /// Only those after this position in the list.
    pub after: Option<RunCursor>,
    /// Only those up to this position in the list.
    pub until: Option<RunCursor>,
    /// The maximum number of runs.
    pub limit: u32,
}

impl RunFilter {
    /// Whether the index that serves the list also has rows that do not pass.
    pub(super) fn goes_beyond_its_index(&self) -> bool {
        let more = self.workflow.is_some() || self.state.is_some() || self.parent.is_some();
        let dated = self.created_after.is_some() || self.created_before.is_some();
        self.text.is_some()
            || (self.label.is_some() && (more || dated))
            || (self.sort.is_by_end() && (more || dated))
    }

    /// The part of the filter that the index serves.
    pub(super) fn served(&self) -> Self {
        let served = Self { text: None, ..self.clone() };
        match self.label.is_some() || self.sort.is_by_end() {
            true => Self { workflow: None, state: None, parent: None, ..served },
            false => served,
        }
    }
}
