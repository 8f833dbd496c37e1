//! The language as JSON Schema, so that editors complete and check what is written.
//!
//! It is made from what the rest of this crate reads by: the task types, the words, the limits. It never refuses
//! what the language takes, with one exception: a field with nothing after it counts as absent, and an editor
//! underlines it, since somebody is about to write it. (Where a template is extended, nothing says that something
//! inherited is taken away, and is accepted.) A template is taken for what becomes of it in a workflow that changes
//! nothing of it. What takes more than the shape of one file to see, such as
//! circles, references and the names in templates, only [`compile()`](crate::compile()) finds.
//!
//! Only what editors of all kinds understand is used: a mapping lists all its fields in one place, so that they are
//! offered, and conditions then forbid what does not belong to the type that was chosen.

mod blueprint;
mod config;
mod draft;
mod parts;
mod task;
mod test;
mod triggers;
mod values;

use serde_json::{Map, Value, json};

use crate::names;
use crate::schema::Extent;
use crate::workflow::{MAX_ACTIVE_TASKS, MAX_SECONDS, MAX_TASKS};
use values::{fields, name, object, text, texts, whole};

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
    /// All of them.
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
            Self::Template => blueprint::template(&workflow_fields()),
            Self::Test => test::file(),
        };
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["$id"] = format!("https://ebbflow.dev/schemas/{}.json", self.name()).into();
        schema.sort_all_objects();
        schema
    }
}

fn workflow() -> Value {
    let fields = workflow_fields();
    let mut listed: Map<String, Value> = fields
        .iter()
        .map(|(name, field)| (name.clone(), json!({"description": field["description"]})))
        .collect();
    listed.insert("extends".to_owned(), json!({"description": EXTENDS}));
    listed
        .insert("parameters".to_owned(), json!({"description": "The parameters of the template, by name."}));
    let mut schema = object(listed, &["name"]);
    schema["title"] = "Ebbflow workflow".into();
    schema["description"] = "A workflow: tasks that wait for one another, a file in `graphs/`.".into();
    schema["if"] = json!({"required": ["extends"]});
    schema["then"] = json!({"properties": said_once(blueprint::heir(&fields))});
    schema["else"] = whole_workflow(fields);
    let mut shared = shared(Extent::Whole);
    shared.insert("input".to_owned(), parts::input());
    shared.insert("schedule".to_owned(), parts::schedule());
    shared.insert("depends_on".to_owned(), parts::depends_on());
    shared.insert("task".to_owned(), task::entry());
    shared.insert("child".to_owned(), task::child());
    shared.insert("part".to_owned(), blueprint::heir_parts());
    schema["$defs"] = shared.into();
    schema
}

fn workflow_fields() -> Map<String, Value> {
    let mut properties = fields([
        (
            "name",
            "The workflow's name, the same as the file's: lower-case letters, digits and `-`.",
            name(&names::PLAIN),
        ),
        ("description", "For people. Templates may name `inputs` and `run`.", text()),
        ("tags", "Tags for searching.", texts()),
        ("inputs", "The inputs of a run, by name; checked when it starts.", parts::inputs()),
        ("schedule", "When runs start. Every input needs a default or a value here.", refer("schedule")),
        ("schedules", "Several schedules, each with a name.", refer("schedule")),
        (
            "triggers",
            "What else starts runs: events, webhooks, other workflows, sensors.",
            triggers::triggers(),
        ),
        ("concurrency", "Limits the number of active runs.", parts::concurrency()),
        ("max_active_runs", "The maximum number of active runs; further ones wait.", parts::max_runs()),
        (
            "max_active_tasks",
            "The maximum number of active tasks, across all runs.",
            whole(1..=MAX_ACTIVE_TASKS),
        ),
        ("timeout_seconds", "How long a run may take before it fails.", whole(1..=MAX_SECONDS)),
        (
            "deadline_seconds",
            "How long a run should take; after that, `on_missed_deadline` is called.",
            whole(1..=MAX_SECONDS),
        ),
        ("defaults", "Defaults for all tasks.", object(task::settings(), &[])),
        ("tasks", "The tasks.", tasks()),
    ]);
    properties.extend(parts::callbacks(true));
    properties
}

/// What holds for a workflow that extends nothing.
fn whole_workflow(fields: Map<String, Value>) -> Value {
    let mut properties = said_once(fields);
    properties.insert("parameters".to_owned(), false.into());
    json!({
        "properties": properties,
        "required": ["tasks"],
        "dependentSchemas": {
            // It is the same limit, and said once.
            "max_active_runs": {
                "properties": {"concurrency": false, "schedule": {"properties": {"max_active_runs": false, "overlap": false}}}
            },
            crate::callbacks::DEADLINE: {"required": ["deadline_seconds"]},
        },
    })
}

/// The fields without their words, which stand where all fields are listed.
fn said_once(mut fields: Map<String, Value>) -> Map<String, Value> {
    for field in fields.values_mut().filter_map(Value::as_object_mut) {
        field.remove("description");
    }
    fields
}

fn tasks() -> Value {
    json!({
        "type": "array",
        "items": {"$ref": "#/$defs/task"},
        "minItems": 1,
        "maxItems": MAX_TASKS,
    })
}

fn reusable_task() -> Value {
    let mut schema = task::reusable();
    schema["title"] = "Ebbflow reusable task".into();
    schema["description"] = "A task that workflows refer to by `task: NAME`, a file in `tasks/`.".into();
    schema["$defs"] = shared(Extent::Part).into();
    schema
}

/// What every kind of file with tasks refers to.
fn shared(extent: Extent) -> Map<String, Value> {
    let mut shared = config::all(extent);
    shared.insert("callbacks".to_owned(), parts::callback_list());
    shared.insert("retry_policy".to_owned(), parts::retry_policy());
    shared
}

/// A reference to what is [`shared`], with words of its own.
fn refer(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}
