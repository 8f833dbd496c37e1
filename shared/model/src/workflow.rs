//! A workflow as registered: every reference resolved, every default filled in, known to be valid.
//!
//! Only `language` builds one from what a person wrote. Its serialized form is stored in `versions.definition`, and the
//! content hash is computed from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::CALLBACK_QUEUE;
use crate::schedule::{Schedule, one_or_many};
use crate::{
    BackfillId, CustomType, FanIn, FanOut, Lack, Pacing, RetryPolicy, ServedQueues, TaskKind, TenantId,
    Trigger, TypeName,
};

/// A valid definition: at least one task, unique names, dependencies that exist and form no cycle.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Workflow {
    /// The name by which runs are requested.
    pub name: String,
    /// A description for the console.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Words by which people find it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The typed inputs, in the order in which they were written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputSpec>,
    /// When it runs by itself.
    #[serde(rename = "schedule", default, with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<Schedule>,
    /// Other sources of its runs, such as events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<Trigger>,
    /// How many of its runs may be active at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// The maximum number of its tasks under way at the same time, in all its runs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_active_tasks: Option<u32>,
    /// How long a run may take from its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// The time from a run's creation after which it has missed its deadline; the run goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_seconds: Option<u32>,
    /// Callbacks for the end of a run or the retry of one of its tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callbacks: Vec<Callback>,
    /// The tasks; a task's position here is its `TaskIndex`.
    pub tasks: Vec<TaskSpec>,
    /// The custom types of its tasks, so that a changed type makes a new version.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<TypeName, CustomType>,
}

impl Workflow {
    /// The limit that runs of a concurrency group share: the workflow's, or that of one of its schedules. A backfill counts
    /// its runs itself.
    pub fn limit_of(&self, group: &str) -> Option<Concurrency> {
        let own = |schedule: &&Schedule| Schedule::concurrency_group(&schedule.name) == group;
        let of_schedule = |schedule: &Schedule| {
            let limited = schedule.max_active_runs.is_some() || schedule.overlap.is_some();
            let limit = schedule.max_active_runs.unwrap_or(1);
            let policy = schedule.overlap.unwrap_or_default();
            limited.then_some(Concurrency { key: None, limit, policy })
        };
        if BackfillId::of_concurrency_group(group).is_some() {
            return None;
        }
        self.concurrency.clone().or_else(|| self.schedules.iter().find(own).and_then(of_schedule))
    }
}

/// How many runs of a workflow may be active at the same time, and what happens with one too many.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Concurrency {
    /// A template: runs for which it renders to the same text share the limit. Without one, all runs do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The maximum number of runs at the same time.
    pub limit: u32,
    /// The treatment of a run that exceeds the limit.
    pub policy: Overlap,
}

/// The treatment of a run that exceeds a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It waits for its turn.
    #[default]
    Queue,
    /// The others are cancelled; it starts once they have ended.
    CancelPrevious,
    /// It is not created.
    Skip,
}

/// Something to do when a run or task ends or is late.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Callback {
    /// The event that it follows.
    pub on: Occasion,
    /// The action; strings are templates.
    pub call: Call,
}

/// The events that callbacks can follow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// The run or task succeeded.
    Success,
    /// The run or task failed, and no attempt follows.
    Failure,
    /// An attempt failed, and another one follows.
    Retry,
    /// The run exceeded its `deadline_seconds`.
    MissedDeadline,
}

/// The action of a callback.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Sends a POST request.
    Webhook {
        /// The address of the request.
        url: String,
        /// The headers of the request.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        headers: Map<String, Value>,
        /// The body; by default, a description of the event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Value>,
    },
    /// Publishes a message to a topic.
    Message {
        /// The id of the topic.
        topic: String,
        /// The body; by default, a description of the event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Value>,
    },
    /// Starts a run and does not wait for it.
    Workflow {
        /// The name of the workflow to run.
        workflow: String,
        /// The inputs of the run.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        inputs: Map<String, Value>,
    },
}

/// One typed input of a workflow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InputSpec {
    /// Its name in templates: `inputs.NAME`.
    pub name: String,
    /// The type that a value must have.
    #[serde(rename = "type")]
    pub kind: InputType,
    /// A description for the form in the console.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The value when none is given; may be a template. An input without one is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The only values allowed, if any are named.
    #[serde(default, rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Value>,
}

/// The types an input can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputType {
    /// A text of any length.
    String,
    /// A number without a fraction.
    Integer,
    /// An integer or a number with a fraction.
    Number,
    /// The value `true` or `false`.
    Boolean,
    /// A calendar day, `2026-01-31`.
    Date,
    /// An instant, RFC 3339.
    Datetime,
    /// A list of anything.
    List,
    /// A mapping of names to anything.
    Object,
}

/// One task as a workflow defines it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TaskSpec {
    /// Unique within the workflow.
    pub name: String,
    /// The type of the task.
    #[serde(rename = "type")]
    pub kind: TaskKind,
    /// A description for the console.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The tasks it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// How these must have ended.
    #[serde(default)]
    pub trigger_rule: TriggerRule,
    /// An expression: if it is false, the task is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The branches of a `switch`: the first whose condition holds is taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<Case>,
    /// The task that a `fan_out` runs for each element of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_out: Option<FanOut>,
    /// How a `fan_in` combines the outputs of the fan-outs before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_in: Option<FanIn>,
    /// Settings of the task type; strings may be templates.
    #[serde(default)]
    pub config: Value,
    /// How often a sensor polls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// How often and when a failed attempt is followed by another.
    pub retry: RetryPolicy,
    /// How long one attempt may take.
    pub timeout_seconds: u32,
    /// Whether the file states `timeout_seconds`; otherwise a queue with a lower limit may shorten the default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timeout_is_explicit: bool,
    /// How long all attempts together may take, the waiting between them included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_timeout_seconds: Option<u32>,
    /// Whether a second attempt does no harm after one whose end is unknown; none if its author did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// How long a dispatched attempt waits for a worker before it fails as `not_taken`, if its author set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch_timeout_seconds: Option<u32>,
    /// When failed attempts keep further ones from beginning, in all runs of its workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<crate::BreakerSpec>,
    /// The queue whose executors take it.
    pub queue: String,
    /// Whether workers lease it, since its queue is of the kind `pool`; otherwise it is pushed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leased: bool,
    /// Tasks that name the same pool share its slots, in all workflows of a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Of the tasks of a tenant that wait for a slot, those with higher priority come first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// Whether the run may succeed although this task failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_failure: bool,
    /// How runs that need it at the same time share one execution of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global: Option<Global>,
    /// Callbacks for its end or retry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callbacks: Vec<Callback>,
    /// The maximum amounts that its program may use.
    #[serde(default, skip_serializing_if = "crate::Resources::is_unlimited")]
    pub resources: crate::Resources,
    /// What its program may reach over the network; what its worker's operator chose if the task says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<crate::NetworkAccess>,
    /// The labels that a worker must have to lease it.
    #[serde(default, skip_serializing_if = "crate::Labels::is_empty")]
    pub requires: crate::Labels,
}

/// How long a dispatched attempt waits for a worker where its author did not say.
pub const DEFAULT_DISPATCH_TIMEOUT: u32 = 600;

impl Workflow {
    /// Lets no worker lease a task: all are pushed.
    pub fn push_all(&mut self) {
        for task in &mut self.tasks {
            task.leased = false;
            task.fan_out.iter_mut().for_each(|fan_out| fan_out.task.leased = false);
        }
    }
}

impl TaskSpec {
    /// The queue that pushes about it go to. Polls of a sensor are never leased, so those of a pool go where callbacks go.
    pub fn push_queue(&self) -> &str {
        if self.leased { CALLBACK_QUEUE } else { &self.queue }
    }

    /// How long a dispatched attempt waits for a worker, in seconds.
    pub fn dispatch_timeout(&self) -> u32 {
        self.dispatch_timeout_seconds.unwrap_or(DEFAULT_DISPATCH_TIMEOUT)
    }

    /// Why no worker can lease the task; none if one can, or if it is not leased at all.
    pub fn lack(&self, tenant: TenantId, served: &ServedQueues) -> Option<Lack> {
        let lack = || served.lack(tenant, &self.queue, &self.kind.to_string(), &self.requires);
        self.leased.then(lack).flatten()
    }
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// How runs share one execution of a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Global {
    /// The name of the reusable task.
    pub name: String,
    /// For how long an earlier success is reused.
    #[serde(default)]
    pub reuse_for_seconds: u32,
}

/// One branch of a `switch`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Case {
    /// An expression; none is the default branch, taken if no other is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The tasks that go on. They depend on the switch implicitly.
    pub next: Vec<String>,
}

/// How the tasks that a task depends on must have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerRule {
    /// All succeeded (skipped ones count, as long as one succeeded).
    #[default]
    AllSuccess,
    /// All failed or could not run.
    AllFailed,
    /// All finished, in whatever state.
    AllDone,
    /// At least one succeeded; does not wait for the others.
    OneSuccess,
    /// At least one failed; does not wait for the others.
    OneFailed,
    /// All finished and none failed.
    NoneFailed,
    /// All finished, none failed, at least one succeeded.
    NoneFailedMinOneSuccess,
    /// All finished and none was skipped.
    NoneSkipped,
    /// At once, without waiting for them.
    Always,
    /// All finished, at least one succeeded: what `depends_on: {any_of: […]}` means.
    AnyOf,
}
