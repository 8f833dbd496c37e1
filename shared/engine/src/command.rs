//! What can be said about a run: commands, what they reach, and whether they changed anything.

use chrono::TimeDelta;
use model::message::TaskResult;
use model::{Audit, Failure, Instant, TaskIndex, TimerKind, WorkerId};
use serde_json::Value;

/// Something that happened, or that someone asks for, about one run.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// A worker asks for an attempt.
    Claim {
        /// The task.
        task: TaskIndex,
        /// The attempt it was sent.
        attempt: u32,
        /// Who asks.
        worker: WorkerId,
    },
    /// An attempt was carried out.
    Report {
        /// The task.
        task: TaskIndex,
        /// Which try.
        attempt: u32,
        /// Who carried it out; none if nobody claimed it.
        worker: Option<WorkerId>,
        /// When it began.
        started_at: Instant,
        /// What came of it.
        result: TaskResult,
    },
    /// The worker that held an attempt is gone.
    Lose {
        /// The task.
        task: TaskIndex,
        /// The attempt it held.
        attempt: u32,
        /// The worker.
        worker: WorkerId,
    },
    /// The worker that holds an attempt has to end before the attempt does.
    HandBack {
        /// The task.
        task: TaskIndex,
        /// The attempt it holds.
        attempt: u32,
        /// The worker.
        worker: WorkerId,
        /// Why it has to end.
        reason: String,
    },
    /// A timer is due.
    Wake {
        /// The task; none for the run's own.
        task: Option<TaskIndex>,
        /// The attempt that set it.
        attempt: u32,
        /// What it is for.
        kind: TimerKind,
    },
    /// A sensor looked, and is to look again.
    Polled {
        /// The task.
        task: TaskIndex,
        /// Its attempt.
        attempt: u32,
        /// Why it could not see anything; none if there was nothing to see.
        failure: Option<Failure>,
    },
    /// The run that executed a shared task gave it up: the tasks that waited for it must find another way.
    Rejoin {
        /// The task that waited.
        task: TaskIndex,
        /// Its attempt.
        attempt: u32,
    },
    /// A place is there for a task that stood in line.
    Release {
        /// The task.
        task: TaskIndex,
        /// The attempt that asked.
        attempt: u32,
    },
    /// Others in the run's group have ended: it may begin.
    Admit,
    /// Someone was told what became of the run, or could not be.
    CalledBack {
        /// Whom and how, in words.
        what: String,
        /// Why they could not be told.
        error: Option<String>,
    },
    /// A signal was sent to the run.
    Signal {
        /// Its name.
        name: String,
        /// What it carries.
        payload: Value,
        /// Who sent it.
        actor: String,
    },
    /// Someone answered a request for approval.
    Answer {
        /// The task that asks.
        task: TaskIndex,
        /// Whether they approve.
        approved: bool,
        /// What they filled in, or why not.
        payload: Value,
        /// Who.
        actor: String,
    },
    /// Someone wants the run ended.
    Cancel {
        /// Who.
        actor: String,
        /// Why, if they said so.
        reason: Option<String>,
    },
    /// Someone steers the run, or one of its tasks.
    Operate {
        /// What they want.
        operation: Operation,
        /// Who they are.
        by: By,
    },
    /// What is noted about the run is to fit what its rows come to.
    PutRight {
        /// What they come to.
        audit: Audit,
    },
    /// Time to look whether anything got lost.
    Recheck {
        /// How long a dispatched task may wait before its message counts as lost.
        patience: TimeDelta,
    },
}

/// Who wants something, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct By {
    /// Who.
    pub actor: String,
    /// Why, if they said so.
    pub reason: Option<String>,
}

/// What someone wants of a run or of one of its tasks.
#[derive(Clone, PartialEq, Debug)]
pub enum Operation {
    /// Nothing new shall begin; what runs may finish.
    Pause,
    /// What was held back by a pause goes on.
    Resume,
    /// Reruns whatever failed or was cancelled, with everything downstream.
    Retry,
    /// The run is looked at now for anything that got lost.
    Evaluate,
    /// Reruns the task, with everything downstream.
    Clear(TaskIndex),
    /// The task has ended so, whatever it says itself.
    Mark(TaskIndex, Mark),
    /// The task's sleep, or the delay before its next attempt, is over.
    Wake(TaskIndex),
}

/// How a person says that a task ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Mark {
    /// Well, with this output; null for none.
    Succeeded(Value),
    /// Badly.
    Failed,
}

/// Which tasks a command is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reach {
    /// None: only the run itself.
    Run,
    /// This one.
    One(TaskIndex),
    /// This one, and its direct dependants if it ends.
    Neighbourhood(TaskIndex),
    /// Those that wait for a signal of this name, and their direct dependants.
    Waiting(String),
    /// All that have not ended.
    Unfinished,
    /// All, and what the switches among them chose.
    All,
}

impl Command {
    /// Which tasks must be in the slice before the command is decided.
    pub fn reach(&self) -> Reach {
        match self {
            Self::Claim { task, .. }
            | Self::Release { task, .. }
            | Self::HandBack { task, .. }
            | Self::Polled { task, .. } => Reach::One(*task),
            Self::Report { task, .. }
            | Self::Lose { task, .. }
            | Self::Wake { task: Some(task), .. }
            | Self::Rejoin { task, .. }
            | Self::Answer { task, .. } => Reach::Neighbourhood(*task),
            Self::Signal { name, .. } => Reach::Waiting(name.clone()),
            Self::CalledBack { .. } | Self::PutRight { .. } => Reach::Run,
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
    /// It did.
    Applied,
    /// The task or run had moved on: nothing was changed.
    Stale,
}
