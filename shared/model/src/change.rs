//! What one decision changes in one run: rows to write in one transaction, nothing else.

use serde_json::Value;

use crate::{Event, Failure, Instant, Message, Run, Task, TaskIndex, TaskState, Timer, WorkerId};

/// The rows that a decision about one run writes. Rows carry the revision they were read at; the store
/// writes each only over that revision.
#[derive(Clone, PartialEq, Debug)]
pub struct Changes {
    /// The run as it shall be.
    pub run: Run,
    /// The tasks that changed, as they shall be.
    pub tasks: Vec<Task>,
    /// The tasks that came into being: children of a fan-out.
    pub new_tasks: Vec<Task>,
    /// The items that children are about.
    pub items: Vec<(TaskIndex, Value)>,
    /// Tasks whose earlier output counts no longer.
    pub withdrawn: Vec<TaskIndex>,
    /// Outputs of tasks that succeeded, after those that count no longer are gone.
    pub outputs: Vec<(TaskIndex, Value)>,
    /// Attempts that are over, though their task goes on or ended by another one.
    pub attempts: Vec<AttemptRecord>,
    /// Events in order; the first one's number is what `run.events` was before them.
    pub events: Vec<Event>,
    /// Timers to set, after those that are no longer wanted are gone.
    pub timers: Vec<Timer>,
    /// Whose timers are no longer wanted: a task's, or the run's own.
    pub unset_timers: Vec<Option<TaskIndex>>,
    /// Signals that came before anyone waited for them.
    pub kept_signals: Vec<Signal>,
    /// Names of kept signals that somebody took.
    pub taken_signals: Vec<String>,
    /// Tasks carried out for several runs that ended, and whether well.
    pub shares_ended: Vec<(TaskIndex, bool)>,
    /// Tasks that no longer wait for one of another run.
    pub waits_over: Vec<TaskIndex>,
    /// Messages that must go out once this is committed, whatever happens to the process.
    pub outbox: Vec<Message>,
    /// When the sweep should look at the run again; none once it has ended.
    pub recheck: Recheck,
}

/// A signal that was sent to a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Signal {
    /// What it is called.
    pub name: String,
    /// What it carries.
    pub payload: Value,
}

/// When the sweep should look at a run again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recheck {
    /// As was set before: steps of a run do not touch it.
    Keep,
    /// At this instant.
    At(Instant),
    /// At this instant, or at the one that was set before if that is earlier.
    By(Instant),
    /// Never: the run has ended, or nothing of what it waits for can get lost.
    Never,
}

/// One attempt that is over, kept for its history. The attempt in hand is in the task's own row.
#[derive(Clone, PartialEq, Debug)]
pub struct AttemptRecord {
    /// The task.
    pub task: TaskIndex,
    /// The attempt's number.
    pub attempt: u32,
    /// How it ended: `succeeded`, `failed` or `cancelled`.
    pub state: TaskState,
    /// Who held it.
    pub worker: Option<WorkerId>,
    /// When a worker took it.
    pub started_at: Option<Instant>,
    /// When it ended.
    pub finished_at: Instant,
    /// What went wrong.
    pub failure: Option<Failure>,
    /// What was decided about another try, in words.
    pub decision: String,
}
