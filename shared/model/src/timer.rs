//! Durable timers: a row saying "at T, do this", written with the state that needs it.

use crate::{Instant, TaskIndex};

/// What a timer is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TimerKind {
    /// The next attempt may begin.
    Retry,
    /// A sleep is over.
    Sleep,
    /// What was waited for did not come in time, or the run took too long.
    Timeout,
    /// The run should have ended by now.
    Deadline,
}

impl TimerKind {
    /// Every kind.
    pub const ALL: [TimerKind; 4] = [Self::Retry, Self::Sleep, Self::Timeout, Self::Deadline];

    /// The name used in rows and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Sleep => "sleep",
            Self::Timeout => "timeout",
            Self::Deadline => "deadline",
        }
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// One timer. A task's is fenced by the attempt that set it: a timer of an earlier one does nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct Timer {
    /// Whose it is; none for the run's own.
    pub task: Option<TaskIndex>,
    /// The attempt that set it; 0 for the run's own.
    pub attempt: u32,
    /// What it is for. Nothing has two timers of one kind.
    pub kind: TimerKind,
    /// Not before this instant.
    pub wake_at: Instant,
}
