//! Durable timers: a row saying "at T, do this", written with the state that needs it.

use crate::{Instant, TaskIndex};

/// The purpose of a timer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TimerKind {
    /// The next attempt may begin.
    Retry,
    /// A sleep is over.
    Sleep,
    /// A wait took too long, or the run did.
    Timeout,
    /// The run should have ended by now.
    Deadline,
}

impl TimerKind {
    /// Every kind, in the order of their declaration.
    pub const ALL: [TimerKind; 4] = [Self::Retry, Self::Sleep, Self::Timeout, Self::Deadline];

    /// The name used in rows and API responses.
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

/// One timer. A task's timer is fenced by the attempt that set it: a timer of an earlier attempt does nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct Timer {
    /// The task it belongs to; none for the run's own.
    pub task: Option<TaskIndex>,
    /// The attempt that set it; 0 for the run's own.
    pub attempt: u32,
    /// The purpose of the timer. A task or run has at most one timer of each kind.
    pub kind: TimerKind,
    /// The instant from which on it is due.
    pub wake_at: Instant,
}
