//! The messages on the bus: one closed, versioned set. They carry ids; data stays in the store.
//!
//! A new field needs `#[serde(default)]`; a changed meaning needs a new type.

mod lifecycle;
mod polls;
mod topic;
mod workers;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::json_error;
use crate::{
    Child, Failure, Instant, Parent, RunId, RunState, TaskIndex, TaskKey, TaskState, TenantId, VersionId,
    WorkerId,
};

pub use lifecycle::{RunFinished, TaskFinished};
pub use polls::{PollDue, PollTarget};
pub use topic::Topic;
pub use workers::{WorkerHeartbeat, WorkerKill, WorkerRegistered};

/// The queue whose executors perform callbacks.
pub const CALLBACK_QUEUE: &str = "light";

/// Declares the closed set of messages: each variant carries the body of the same name and has one versioned type.
macro_rules! messages {
    ($($(#[$doc:meta])+ $name:ident = $kind:literal,)+) => {
        /// Everything that is ever published, each with its body.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Message {
            $($(#[$doc])+ $name($name),)+
        }

        impl Message {
            /// The versioned type in the CloudEvent.
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

            /// The data of the CloudEvent, as JSON text.
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

            /// The message of that type and data, read from JSON text.
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
    /// Someone asks to cancel a run.
    CancelRequested = "dev.ebbflow.run.cancel_requested.v1",
    /// An attempt is ready for a worker.
    TaskDispatched = "dev.ebbflow.task.dispatched.v1",
    /// A worker reports the result of an attempt.
    TaskReported = "dev.ebbflow.task.reported.v1",
    /// A run needs to be evaluated again.
    RunNudged = "dev.ebbflow.run.nudged.v1",
    /// A run ended that a task waits for.
    ChildFinished = "dev.ebbflow.child.finished.v1",
    /// A task ended that several runs share.
    SharedFinished = "dev.ebbflow.shared.finished.v1",
    /// A run ended whose concurrency group others may wait in.
    ConcurrencyGroupFreed = "dev.ebbflow.concurrency_group.freed.v1",
    /// A callback is to be performed.
    CallbackDue = "dev.ebbflow.callback.due.v1",
    /// A sensor is to be polled.
    PollDue = "dev.ebbflow.poll.due.v1",
    /// The body of a callback that is a message.
    Notice = "dev.ebbflow.notice.v1",
    /// A timer is due before the sweep's next tick.
    TimerArmed = "dev.ebbflow.timer.armed.v1",
    /// A worker registers itself.
    WorkerRegistered = "dev.ebbflow.worker.registered.v1",
    /// A worker sends a sign of life.
    WorkerHeartbeat = "dev.ebbflow.worker.heartbeat.v1",
    /// Someone wants a worker stopped at once.
    WorkerKill = "dev.ebbflow.worker.kill.v1",
    /// A run ended, for subscribers outside.
    RunFinished = "dev.ebbflow.run.finished.v1",
    /// A task ended, for subscribers outside.
    TaskFinished = "dev.ebbflow.task.finished.v1",
}

/// Someone asks for a run. The sender chooses the id, so a second copy asks for the same run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunRequested {
    /// The run to create.
    pub run: RunId,
    /// The tenant that the run belongs to.
    pub tenant: TenantId,
    /// The name of the workflow to run.
    pub workflow: String,
    /// The values of its inputs, by name.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// The date it is about, if it is about one.
    #[serde(default)]
    pub logical_date: Option<Instant>,
    /// Labels to find it by.
    #[serde(default)]
    pub labels: Map<String, Value>,
    /// The origin of the request; `message` by default.
    #[serde(default = "RunRequested::usual_trigger")]
    pub trigger: String,
    /// The task that starts it, whether it waits for the run or not.
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

/// Someone asks to cancel a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CancelRequested {
    /// The run to cancel.
    pub run: RunId,
    /// Who asks for it.
    pub actor: String,
    /// Why, as the run's timeline shows it.
    pub reason: String,
}

/// An attempt is ready for a worker.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TaskDispatched {
    /// The task to execute.
    #[serde(flatten)]
    pub key: TaskKey,
    /// The tenant that the run belongs to.
    pub tenant: TenantId,
    /// The number of the attempt; a task that has moved on ignores the message.
    pub attempt: u32,
    /// The run's version, so that its graph can be found without asking the store.
    pub version: VersionId,
    /// The queue whose executors take it.
    pub queue: String,
    /// Which child it is, if it is one of a fan-out.
    #[serde(default)]
    pub child: Option<Child>,
    /// When the time for all its attempts together is over.
    #[serde(default)]
    pub give_up_at: Option<Instant>,
}

/// A worker reports the result of an attempt.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TaskReported {
    /// The task that was executed.
    #[serde(flatten)]
    pub key: TaskKey,
    /// The number of the attempt.
    pub attempt: u32,
    /// The worker, if it had claimed the attempt.
    #[serde(default)]
    pub worker: Option<WorkerId>,
    /// When the worker began the attempt.
    pub started_at: Instant,
    /// How the attempt ended.
    pub result: TaskResult,
}

/// The result of an attempt.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskResult {
    /// It succeeded with this output; null is no output.
    Succeeded(Value),
    /// It failed with this error.
    Failed(Failure),
}

/// A run needs to be evaluated again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunNudged {
    /// The run to evaluate.
    pub run: RunId,
}

/// A run ended that a task waits for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ChildFinished {
    /// The task that waits.
    pub parent: Parent,
    /// The run that ended.
    pub child: RunId,
    /// Its version, which defines its output.
    pub version: VersionId,
    /// The final state of the run.
    pub state: RunState,
    /// Why it failed, if it did.
    #[serde(default)]
    pub error: Option<String>,
}

/// A task ended that several runs share.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SharedFinished {
    /// The task that was executed for all of them.
    pub owner: TaskKey,
    /// The final state of the task.
    pub state: TaskState,
    /// Why it failed, if it did.
    #[serde(default)]
    pub failure: Option<Failure>,
}

/// A run ended whose concurrency group others may wait in.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ConcurrencyGroupFreed {
    /// The tenant that the runs belong to.
    pub tenant: TenantId,
    /// The workflow that the runs are of.
    pub workflow: String,
    /// The concurrency key, rendered.
    pub group: String,
}

/// A callback is to be performed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CallbackDue {
    /// The run that it is about.
    pub run: RunId,
    /// The tenant that the run belongs to.
    pub tenant: TenantId,
    /// The run's version, whose definition has the callback.
    pub version: VersionId,
    /// The task that defines the callback; none for one of the workflow itself.
    #[serde(default)]
    pub task: Option<TaskIndex>,
    /// Which child the task is, if it is one of a fan-out.
    #[serde(default)]
    pub child: Option<Child>,
    /// The callback's position in its list.
    pub place: u32,
    /// The event, as templates see it.
    pub event: Value,
}

/// The body of a callback that is a message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Notice {
    /// The id of the topic to publish to.
    pub topic: String,
    /// The run that it is about.
    pub run: RunId,
    /// The message as the subscriber receives it.
    pub body: Value,
}

/// A timer is due before the sweep's next tick.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TimerArmed {
    /// When the timer is due.
    pub wake_at: Instant,
}

/// Why a body is not an Ebbflow message.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The type is not one of Ebbflow.
    #[error("unknown message type `{0}`")]
    UnknownType(String),
    /// The data does not fit the type.
    #[error("`{kind}` does not fit its type: {}", json_error::in_words(.source))]
    BadData {
        /// The type that the message names.
        kind: String,
        /// The part that is invalid.
        source: serde_json::Error,
    },
}

impl Message {
    /// The topic that it is published to.
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
            Self::PollDue(PollDue { target: PollTarget::Task { key, .. }, .. }) => Some(key.run),
            Self::PollDue(PollDue { target: PollTarget::Trigger { .. }, .. }) => None,
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
