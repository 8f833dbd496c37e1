//! The vocabulary of Ebbflow, in reading order. Nothing here waits, reads a clock or fails on a network.
//!
//! - **tenant**: whose work it is.
//! - **workflow**: a named definition; a **version** is one immutable copy of it.
//! - **run**: one execution of a version. **task**: one node of a run. **attempt**: one try at a task.
//! - **output**: the JSON that an attempt returned.
//! - **queue**: a named group of execution. **worker**: an instance that executes attempts now.
//! - **slot**: what a task holds while it is active; a **limit** sets how many there are.
//! - **timer**: a durable row saying "at T, do this".
//! - **event**: an append-only record of a state change.
//! - **trigger**: what starts runs by itself: an event elsewhere, a webhook, another workflow's end, a sensor.

pub mod audit;
pub mod breaker;
pub mod change;
pub mod clock;
pub mod custom_type;
pub mod event;
pub mod failure;
mod fan_out;
pub mod ids;
pub mod instant;
pub mod json_error;
pub mod message;
pub mod offer;
pub mod pace;
pub mod progress;
pub mod queue;
pub mod resources;
pub mod retry;
pub mod run;
pub mod schedule;
pub mod script_path;
pub mod secret_name;
pub mod served;
pub mod slot;
pub mod task;
pub mod task_kind;
pub mod tenant_name;
pub mod timer;
pub mod trigger;
pub mod wait_queue;
pub mod worker;
pub mod workflow;

pub use audit::Audit;
pub use breaker::{Breaker, BreakerGate, BreakerKey, BreakerKind, BreakerRead, BreakerSpec, Opening};
pub use change::{AttemptRecord, Changes, Signal};
pub use clock::Clock;
pub use custom_type::{CustomType, TypeName};
pub use event::{Event, EventKind};
pub use failure::{ErrorClass, Failure};
pub use fan_out::{Aggregation, FanIn, FanOut, Tolerance};
pub use ids::{BackfillId, RunId, TaskIndex, TaskKey, TenantId, VersionId, WorkerId};
pub use message::{Message, Topic};
pub use offer::{Candidate, Demand, Label, Labels, NewOffer, Offer, OfferGroup};
pub use pace::Pace;
pub use progress::{Done, Progress, ProgressReport, Series};
pub use queue::{InstalledQueue, QueueKind, Queues};
pub use resources::{NetworkAccess, Resources};
pub use retry::{Backoff, FailurePattern, NOT_STARTED_EXIT_CODES, RetryPolicy, UnknownClass};
pub use run::{Counts, Parent, Run, RunEvent, RunState};
pub use schedule::{Catchup, Interval, Planned, Schedule, When};
pub use script_path::{InvalidScriptPath, ScriptPath};
pub use secret_name::{InvalidSecretName, SecretName};
pub use served::{Abilities, Lack, ServedQueues};
pub use slot::{Admission, FairnessGroup, Limit, Needed, SlotRelease, SlotRequest, Weight, rank};
pub use task::{Child, Fan, IllegalMove, Task, TaskEvent, TaskState};
pub use task_kind::{Execution, TaskKind, WaitsFor};
pub use tenant_name::{InvalidTenantName, TenantName};
pub use timer::{Timer, TimerKind};
pub use trigger::{CloudEvent, Completion, Pacing, Trigger, TriggerKey, TriggerOn};
pub use wait_queue::Granted;
pub use worker::{OpenBreaker, RemoteFacts, ResourceUsage, WorkerCommand, WorkerCommandKind, WorkerFacts};
pub use workflow::{
    Call, Callback, Case, Concurrency, DEFAULT_DISPATCH_TIMEOUT, Global, InputSpec, InputType, Occasion,
    Overlap, TaskSpec, TriggerRule, Workflow,
};

/// The instant type used everywhere: UTC, microsecond precision once stored.
pub type Instant = chrono::DateTime<chrono::Utc>;
