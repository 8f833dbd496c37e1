//! What travels on the bus: one closed set of versioned messages. They carry ids; data stays in the store.
//!
//! A new field needs `#[serde(default)]`; a changed meaning needs a new type.

mod lifecycle;
mod polls;
mod topic;
mod workers;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Child, Failure, Instant, Parent, RunId, RunState, TaskIndex, TaskKey, TaskState, TenantId, VersionId,
    WorkerId,
};

pub use lifecycle::{RunFinished, TaskFinished};
pub use polls::{PollDue, Watch};
pub use topic::Topic;
pub use workers::{WorkerHeartbeat, WorkerKill, WorkerRegistered};

/// The queue whose executors carry out callbacks.
pub const CALLBACK_QUEUE: &str = "light";

/// Declares the closed set of messages: each variant carries the body of the same name and has one versioned type.
macro_rules! messages {
    ($($(#[$doc:meta])+ $name:ident = $kind:literal,)+) => {
        /// One message.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Message {
            $($(#[$doc])+ $name($name),)+
        }

        impl Message {
            /// The versioned type, as it stands in the CloudEvent.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => $kind,)+
                }
            }

            /// The data of the CloudEvent.
            pub fn data(&self) -> Value {
                let data = match self {
                    $(Self::$name(body) => serde_json::to_value(body),)+
                };
                data.expect("message bodies have string keys only")
            }

            /// The data of the CloudEvent, written.
            pub fn written(&self) -> Vec<u8> {
                let data = match self {
                    $(Self::$name(body) => serde_json::to_vec(body),)+
                };
                data.expect("message bodies have string keys only")
            }

            /// The message of that type and data.
            pub fn decode(kind: &str, data: Value) -> Result<Self, DecodeError> {
                let bad = |source| DecodeError::BadData { kind: kind.into(), source };
                match kind {
                    $($kind => serde_json::from_value(data).map(Self::$name).map_err(bad),)+
                    other => Err(DecodeError::UnknownType(other.into())),
                }
            }

            /// The message of that type and written data.
            pub fn read(kind: &str, data: &[u8]) -> Result<Self, DecodeError> {
                let bad = |source| DecodeError::BadData { kind: kind.into(), source };
                match kind {
                    $($kind => serde_json::from_slice(data).map(Self::$name).map_err(bad),)+
                    other => Err(DecodeError::UnknownType(other.into())),
                }
            }
        }
    };
}

messages! {
    /// Someone asks for a run.
    RunRequested = "dev.ebbflow.run.requested.v1",
    /// Someone asks for a run's end.
    CancelRequested = "dev.ebbflow.run.cancel_requested.v1",
    /// An attempt waits to be carried out.
    TaskDispatched = "dev.ebbflow.task.dispatched.v1",
    /// An attempt was carried out.
    TaskReported = "dev.ebbflow.task.reported.v1",
    /// Look at this run again.
    RunNudged = "dev.ebbflow.run.nudged.v1",
    /// A run that a task waits for ended.
    ChildFinished = "dev.ebbflow.child.finished.v1",
    /// A task that several runs share ended.
    SharedFinished = "dev.ebbflow.shared.finished.v1",
    /// A run ended that others may have waited for.
    ConcurrencyGroupFreed = "dev.ebbflow.concurrency_group.freed.v1",
    /// Someone wants to be told.
    CallbackDue = "dev.ebbflow.callback.due.v1",
    /// A sensor should look.
    PollDue = "dev.ebbflow.poll.due.v1",
    /// What someone wanted to be told by message.
    Notice = "dev.ebbflow.notice.v1",
    /// A timer is due before the sweep's next tick.
    TimerArmed = "dev.ebbflow.timer.armed.v1",
    /// A worker says who it is.
    WorkerRegistered = "dev.ebbflow.worker.registered.v1",
    /// A worker says that it lives.
    WorkerHeartbeat = "dev.ebbflow.worker.heartbeat.v1",
    /// Someone wants a worker ended at once.
    WorkerKill = "dev.ebbflow.worker.kill.v1",
    /// A run ended.
    RunFinished = "dev.ebbflow.run.finished.v1",
    /// A task ended.
    TaskFinished = "dev.ebbflow.task.finished.v1",
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
    /// What asks: `message` if it does not say.
    #[serde(default = "RunRequested::usual_trigger")]
    pub trigger: String,
    /// The task that waits for it, or that let it go its own way.
    #[serde(default)]
    pub parent: Option<Parent>,
    /// Added to the priority of each of its tasks.
    #[serde(default)]
    pub priority: i32,
}

impl RunRequested {
    fn usual_trigger() -> String {
        "message".into()
    }
}

/// Someone asks for a run's end.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CancelRequested {
    /// The run.
    pub run: RunId,
    /// Who asks.
    pub actor: String,
    /// Why.
    pub reason: String,
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
    /// The group.
    pub queue: String,
    /// Its place, if it is a child of a fan-out.
    #[serde(default)]
    pub child: Option<Child>,
    /// When all its attempts together have taken as long as they may.
    #[serde(default)]
    pub give_up_at: Option<Instant>,
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

/// A run that a task waits for ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ChildFinished {
    /// The task that waits.
    pub parent: Parent,
    /// The run that ended.
    pub child: RunId,
    /// Its version, which says what it delivers.
    pub version: VersionId,
    /// How.
    pub state: RunState,
    /// Why it failed.
    #[serde(default)]
    pub error: Option<String>,
}

/// A task that several runs share ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SharedFinished {
    /// The task that was carried out for all of them.
    pub owner: TaskKey,
    /// How it ended.
    pub state: TaskState,
    /// Why it failed.
    #[serde(default)]
    pub failure: Option<Failure>,
}

/// A run ended that others may have waited for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ConcurrencyGroupFreed {
    /// Whose.
    pub tenant: TenantId,
    /// Of which workflow.
    pub workflow: String,
    /// The concurrency key, rendered.
    pub group: String,
}

/// Someone wants to be told.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CallbackDue {
    /// The run it is about.
    pub run: RunId,
    /// Whose.
    pub tenant: TenantId,
    /// The run's version, whose definition says what to do.
    pub version: VersionId,
    /// The task whose callback it is; none for one of the workflow's own.
    #[serde(default)]
    pub task: Option<TaskIndex>,
    /// Its place, if it is a child of a fan-out.
    #[serde(default)]
    pub child: Option<Child>,
    /// Its place among the callbacks there.
    pub place: u32,
    /// What happened, as templates see it.
    pub event: Value,
}

/// What someone wanted to be told by message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Notice {
    /// The id of the topic.
    pub topic: String,
    /// The run it is about.
    pub run: RunId,
    /// What to tell.
    pub body: Value,
}

/// A timer is due before the sweep's next tick.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TimerArmed {
    /// When.
    pub wake_at: Instant,
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

impl Message {
    /// Where it goes.
    pub fn topic(&self) -> Topic {
        match self {
            Self::RunRequested(_) => Topic::Triggers,
            Self::TaskDispatched(work) => Topic::Work(work.queue.clone()),
            Self::CallbackDue(_) => Topic::Work(CALLBACK_QUEUE.into()),
            Self::PollDue(due) => Topic::Work(due.queue.clone()),
            Self::CancelRequested(_)
            | Self::TaskReported(_)
            | Self::RunNudged(_)
            | Self::ChildFinished(_)
            | Self::SharedFinished(_)
            | Self::ConcurrencyGroupFreed(_) => Topic::Evaluations,
            Self::Notice(notice) => Topic::Named(notice.topic.clone()),
            Self::TimerArmed(_)
            | Self::WorkerRegistered(_)
            | Self::WorkerHeartbeat(_)
            | Self::WorkerKill(_) => Topic::Management,
            Self::RunFinished(_) | Self::TaskFinished(_) => Topic::Lifecycle,
        }
    }

    /// The run it is about, if it is about one.
    pub fn run(&self) -> Option<RunId> {
        match self {
            Self::RunRequested(body) => Some(body.run),
            Self::CancelRequested(body) => Some(body.run),
            Self::TaskDispatched(body) => Some(body.key.run),
            Self::TaskReported(body) => Some(body.key.run),
            Self::RunNudged(body) => Some(body.run),
            Self::ChildFinished(body) => Some(body.parent.key.run),
            Self::SharedFinished(body) => Some(body.owner.run),
            Self::CallbackDue(body) => Some(body.run),
            Self::Notice(body) => Some(body.run),
            Self::PollDue(PollDue { watch: Watch::Task { key, .. }, .. }) => Some(key.run),
            Self::PollDue(PollDue { watch: Watch::Trigger { .. }, .. }) => None,
            Self::RunFinished(body) => Some(body.run),
            Self::TaskFinished(body) => Some(body.run),
            Self::ConcurrencyGroupFreed(_)
            | Self::TimerArmed(_)
            | Self::WorkerRegistered(_)
            | Self::WorkerHeartbeat(_)
            | Self::WorkerKill(_) => None,
        }
    }
}
