//! The language as JSON Schema, so that editors complete and check what is written.
//!
//! It is made from what the rest of this crate reads by: the task types, the words, the limits. It never refuses
//! what the language takes, with one exception: a field with nothing after it counts as absent, and an editor
//! underlines it, since somebody is about to write it. What takes more than the shape of one file to see, such as
//! circles, references and the names in templates, only [`compile()`](crate::compile()) finds.
//!
//! Only what editors of all kinds understand is used: a mapping lists all its fields in one place, so that they are
//! offered, and conditions then forbid what does not belong to the type that was chosen.

mod config;
mod parts;
mod task;
mod values;

use serde_json::{Map, Value, json};

use crate::names;
use crate::schema::Extent;
use crate::workflow::{MAX_SECONDS, MAX_TASKS};
use values::{fields, name, object, text, texts, whole};

/// A schema that is published, by the kind of file that it describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schema {
    /// Of a workflow, in `graphs/`.
    Workflow,
    /// Of a reusable task, in `tasks/`.
    Task,
}

impl Schema {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Workflow, Self::Task];

    /// The name of its file, without extension.
    pub fn name(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Task => "task",
        }
    }

    /// The JSON Schema itself, draft 2020-12.
    pub fn to_json(self) -> Value {
        let mut schema = match self {
            Self::Workflow => workflow(),
            Self::Task => reusable_task(),
        };
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["$id"] = format!("https://ebbflow.dev/schemas/{}.json", self.name()).into();
        schema.sort_all_objects();
        schema
    }
}

fn workflow() -> Value {
    let mut properties = fields([
        (
            "name",
            "The workflow's name, which is its file's: small letters, digits and `-`.",
            name(&names::PLAIN),
        ),
        ("description", "For people. Templates may name `inputs` and `run`.", text()),
        ("tags", "Words to find the workflow by.", texts()),
        ("inputs", "What a run may be given, by name; checked when it is triggered.", parts::inputs()),
        ("schedule", "When runs begin by themselves. Every input needs a default then.", parts::schedule()),
        ("concurrency", "How many runs go on at the same time.", parts::concurrency()),
        ("max_active_runs", "How many runs go on at the same time; further ones wait.", parts::max_runs()),
        ("timeout_seconds", "How long a run may take before it is ended.", whole(1..=MAX_SECONDS)),
        (
            "deadline_seconds",
            "How long a run should take; later, `on_missed_deadline` is told.",
            whole(1..=MAX_SECONDS),
        ),
        ("defaults", "For every task that says nothing else.", object(task::settings(), &[])),
        ("tasks", "What is done: tasks, each by itself or after others.", tasks()),
    ]);
    properties.extend(parts::callbacks(true));
    let mut schema = object(properties, &["name", "tasks"]);
    schema["title"] = "Ebbflow workflow".into();
    schema["description"] = "A workflow: tasks that wait for one another, a file in `graphs/`.".into();
    schema["dependentSchemas"] = json!({
        // It is the same limit, and said once.
        "max_active_runs": {
            "properties": {"concurrency": false, "schedule": {"properties": {"max_active_runs": false}}}
        },
        crate::callbacks::DEADLINE: {"required": ["deadline_seconds"]},
    });
    let mut shared = shared(Extent::Whole);
    shared.insert("input".to_owned(), parts::input());
    shared.insert("depends_on".to_owned(), parts::depends_on());
    shared.insert("task".to_owned(), task::entry());
    shared.insert("child".to_owned(), task::child());
    schema["$defs"] = shared.into();
    schema
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

/// What both kinds of file refer to.
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
