//! Workflow templates, and workflows that extend one.

use serde_json::{Map, Value, json};

use super::draft::Draft;
use super::kinds::Kinds;
use super::values::or_nothing;
use super::{config, shared, task};
use crate::blueprint::{extends, parameter};
use crate::breaker::BreakerParts;
use crate::dependencies;
use crate::inputs::InputParts;
use crate::resources::ResourceParts;
use crate::retry::RetryParts;
use crate::schedule;
use crate::schema::Extent;
use crate::shape::{Record, described, object, refer};
use crate::workflow::MAX_TASKS;

const HEIR: Draft = Draft {
    has_parameters: false,
    home: "#/$defs/part/$defs",
    // Of these, the whole is replaced.
    whole: &["callbacks", "depends_on"],
};

const TEMPLATE: Draft = Draft { has_parameters: true, home: "#/$defs", whole: &[] };

/// The fields of a workflow that extends a template; `whole` are those of one that does not.
pub(super) fn heir(whole: &Map<String, Value>) -> Map<String, Value> {
    let field = |(name, schema): (&String, &Value)| {
        let schema = match name.as_str() {
            "name" => schema.clone(),
            "inputs" | "defaults" => HEIR.value(schema),
            "tasks" => tasks(json!({"$ref": "#/$defs/part/$defs/task"})),
            _ => or_nothing(schema.clone()),
        };
        (name.clone(), schema)
    };
    let mut properties: Map<String, Value> = whole.iter().map(field).collect();
    properties.insert("extends".to_owned(), extends::schema());
    properties.insert("parameters".to_owned(), or_nothing(json!({"type": "object"})));
    properties
}

/// What [`heir`] refers to, beside what wholes do.
pub(super) fn heir_parts(kinds: &Kinds) -> Value {
    let mut parts = config::all(Extent::Part, kinds);
    parts.insert("breaker".to_owned(), BreakerParts::schema());
    parts.insert("resources".to_owned(), ResourceParts::schema());
    parts.insert("retry_policy".to_owned(), RetryParts::schema());
    json!({"$defs": drafts(&HEIR, parts, kinds)})
}

/// A workflow template, whose fields are those of a workflow and its own.
pub(super) fn template(whole: &Map<String, Value>, kinds: &Kinds) -> Value {
    let mut properties: Map<String, Value> =
        whole.iter().map(|(name, schema)| (name.clone(), TEMPLATE.value(schema))).collect();
    let name = "The template's name, the same as the file's: lower-case letters, digits and `-`.";
    let parameters = "The parameters of the template, by name. `${{ parameters.NAME }}` inserts one.";
    for (field, description, schema) in [
        ("name", name, whole["name"].clone()),
        ("extends", super::EXTENDS, or_nothing(extends::schema())),
        ("parameters", parameters, or_nothing(parameter::schema())),
    ] {
        properties.insert(field.to_owned(), described(description, schema));
    }
    let description = whole["tasks"]["description"].as_str().unwrap_or_default();
    properties.insert("tasks".to_owned(), described(description, tasks(TEMPLATE.item(&refer("task")))));
    let mut schema = object(properties, &["name"]);
    schema["title"] = "Ebbflow workflow template".into();
    schema["description"] =
        "A workflow with parameters, which others extend by `extends: NAME`, a file in `templates/`.".into();
    let mut parts = shared(Extent::Part, kinds);
    parts.insert("schedule".to_owned(), schedule::schema());
    parts.insert("depends_on".to_owned(), dependencies::schema());
    let mut parts = drafts(&TEMPLATE, parts, kinds);
    parts.insert("parameter".to_owned(), parameter::ParameterParts::schema());
    schema["$defs"] = parts.into();
    schema
}

/// The parts that are drafts, under the names of the wholes.
fn drafts(draft: &Draft, parts: Map<String, Value>, kinds: &Kinds) -> Map<String, Value> {
    let mut drafts: Map<String, Value> =
        parts.into_iter().map(|(name, part)| (name, draft.shape(&part))).collect();
    drafts.insert("input".to_owned(), draft.shape(&InputParts::schema()));
    drafts.insert("child".to_owned(), draft.shape(&task::child(kinds)));
    drafts.insert("task".to_owned(), task::partial(draft, kinds));
    drafts
}

fn tasks(entry: Value) -> Value {
    json!({"type": ["array", "null"], "items": entry, "maxItems": MAX_TASKS})
}
