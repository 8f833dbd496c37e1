//! The language as JSON Schema, so that editors complete and check files.
//!
//! The schemas follow from the [records](crate::shape) and task types by which files are read; this module adds what
//! depends on several fields: the rules of each task type, and templates. A schema accepts every file that the
//! language accepts, with one exception: a field with nothing after it counts as absent, and an editor underlines it,
//! since somebody is about to write it. (In a file that extends a template, `null` removes an inherited value and is
//! accepted.) A template is judged by what a workflow inherits that overrides nothing. Cycles, references and names in
//! templates need more than the shape of one file: only [`compile()`](crate::compile()) checks them.
//!
//! The schemas use only what all editors understand: a mapping lists all its fields in one place, so that editors offer
//! them, and conditions then forbid those that do not belong to the chosen type.

mod config;
mod draft;
mod partial;
mod task;
mod values;

use serde_json::{Map, Value, json};

use crate::callbacks;
use crate::dependencies;
use crate::inputs::InputParts;
use crate::resources::ResourceParts;
use crate::retry::RetryParts;
use crate::schedule;
use crate::schema::Extent;
use crate::shape::{Record, object};
use crate::test_file;
use crate::workflow::WorkflowParts;

pub(crate) use values::{or_template, template};

const EXTENDS: &str = "The template to extend: a name, or `{template: …, parameters: {…}}`.";

/// A schema that is published, by the kind of file that it describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schema {
    /// Of a workflow, in `graphs/`.
    Workflow,
    /// Of a reusable task, in `tasks/`.
    Task,
    /// Of a workflow template, in `templates/`.
    Template,
    /// Of tests of a workflow, in `tests/`.
    Test,
}

impl Schema {
    /// The schemas in the order in which they are listed.
    pub const ALL: [Self; 4] = [Self::Workflow, Self::Task, Self::Template, Self::Test];

    /// The name of its file, without extension.
    pub fn name(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Task => "task",
            Self::Template => "template",
            Self::Test => "test",
        }
    }

    /// The JSON Schema itself, draft 2020-12.
    pub fn to_json(self) -> Value {
        let mut schema = match self {
            Self::Workflow => workflow(),
            Self::Task => reusable_task(),
            Self::Template => partial::template(&WorkflowParts::properties()),
            Self::Test => test_file::schema(),
        };
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["$id"] = format!("https://ebbflow.dev/schemas/{}.json", self.name()).into();
        schema.sort_all_objects();
        schema
    }
}

fn workflow() -> Value {
    let fields = WorkflowParts::properties();
    let listed = fields.iter().map(|(name, field)| (name.as_str(), field["description"].clone()));
    let own = [("extends", EXTENDS), ("parameters", "The parameters of the template, by name.")];
    let listed = listed.chain(own.map(|(name, description)| (name, description.into())));
    let listed = listed.map(|(name, description)| (name.to_owned(), json!({"description": description})));
    let mut schema = object(listed.collect(), &["name"]);
    schema["title"] = "Ebbflow workflow".into();
    schema["description"] = "A workflow: tasks that wait for one another, a file in `graphs/`.".into();
    schema["if"] = json!({"required": ["extends"]});
    schema["then"] = json!({"properties": undescribed(partial::heir(&fields))});
    schema["else"] = whole_workflow(fields);
    let mut shared = shared(Extent::Whole);
    shared.insert("input".to_owned(), InputParts::schema());
    shared.insert("schedule".to_owned(), schedule::schema());
    shared.insert("depends_on".to_owned(), dependencies::schema());
    shared.insert("task".to_owned(), task::entry());
    shared.insert("child".to_owned(), task::child());
    shared.insert("part".to_owned(), partial::heir_parts());
    schema["$defs"] = shared.into();
    schema
}

/// What holds for a workflow that extends nothing.
fn whole_workflow(fields: Map<String, Value>) -> Value {
    let mut properties = undescribed(fields);
    properties.insert("parameters".to_owned(), false.into());
    json!({
        "properties": properties,
        "required": ["tasks"],
        "dependentSchemas": {
            // It is the same limit, and set once.
            "max_active_runs": {
                "properties": {"concurrency": false, "schedule": {"properties": {"max_active_runs": false, "overlap": false}}}
            },
            callbacks::DEADLINE: {"required": ["deadline_seconds"]},
        },
    })
}

/// The fields without their descriptions, which stand where all fields are listed.
fn undescribed(mut fields: Map<String, Value>) -> Map<String, Value> {
    for field in fields.values_mut().filter_map(Value::as_object_mut) {
        field.remove("description");
    }
    fields
}

fn reusable_task() -> Value {
    let mut schema = task::reusable();
    schema["title"] = "Ebbflow reusable task".into();
    schema["description"] = "A task that workflows refer to by `task: NAME`, a file in `tasks/`.".into();
    schema["$defs"] = shared(Extent::Part).into();
    schema
}

/// The definitions that every kind of file with tasks refers to.
fn shared(extent: Extent) -> Map<String, Value> {
    let mut shared = config::all(extent);
    shared.insert("callbacks".to_owned(), callbacks::schema());
    shared.insert("resources".to_owned(), ResourceParts::schema());
    shared.insert("retry_policy".to_owned(), RetryParts::schema());
    shared
}
