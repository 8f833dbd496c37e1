//! The changes that one decision makes to one run: only rows, written in one transaction.

use serde_json::Value;

use crate::{Event, Failure, Instant, Message, Offer, Run, Task, TaskIndex, TaskState, Timer, WorkerId};

/// The rows that a decision about one run writes. Rows carry the revision they were read at; the store
/// writes each only over that revision.
#[derive(Clone, PartialEq, Debug)]
pub struct Changes {
    /// The run as it shall be.
    pub run: Run,
    /// The tasks that changed, as they shall be.
    pub tasks: Vec<Task>,
    /// The tasks that were created: children of a fan-out.
    pub new_tasks: Vec<Task>,
    /// The items that children work on.
    pub items: Vec<(TaskIndex, Value)>,
    /// Tasks whose earlier output no longer counts.
    pub withdrawn: Vec<TaskIndex>,
    /// Outputs of tasks that succeeded, written after the withdrawn ones are deleted.
    pub outputs: Vec<(TaskIndex, Value)>,
    /// Attempts that are over while their task goes on, or was ended by another attempt.
    pub attempts: Vec<AttemptRecord>,
    /// Events in order; the first one's number is what `run.events` was before them.
    pub events: Vec<Event>,
    /// Timers to set, after the unset ones are deleted.
    pub timers: Vec<Timer>,
    /// Tasks whose timers are deleted; none stands for the run's own timers.
    pub unset_timers: Vec<Option<TaskIndex>>,
    /// Signals that arrived before a task waited for them.
    pub kept_signals: Vec<Signal>,
    /// Names of kept signals that a task has consumed.
    pub taken_signals: Vec<String>,
    /// Shared tasks that this run executed and that ended, and whether they succeeded.
    pub shares_ended: Vec<(TaskIndex, bool)>,
    /// Tasks that no longer wait for a shared task of another run.
    pub waits_over: Vec<TaskIndex>,
    /// Dispatched tasks that remote workers may take, in place of earlier offers of these tasks.
    pub offers: Vec<Offer>,
    /// Tasks that are no longer offered to remote workers.
    pub withdrawn_offers: Vec<TaskIndex>,
    /// Messages that must be published after the commit, even if this process dies.
    pub outbox: Vec<Message>,
    /// When the sweep should look at the run again; none once it has ended.
    pub recheck: Recheck,
}

/// A signal that was sent to a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Signal {
    /// The name that `wait_for_signal` tasks refer to.
    pub name: String,
    /// The data that the sender attached.
    pub payload: Value,
}

/// When the sweep should look at a run again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recheck {
    /// When it was due before: steps of a run do not change it.
    Keep,
    /// At this instant, whatever was set before.
    At(Instant),
    /// At this instant, or when it was due before if that is earlier.
    By(Instant),
    /// Never: the run has ended, or nothing that it waits for can get lost.
    Never,
}

/// An attempt that is over, kept for the task's history. The current attempt is in the task's own row.
#[derive(Clone, PartialEq, Debug)]
pub struct AttemptRecord {
    /// The task it was an attempt at.
    pub task: TaskIndex,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// How it ended: `succeeded`, `failed` or `cancelled`.
    pub state: TaskState,
    /// The worker that held it.
    pub worker: Option<WorkerId>,
    /// When a worker took it.
    pub started_at: Option<Instant>,
    /// When it ended or was given up.
    pub finished_at: Instant,
    /// The reason of the failure, if it failed.
    pub failure: Option<Failure>,
    /// Whether another attempt follows and why, in words.
    pub decision: String,
    /// When the next attempt may begin, if this one is followed by another.
    pub next_attempt_at: Option<Instant>,
}
