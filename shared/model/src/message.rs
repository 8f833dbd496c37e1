//! What travels on the bus: one closed set of versioned messages. They carry ids; data stays in the store.
//!
//! A new field needs `#[serde(default)]`; a changed meaning needs a new type.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{
    Failure, Instant, RunId, RunState, TaskIndex, TaskKey, TaskState, TenantId, VersionId, WorkerId,
};

/// Where a message goes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Topic {
    /// Requests to create runs.
    Triggers,
    /// Results and nudges for evaluate.
    Evaluations,
    /// Attempts to carry out, one topic per queue.
    Work(String),
    /// To and about workers, and the sweep's wake-up calls.
    Management,
    /// Outgoing: runs and tasks that finished, for anyone to subscribe.
    Lifecycle,
}

impl Topic {
    /// The topic's id on the bus.
    pub fn id(&self) -> String {
        match self {
            Self::Triggers => "ebbflow-triggers".into(),
            Self::Evaluations => "ebbflow-evaluations".into(),
            Self::Work(queue) => format!("ebbflow-work-{queue}"),
            Self::Management => "ebbflow-management".into(),
            Self::Lifecycle => "ebbflow-lifecycle".into(),
        }
    }

    /// The id of the topic that takes what could not be delivered.
    pub fn dead_letter_id(&self) -> String {
        format!("{}-dead-letters", self.id())
    }
}

/// One message.
#[derive(Clone, PartialEq, Debug)]
pub enum Message {
    /// Someone asks for a run.
    RunRequested(RunRequested),
    /// An attempt waits to be carried out.
    TaskDispatched(TaskDispatched),
    /// An attempt was carried out.
    TaskReported(TaskReported),
    /// Look at this run again.
    RunNudged(RunNudged),
    /// A timer is due before the sweep's next tick.
    TimerArmed(TimerArmed),
    /// A run ended.
    RunFinished(RunFinished),
    /// A task ended.
    TaskFinished(TaskFinished),
}

/// Someone asks for a run. The id is chosen by the sender, so a second copy asks for the same run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunRequested {
    /// The run to create.
    pub run: RunId,
    /// For whom.
    pub tenant: TenantId,
    /// Of which workflow.
    pub workflow: String,
    /// Its inputs.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// The date it is about, if it is about one.
    #[serde(default)]
    pub logical_date: Option<Instant>,
    /// Labels to find it by.
    #[serde(default)]
    pub labels: Map<String, Value>,
}

/// An attempt waits to be carried out.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TaskDispatched {
    /// The task.
    #[serde(flatten)]
    pub key: TaskKey,
    /// Whose it is.
    pub tenant: TenantId,
    /// Which try; a task that has moved on ignores the message.
    pub attempt: u32,
    /// The run's version, so that its graph can be had without asking the store.
    pub version: VersionId,
    /// The lane.
    pub queue: String,
}

/// An attempt was carried out.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TaskReported {
    /// The task.
    #[serde(flatten)]
    pub key: TaskKey,
    /// Which try.
    pub attempt: u32,
    /// Who carried it out, where it was claimed.
    #[serde(default)]
    pub worker: Option<WorkerId>,
    /// When it began.
    pub started_at: Instant,
    /// What came of it.
    pub result: TaskResult,
}

/// What came of an attempt.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskResult {
    /// It delivered this output; null is no output.
    Succeeded(Value),
    /// It did not.
    Failed(Failure),
}

/// Look at this run again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunNudged {
    /// The run.
    pub run: RunId,
}

/// A timer is due before the sweep's next tick.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TimerArmed {
    /// When.
    pub wake_at: Instant,
}

/// A run ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunFinished {
    /// The run.
    pub run: RunId,
    /// Whose.
    pub tenant: TenantId,
    /// Of which workflow.
    pub workflow: String,
    /// How.
    pub state: RunState,
    /// When.
    pub finished_at: Instant,
}

/// A task ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TaskFinished {
    /// The run.
    pub run: RunId,
    /// Whose.
    pub tenant: TenantId,
    /// Of which workflow.
    pub workflow: String,
    /// The task's place.
    pub task: TaskIndex,
    /// The task's name.
    pub name: String,
    /// How.
    pub state: TaskState,
    /// When.
    pub finished_at: Instant,
}

/// A body that is no message of ours.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The type is not one of ours.
    #[error("unknown message type `{0}`")]
    UnknownType(String),
    /// The type is ours, the data is not.
    #[error("`{kind}` does not fit its type: {source}")]
    BadData {
        /// The message's type.
        kind: String,
        /// What is wrong.
        source: serde_json::Error,
    },
}

const RUN_REQUESTED: &str = "dev.ebbflow.run.requested.v1";
const TASK_DISPATCHED: &str = "dev.ebbflow.task.dispatched.v1";
const TASK_REPORTED: &str = "dev.ebbflow.task.reported.v1";
const RUN_NUDGED: &str = "dev.ebbflow.run.nudged.v1";
const TIMER_ARMED: &str = "dev.ebbflow.timer.armed.v1";
const RUN_FINISHED: &str = "dev.ebbflow.run.finished.v1";
const TASK_FINISHED: &str = "dev.ebbflow.task.finished.v1";

impl Message {
    /// The versioned type, as it stands in the CloudEvent.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RunRequested(_) => RUN_REQUESTED,
            Self::TaskDispatched(_) => TASK_DISPATCHED,
            Self::TaskReported(_) => TASK_REPORTED,
            Self::RunNudged(_) => RUN_NUDGED,
            Self::TimerArmed(_) => TIMER_ARMED,
            Self::RunFinished(_) => RUN_FINISHED,
            Self::TaskFinished(_) => TASK_FINISHED,
        }
    }

    /// Where it goes.
    pub fn topic(&self) -> Topic {
        match self {
            Self::RunRequested(_) => Topic::Triggers,
            Self::TaskDispatched(work) => Topic::Work(work.queue.clone()),
            Self::TaskReported(_) | Self::RunNudged(_) => Topic::Evaluations,
            Self::TimerArmed(_) => Topic::Management,
            Self::RunFinished(_) | Self::TaskFinished(_) => Topic::Lifecycle,
        }
    }

    /// The run it is about, if it is about one.
    pub fn run(&self) -> Option<RunId> {
        match self {
            Self::RunRequested(request) => Some(request.run),
            Self::TaskDispatched(work) => Some(work.key.run),
            Self::TaskReported(report) => Some(report.key.run),
            Self::RunNudged(nudge) => Some(nudge.run),
            Self::TimerArmed(_) => None,
            Self::RunFinished(finished) => Some(finished.run),
            Self::TaskFinished(finished) => Some(finished.run),
        }
    }

    /// The data of the CloudEvent.
    pub fn data(&self) -> Value {
        let data = match self {
            Self::RunRequested(body) => serde_json::to_value(body),
            Self::TaskDispatched(body) => serde_json::to_value(body),
            Self::TaskReported(body) => serde_json::to_value(body),
            Self::RunNudged(body) => serde_json::to_value(body),
            Self::TimerArmed(body) => serde_json::to_value(body),
            Self::RunFinished(body) => serde_json::to_value(body),
            Self::TaskFinished(body) => serde_json::to_value(body),
        };
        data.expect("message bodies have string keys only")
    }

    /// The message of that type and data.
    pub fn decode(kind: &str, data: Value) -> Result<Self, DecodeError> {
        fn body<T: DeserializeOwned>(kind: &str, data: Value) -> Result<T, DecodeError> {
            serde_json::from_value(data).map_err(|source| DecodeError::BadData { kind: kind.into(), source })
        }
        Ok(match kind {
            RUN_REQUESTED => Self::RunRequested(body(kind, data)?),
            TASK_DISPATCHED => Self::TaskDispatched(body(kind, data)?),
            TASK_REPORTED => Self::TaskReported(body(kind, data)?),
            RUN_NUDGED => Self::RunNudged(body(kind, data)?),
            TIMER_ARMED => Self::TimerArmed(body(kind, data)?),
            RUN_FINISHED => Self::RunFinished(body(kind, data)?),
            TASK_FINISHED => Self::TaskFinished(body(kind, data)?),
            other => return Err(DecodeError::UnknownType(other.into())),
        })
    }
}
