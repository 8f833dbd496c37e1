//! Durable timers: a row saying "at T, do this", written with the state that needs it.

use crate::{Instant, TaskIndex};

/// What a timer is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TimerKind {
    /// The next attempt may begin.
    Retry,
    /// A sleep is over.
    Sleep,
}

impl TimerKind {
    /// The name used in rows and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Sleep => "sleep",
        }
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Retry, Self::Sleep].into_iter().find(|kind| kind.name() == name)
    }
}

/// One timer of a task. It is fenced by the attempt that set it: a timer of an earlier one does nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct Timer {
    /// Whose it is.
    pub task: TaskIndex,
    /// The attempt that set it.
    pub attempt: u32,
    /// What it is for.
    pub kind: TimerKind,
    /// Not before this instant.
    pub wake_at: Instant,
}
