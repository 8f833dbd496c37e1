//! Schemas of types that other crates define: each type here represents one of theirs, or several.

use std::borrow::Cow;

use model::{Catchup, RunState, TaskState};
use runtime::{BackfillState, Rerun};
use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema, json_schema};

/// The schema of a plain value is inlined where it is used.
macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident => $schema:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    )*};
}

plain! {
    /// An id: a UUID.
    Id => json_schema!({"type": "string", "format": "uuid"});
    /// An instant, in UTC.
    Time => json_schema!({"type": "string", "format": "date-time"});
    /// The state of a run.
    RunStates => json_schema!({"type": "string", "enum": RunState::ALL});
    /// The state of a task.
    TaskStates => json_schema!({"type": "string", "enum": TaskState::ALL});
    /// The state of a backfill.
    BackfillStates => json_schema!({"type": "string", "enum": BackfillState::ALL});
    /// Which dates of a backfill get a run.
    Reruns => json_schema!({"type": "string", "enum": Rerun::ALL});
    /// The treatment of missed instants.
    Catchups => json_schema!({"type": "string", "enum": Catchup::ALL});
    /// The value of a label.
    LabelValue => json_schema!({"type": ["string", "number", "boolean"]});
    /// One word of a fixed set.
    Word => json_schema!({"type": "string"});
    /// A definition, every reference resolved.
    Definition => json_schema!({"type": "object"});
}

/// An input of a workflow, with its type.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct Input {
    /// The name of the input.
    name: String,
    /// What a value must be.
    #[serde(rename = "type")]
    kind: Word,
    /// A description for people, shown in the form.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The value when none is given; may be a template. An input without one is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<serde_json::Value>,
    /// The only values allowed, if any are named.
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    choices: Vec<serde_json::Value>,
}

/// A worker command, by whom it was given and why.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct WorkerCommand {
    /// The command: `drain` or `kill`.
    kind: Word,
    /// Who gave the command.
    actor: String,
    /// The reason, if one was given.
    reason: Option<String>,
    /// When the command was given.
    at: Time,
}
