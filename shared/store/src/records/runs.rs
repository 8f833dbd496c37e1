//! Which runs to list, and in which order.

use model::{Instant, Run, RunId, RunState};

/// A run's place in a list: the instant that the list is ordered by, and the run.
pub type RunCursor = (Instant, RunId);

/// In which order runs are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RunSort {
    /// The one that was created last first.
    #[default]
    Newest,
    /// The one that was created first first.
    Oldest,
    /// The one that ended last first; what has not ended is left out.
    LastEnded,
    /// The one that ended first first; what has not ended is left out.
    FirstEnded,
}

impl RunSort {
    /// Whether what is earlier comes first.
    pub fn is_upwards(self) -> bool {
        matches!(self, Self::Oldest | Self::FirstEnded)
    }

    /// Whether the ends of runs count.
    pub fn is_by_end(self) -> bool {
        matches!(self, Self::LastEnded | Self::FirstEnded)
    }

    /// A run's place in a list of this order; none where it is in no such list.
    pub fn place(self, run: &Run) -> Option<RunCursor> {
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
    /// Only those with this label, `name=value`. They come by when they were created.
    pub label: Option<String>,
    /// Only those created then or later.
    pub created_after: Option<Instant>,
    /// Only those created before.
    pub created_before: Option<Instant>,
    /// Only those with this text, in capitals or not, in their id, workflow, error, labels or whoever caused them.
    pub text: Option<String>,
    /// In this order.
    pub sort: RunSort,
    /// Only those that come after this place in the list.
    pub after: Option<RunCursor>,
    /// Only those that come up to this place in the list.
    pub until: Option<RunCursor>,
    /// At most so many.
    pub limit: u32,
}

impl RunFilter {
    /// Whether it asks for no more than a workflow, a state or a parent, newest first.
    pub(crate) fn is_plain(&self) -> bool {
        let dated = self.created_after.is_some() || self.created_before.is_some();
        let more = self.label.is_some() || self.text.is_some() || self.until.is_some();
        self.sort == RunSort::Newest && !dated && !more
    }

    /// The part of it that an index serves: so many rows are looked at, whether they pass the rest or not.
    pub(crate) fn served(&self) -> Self {
        let served = Self { text: None, ..self.clone() };
        match self.label.is_some() || self.sort.is_by_end() {
            true => Self { workflow: None, state: None, parent: None, ..served },
            false => served,
        }
    }
}
