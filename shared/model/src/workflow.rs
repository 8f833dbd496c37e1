//! A workflow as registered: every reference resolved, every default filled in, known to be sound.
//!
//! `language` is the only place that builds one from what a person wrote. Its serialized form is what
//! `versions.definition` holds and what the content hash is taken of.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::RetryPolicy;

/// A sound definition: at least one task, unique names, dependencies that exist and form no cycle.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
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
    /// The tasks; a task's place here is its `TaskIndex`.
    pub tasks: Vec<TaskSpec>,
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
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TaskSpec {
    /// Unique within the workflow.
    pub name: String,
    /// The task type that carries it out.
    #[serde(rename = "type")]
    pub kind: String,
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
    /// Settings of the task type; strings may be templates.
    #[serde(default)]
    pub config: Value,
    /// When to try again.
    pub retry: RetryPolicy,
    /// How long one attempt may take.
    pub timeout_seconds: u32,
    /// The lane that executes it.
    pub queue: String,
    /// Whether the run may succeed although this failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_failure: bool,
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
