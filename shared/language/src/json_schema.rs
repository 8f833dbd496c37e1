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
mod kinds;
mod partial;
mod task;
mod values;

use serde_json::{Map, Value, json};

use crate::breaker::BreakerParts;
use crate::callbacks;
use crate::compile::custom_types;
use crate::custom_type::TypeParts;
use crate::dependencies;
use crate::inputs::InputParts;
use crate::queue::QueueParts;
use crate::resources::ResourceParts;
use crate::retry::RetryParts;
use crate::schedule;
use crate::schema::Extent;
use crate::shape::{Record, object};
use crate::test_file;
use crate::workflow::WorkflowParts;
use crate::{Diagnostic, SourceFile};
use kinds::Kinds;

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
    /// Of a custom task type, in `types/`.
    Type,
    /// Of a queue, in `queues/`.
    Queue,
}

impl Schema {
    /// The schemas in the order in which they are listed.
    pub const ALL: [Self; 6] =
        [Self::Workflow, Self::Task, Self::Template, Self::Test, Self::Type, Self::Queue];

    /// The name of its file, without extension.
    pub fn name(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Task => "task",
            Self::Template => "template",
            Self::Test => "test",
            Self::Type => "type",
            Self::Queue => "queue",
        }
    }

    /// The JSON Schema itself, draft 2020-12. It accepts tasks of any custom type, with any settings.
    pub fn to_json(self) -> Value {
        self.with(&Kinds::any())
    }

    /// The same for a project: tasks may be of the custom types that these files declare, and of no others. If one of the
    /// files is not valid, everything that is wrong with them.
    pub fn for_project(self, files: &[SourceFile]) -> Result<Value, Vec<Diagnostic>> {
        custom_types(files).map(|types| self.with(&Kinds::of(&types)))
    }

    fn with(self, kinds: &Kinds) -> Value {
        let mut schema = match self {
            Self::Workflow => workflow(kinds),
            Self::Task => reusable_task(kinds),
            Self::Template => partial::template(&WorkflowParts::properties(), kinds),
            Self::Test => test_file::schema(),
            Self::Type => task_type(),
            Self::Queue => queue(),
        };
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["$id"] = format!("https://ebbflow.dev/schemas/{}.json", self.name()).into();
        schema.sort_all_objects();
        schema
    }
}

fn workflow(kinds: &Kinds) -> Value {
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
    let mut shared = shared(Extent::Whole, kinds);
    shared.insert("input".to_owned(), InputParts::schema());
    shared.insert("schedule".to_owned(), schedule::schema());
    shared.insert("depends_on".to_owned(), dependencies::schema());
    shared.insert("task".to_owned(), task::entry(kinds));
    shared.insert("child".to_owned(), task::child(kinds));
    shared.insert("part".to_owned(), partial::heir_parts(kinds));
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

fn reusable_task(kinds: &Kinds) -> Value {
    let mut schema = task::reusable(kinds);
    schema["title"] = "Ebbflow reusable task".into();
    schema["description"] = "A task that workflows refer to by `task: NAME`, a file in `tasks/`.".into();
    schema["$defs"] = shared(Extent::Part, kinds).into();
    schema
}

fn task_type() -> Value {
    let mut schema = TypeParts::schema();
    schema["title"] = "Ebbflow task type".into();
    schema["description"] = "A task type that workers implement, a file in `types/`.".into();
    schema["$defs"] = json!({
        "breaker": BreakerParts::schema(), "resources": ResourceParts::schema(), "retry_policy": RetryParts::schema(),
    });
    schema
}

fn queue() -> Value {
    let mut schema = QueueParts::schema();
    schema["title"] = "Ebbflow queue".into();
    schema["description"] = "A queue that tasks may name, a file in `queues/`.".into();
    schema
}

/// The definitions that every kind of file with tasks refers to.
fn shared(extent: Extent, kinds: &Kinds) -> Map<String, Value> {
    let mut shared = config::all(extent, kinds);
    shared.insert("breaker".to_owned(), BreakerParts::schema());
    shared.insert("callbacks".to_owned(), callbacks::schema());
    shared.insert("resources".to_owned(), ResourceParts::schema());
    shared.insert("retry_policy".to_owned(), RetryParts::schema());
    shared
}
