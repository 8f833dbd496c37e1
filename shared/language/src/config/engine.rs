//! The settings of the types that evaluation settles without a worker, beside `sleep`.

use std::collections::BTreeMap;

use model::{InputSpec, InputType, Instant};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Text;
use crate::duration::Duration;
use crate::inputs;
use crate::suggest;

/// The settings of `transform`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transform {
    /// An expression without braces; its value is the output.
    pub expression: String,
}

/// The settings of `wait_for_signal`.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitForSignal {
    /// The signal's name, which is not a template: senders must know it.
    #[schemars(extend("format" = "signal-name"))]
    pub signal: String,
    /// How long to wait; default: forever.
    #[serde(default)]
    pub timeout: Option<Duration>,
}

impl WaitForSignal {
    /// When a wait that began at `start` is given up, if ever.
    pub fn deadline(&self, start: Instant) -> Option<Instant> {
        self.timeout.map(|timeout| start + timeout.to_std())
    }
}

/// The settings of `workflow`.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChildWorkflow {
    /// The name of the workflow.
    #[schemars(extend("format" = "workflow-name"))]
    pub workflow: String,
    /// The inputs of the run.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// Whether the task waits for the run and ends as it does; otherwise it succeeds once the run exists.
    #[serde(default = "ChildWorkflow::default_wait")]
    pub wait: bool,
}

impl ChildWorkflow {
    fn default_wait() -> bool {
        true
    }
}

/// The settings of `approval`.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The question to the approver.
    #[serde(default)]
    pub message: Option<Text>,
    /// Who may decide; default: everyone who may operate the run.
    #[serde(default)]
    pub approvers: Vec<Text>,
    /// The fields of the form.
    #[serde(default)]
    #[schemars(extend("propertyNames" = {"format": "field-name"}))]
    pub fields: BTreeMap<String, FormField>,
    /// How long to wait; default: forever.
    #[serde(default)]
    pub timeout: Option<Duration>,
}

/// One field of an approval's form.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct FormField {
    /// The type, as for inputs.
    #[serde(rename = "type")]
    #[schemars(with = "String", extend("enum" = inputs::TYPES))]
    pub kind: InputType,
    /// Whether an answer must contain it.
    #[serde(default)]
    pub required: bool,
    /// A description for the approver.
    #[serde(default)]
    pub description: Option<Text>,
}

impl Approval {
    /// When an approval that was asked for at `start` is given up, if ever.
    pub fn deadline(&self, start: Instant) -> Option<Instant> {
        self.timeout.map(|timeout| start + timeout.to_std())
    }

    /// Whether this person may decide.
    pub fn allows(&self, who: &str) -> bool {
        self.approvers.is_empty() || self.approvers.iter().any(|approver| approver.0 == who)
    }

    /// Everything that is wrong with the fields of an answer.
    pub fn problems(&self, answer: &Map<String, Value>) -> Vec<String> {
        let unknown = answer.keys().filter(|name| !self.fields.contains_key(*name)).map(|name| {
            let hint = suggest::hint(name, self.fields.keys().map(String::as_str));
            let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("field `{name}`: the form has no such field{hint}")
        });
        let refused = self.fields.iter().filter_map(|(name, field)| field.refusal(name, answer.get(name)));
        unknown.chain(refused).collect()
    }
}

impl FormField {
    fn refusal(&self, name: &str, given: Option<&Value>) -> Option<String> {
        let Some(value) = given.filter(|value| !value.is_null()) else {
            return self.required.then(|| format!("field `{name}`: it is required"));
        };
        let (default, choices, description) = Default::default();
        let as_input = InputSpec { name: name.to_owned(), kind: self.kind, description, default, choices };
        let (message, hint) = inputs::refusal(&as_input, value)?;
        let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        Some(format!("field `{name}`: {message}{hint}"))
    }
}
