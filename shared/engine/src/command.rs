//! Commands about a run, the tasks they reach, and whether they changed anything.

use chrono::TimeDelta;
use model::message::TaskResult;
use model::{Audit, Failure, Instant, ServedQueues, Task, TaskIndex, TaskState, TimerKind, WorkerId};
use serde_json::Value;

/// Something that happened to one run, or that someone requests of it.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// A worker claims an attempt.
    Claim {
        /// The task to execute.
        task: TaskIndex,
        /// The attempt in its work message.
        attempt: u32,
        /// The worker that claims it.
        worker: WorkerId,
    },
    /// A worker reports the result of an attempt.
    Report {
        /// The task that was executed.
        task: TaskIndex,
        /// The number of the attempt.
        attempt: u32,
        /// The worker; none if the attempt was not claimed.
        worker: Option<WorkerId>,
        /// When the worker began the attempt.
        started_at: Instant,
        /// How the attempt ended.
        result: TaskResult,
    },
    /// A command that counts only if a task is as its sender expects it.
    Expecting {
        /// How the task must be.
        task: ExpectedTask,
        /// The command that then counts.
        then: Box<Command>,
    },
    /// The worker that held an attempt is dead.
    Lose {
        /// The task that was running.
        task: TaskIndex,
        /// The attempt it held.
        attempt: u32,
        /// The worker whose heartbeats stopped.
        worker: WorkerId,
    },
    /// The worker that holds an attempt has to stop before the attempt ends.
    HandBack {
        /// The task that is running.
        task: TaskIndex,
        /// The attempt it holds.
        attempt: u32,
        /// The worker that has to stop.
        worker: WorkerId,
        /// Why it has to stop.
        reason: String,
        /// Whether another attempt does no harm: this one saved a checkpoint, from which the next one resumes, or it never
        /// reached its worker.
        saved: bool,
    },
    /// A timer is due.
    Wake {
        /// The task that set it; none for the run's own.
        task: Option<TaskIndex>,
        /// The attempt that set it.
        attempt: u32,
        /// The purpose of the timer.
        kind: TimerKind,
    },
    /// A sensor polled, and has to poll again.
    Polled {
        /// The task of the sensor.
        task: TaskIndex,
        /// The attempt that polls.
        attempt: u32,
        /// Why the poll failed; none if its condition does not hold yet.
        failure: Option<Failure>,
    },
    /// The run that executed a shared task gave it up: the tasks that wait for it are dispatched themselves.
    Rejoin {
        /// The task that waits.
        task: TaskIndex,
        /// The attempt that waits.
        attempt: u32,
    },
    /// A queued task was granted the slots it waited for.
    Release {
        /// The task that waited.
        task: TaskIndex,
        /// The attempt that requested them.
        attempt: u32,
    },
    /// Others in the run's concurrency group have ended: it may begin.
    Admit,
    /// A callback about the run was delivered, or could not be.
    CalledBack {
        /// The callback and its receiver, in words.
        what: String,
        /// Why it could not be delivered.
        error: Option<String>,
    },
    /// A signal was sent to the run.
    Signal {
        /// The name that tasks wait for.
        name: String,
        /// The data that the sender attached.
        payload: Value,
        /// Who sent the signal.
        actor: String,
    },
    /// Someone decided about an approval.
    Answer {
        /// The task that asks.
        task: TaskIndex,
        /// Whether the task may go on.
        approved: bool,
        /// The form they filled in, or why they refused.
        payload: Value,
        /// The person who decided.
        actor: String,
    },
    /// Someone cancels the run.
    Cancel {
        /// The person or policy that cancels.
        actor: String,
        /// Why, if they gave a reason.
        reason: Option<String>,
    },
    /// Someone operates the run, or one of its tasks.
    Operate {
        /// The operation that the person requested.
        operation: Operation,
        /// Who requests it, and why.
        by: By,
    },
    /// Counts the run's tasks again, and corrects its counters.
    Recount {
        /// The totals of the rows.
        audit: Audit,
    },
    /// Repairs what was lost: messages that had no effect, attempts that never ended.
    Recheck {
        /// How long a dispatched task may wait before its message is considered lost.
        claim_timeout: TimeDelta,
        /// The queues that remote workers serve; none if the sender does not know.
        served: Option<ServedQueues>,
    },
}

/// How a task must be for a command to count. While a task is at the same attempt it never returns to a state, so one that is
/// as it was when it was read has not moved since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExpectedTask {
    /// The index of the task.
    pub task: TaskIndex,
    /// The state it must be in.
    pub state: TaskState,
    /// The attempt it must be at.
    pub attempt: u32,
    /// The worker that must hold it; none if no worker may.
    pub worker: Option<WorkerId>,
}

impl From<&Task> for ExpectedTask {
    /// The task as it was read.
    fn from(task: &Task) -> Self {
        Self { task: task.index, state: task.state, attempt: task.attempt, worker: task.worker }
    }
}

/// Who requests something, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct By {
    /// The person or policy that requests it.
    pub actor: String,
    /// Why, if they gave a reason.
    pub reason: Option<String>,
}

/// A person's request about a run or one of its tasks.
#[derive(Clone, PartialEq, Debug)]
pub enum Operation {
    /// Begin no more tasks; running ones may finish.
    Pause,
    /// Begin the tasks that the pause held back.
    Resume,
    /// Rerun all tasks that failed or were cancelled, with everything downstream.
    Retry,
    /// Recheck the run now.
    Evaluate,
    /// Rerun the task, with everything downstream.
    Clear(TaskIndex),
    /// End the task this way, whatever its own result.
    Mark(TaskIndex, Mark),
    /// End the task's sleep, or the delay before its next attempt.
    Wake(TaskIndex),
}

/// How a person ends a task.
#[derive(Clone, PartialEq, Debug)]
pub enum Mark {
    /// It succeeded with this output; null for none.
    Succeeded(Value),
    /// It failed, in the name of the person.
    Failed,
}

/// The tasks that a command is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reach {
    /// None of them, only the run itself.
    Run,
    /// This task and no other.
    One(TaskIndex),
    /// This task, and its direct dependants if it ends.
    Neighbourhood(TaskIndex),
    /// The tasks that wait for a signal of this name, and their direct dependants.
    Waiting(String),
    /// All tasks that have not ended.
    Unfinished,
    /// All tasks, and what the switches among them chose.
    All,
}

impl Command {
    /// The tasks that must be in the slice before the command is decided.
    pub fn reach(&self) -> Reach {
        match self {
            Self::Claim { task, .. } | Self::Release { task, .. } | Self::Polled { task, .. } => {
                Reach::One(*task)
            }
            Self::Expecting { then, .. } => then.reach(),
            Self::Report { task, .. }
            | Self::HandBack { task, .. }
            | Self::Lose { task, .. }
            | Self::Wake { task: Some(task), .. }
            | Self::Rejoin { task, .. }
            | Self::Answer { task, .. } => Reach::Neighbourhood(*task),
            Self::Signal { name, .. } => Reach::Waiting(name.clone()),
            Self::CalledBack { .. } | Self::Recount { .. } => Reach::Run,
            Self::Operate { operation, .. } => match operation {
                Operation::Pause | Operation::Resume | Operation::Evaluate => Reach::Unfinished,
                Operation::Retry | Operation::Clear(_) | Operation::Mark(..) => Reach::All,
                Operation::Wake(task) => Reach::Neighbourhood(*task),
            },
            Self::Wake { task: None, .. } | Self::Admit | Self::Cancel { .. } | Self::Recheck { .. } => {
                Reach::Unfinished
            }
        }
    }
}

/// Whether a command changed anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The run or one of its tasks changed.
    Applied,
    /// The task or run had moved on: nothing changed. A claim that a breaker refuses is stale, too: the attempt it names is
    /// taken back at that moment.
    Stale,
}
