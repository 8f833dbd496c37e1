//! A workflow as registered: every reference resolved, every default filled in, known to be sound.
//!
//! `language` is the only place that builds one from what a person wrote. Its serialized form is what
//! `versions.definition` holds and what the content hash is taken of.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schedule::{Schedule, one_or_many};
use crate::{BackfillId, Pacing, RetryPolicy, TaskKind, Trigger};

/// A sound definition: at least one task, unique names, dependencies that exist and form no cycle.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Workflow {
    /// The name it is triggered by.
    pub name: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// For finding it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The typed inputs, in the order in which they were written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputSpec>,
    /// When it runs by itself.
    #[serde(rename = "schedule", default, with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<Schedule>,
    /// What else starts its runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<Trigger>,
    /// How many of its runs go on at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// The maximum number of its tasks under way at the same time, in all its runs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_active_tasks: Option<u32>,
    /// How long a run may take from its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// A run that takes longer from its creation has missed its deadline; it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_seconds: Option<u32>,
    /// Whom to tell what becomes of a run, and of each of its tasks' retries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callbacks: Vec<Callback>,
    /// The tasks; a task's place here is its `TaskIndex`.
    pub tasks: Vec<TaskSpec>,
}

impl Workflow {
    /// The limit that runs of a group share: the workflow's, or that of one of its schedules. A backfill keeps count of
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

/// How many runs of a workflow go on at the same time, and what becomes of one too many.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Concurrency {
    /// A template: runs for which it renders to the same text share the limit. Without one, all runs do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The maximum number of runs at the same time.
    pub limit: u32,
    /// What becomes of one too many.
    pub policy: Overlap,
}

/// What becomes of a run that is one too many.
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

/// Whom to tell, and when.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Callback {
    /// What must have happened.
    pub on: Occasion,
    /// What to do then; strings are templates.
    pub call: Call,
}

/// What a callback follows on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// It succeeded.
    Success,
    /// It failed for good.
    Failure,
    /// An attempt failed, and another one follows.
    Retry,
    /// It took longer than its `deadline_seconds`.
    MissedDeadline,
}

/// What a callback does.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Sends a POST request.
    Webhook {
        /// Where to.
        url: String,
        /// Headers to send.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        headers: Map<String, Value>,
        /// What to send instead of what happened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Value>,
    },
    /// Publishes a message.
    Message {
        /// The id of the topic.
        topic: String,
        /// What to send instead of what happened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Value>,
    },
    /// Starts a run and does not wait for it.
    Workflow {
        /// Of which workflow.
        workflow: String,
        /// With these inputs.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        inputs: Map<String, Value>,
    },
}

/// One typed input.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InputSpec {
    /// Its name in templates: `inputs.NAME`.
    pub name: String,
    /// What a value must be.
    #[serde(rename = "type")]
    pub kind: InputType,
    /// For people, and for the form.
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
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
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

/// One task of a definition.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TaskSpec {
    /// Unique within the workflow.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: TaskKind,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The tasks it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// What must have become of them.
    #[serde(default)]
    pub trigger_rule: TriggerRule,
    /// An expression: where it is false, the task is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The branches of a `switch`: the first whose condition holds is taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<Case>,
    /// What a `fan_out` does for each element of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_out: Option<FanOut>,
    /// What a `fan_in` makes of what the fan-outs before it delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_in: Option<FanIn>,
    /// Settings of the task type; strings may be templates.
    #[serde(default)]
    pub config: Value,
    /// How often a sensor looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// When to try again.
    pub retry: RetryPolicy,
    /// How long one attempt may take.
    pub timeout_seconds: u32,
    /// Whether the file states `timeout_seconds`; otherwise a queue with a lower limit may shorten the default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timeout_is_explicit: bool,
    /// How long all attempts together may take, the waiting between them included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_timeout_seconds: Option<u32>,
    /// The group that executes it.
    pub queue: String,
    /// Tasks that name the same pool share its slots, in all workflows of a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Where slots are few, higher comes first within its tenant.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// Whether the run may succeed although this failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_failure: bool,
    /// Whether runs that need it at the same time share one execution of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global: Option<Global>,
    /// Whom to tell what becomes of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callbacks: Vec<Callback>,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// What a `fan_out` does for each element of a list.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FanOut {
    /// An expression whose value is the list.
    pub for_each: String,
    /// The maximum number of children under way at the same time; all at once if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    /// How many children may fail without the fan-out failing.
    #[serde(default)]
    pub tolerated_failures: Tolerance,
    /// The task that each child is; its templates also know `item` and `index`. It has no name of its own.
    pub task: Box<TaskSpec>,
}

/// How many of a number may fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tolerance {
    /// An absolute number.
    Count(u32),
    /// A percentage.
    Percent(u32),
}

impl Default for Tolerance {
    fn default() -> Self {
        Self::Count(0)
    }
}

impl Tolerance {
    /// Whether `failed` of `total` are still all right.
    pub fn allows(self, failed: u32, total: u32) -> bool {
        match self {
            Self::Count(count) => failed <= count,
            Self::Percent(percent) => u64::from(failed) * 100 <= u64::from(percent) * u64::from(total),
        }
    }
}

/// What a `fan_in` makes of what children delivered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FanIn {
    /// How they are put together.
    pub aggregation: Aggregation,
    /// The field of each output that counts; the whole output if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

/// How outputs of children are put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregation {
    /// `{results, count}`: every output, in the order of the list.
    #[default]
    Collect,
    /// The same, with lists among the outputs taken apart.
    Concat,
    /// `{total, count}`.
    Sum,
    /// The first one's output.
    First,
    /// The last one's output.
    Last,
}

/// How runs share one execution of a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Global {
    /// The name of the reusable task.
    pub name: String,
    /// For how long an earlier success serves, too.
    #[serde(default)]
    pub reuse_for_seconds: u32,
}

/// One branch of a `switch`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Case {
    /// An expression; none is the default, taken where no other branch is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The tasks that go on. They depend on the switch without saying so.
    pub next: Vec<String>,
}

/// What must have become of the tasks that a task depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerRule {
    /// All succeeded (skipped ones count, as long as one succeeded).
    #[default]
    AllSuccess,
    /// All failed.
    AllFailed,
    /// All finished, however.
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
    /// At once, whatever they do.
    Always,
    /// All finished, at least one succeeded: what `depends_on: {any_of: […]}` means.
    AnyOf,
}
