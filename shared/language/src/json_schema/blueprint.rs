//! Workflow templates, and workflows that extend one.

use serde_json::{Map, Value, json};

use super::draft::Draft;
use super::parts::{self, plain_value};
use super::values::{described, fields, flag, name, object, one_of, or_nothing, text};
use super::{config, refer, shared, task};
use crate::inputs::TYPES;
use crate::names;
use crate::schema::Extent;
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
    properties.insert("extends".to_owned(), extends());
    properties.insert("parameters".to_owned(), or_nothing(json!({"type": "object"})));
    properties
}

/// What [`heir`] refers to, beside what wholes do.
pub(super) fn heir_parts() -> Value {
    let mut parts = config::all(Extent::Part);
    parts.insert("retry_policy".to_owned(), parts::retry_policy());
    json!({"$defs": drafts(&HEIR, parts)})
}

/// A workflow template, whose fields are those of a workflow and its own.
pub(super) fn template(whole: &Map<String, Value>) -> Value {
    let mut properties: Map<String, Value> =
        whole.iter().map(|(name, schema)| (name.clone(), TEMPLATE.value(schema))).collect();
    properties.extend(fields([
        (
            "name",
            "The template's name, the same as the file's: lower-case letters, digits and `-`.",
            name(&names::PLAIN),
        ),
        ("extends", super::EXTENDS, or_nothing(extends())),
        (
            "parameters",
            "The parameters of the template, by name. `${{ parameters.NAME }}` inserts one.",
            or_nothing(parameters()),
        ),
    ]));
    let says = whole["tasks"]["description"].as_str().unwrap_or_default();
    properties.insert("tasks".to_owned(), described(says, tasks(TEMPLATE.item(&refer("task")))));
    let mut schema = object(properties, &["name"]);
    schema["title"] = "Ebbflow workflow template".into();
    schema["description"] =
        "A workflow with parameters, which others extend by `extends: NAME`, a file in `templates/`.".into();
    let mut parts = shared(Extent::Part);
    parts.insert("schedule".to_owned(), parts::schedule());
    parts.insert("depends_on".to_owned(), parts::depends_on());
    let mut parts = drafts(&TEMPLATE, parts);
    parts.insert("parameter".to_owned(), parameter());
    schema["$defs"] = parts.into();
    schema
}

/// The parts that are drafts, under the names of the wholes.
fn drafts(draft: &Draft, parts: Map<String, Value>) -> Map<String, Value> {
    let mut drafts: Map<String, Value> =
        parts.into_iter().map(|(name, part)| (name, draft.shape(&part))).collect();
    drafts.insert("input".to_owned(), draft.shape(&parts::input()));
    drafts.insert("child".to_owned(), draft.shape(&task::child()));
    drafts.insert("task".to_owned(), task::partial(draft));
    drafts
}

fn tasks(entry: Value) -> Value {
    json!({"type": ["array", "null"], "items": entry, "maxItems": MAX_TASKS})
}

/// What stands after `extends:`, the name of a template with parameters or without.
pub(super) fn extends() -> Value {
    let with = fields([
        ("template", "The name of a workflow template from `templates/`.", text()),
        ("parameters", "The values of its parameters, by name.", json!({"type": "object"})),
    ]);
    json!({"anyOf": [text(), object(with, &["template"])]})
}

fn parameters() -> Value {
    let names = name(&names::PARAMETER);
    json!({"type": "object", "propertyNames": names, "additionalProperties": refer("parameter")})
}

/// A parameter as a template declares it.
fn parameter() -> Value {
    let number = json!({"type": "number"});
    let mut parameter = object(
        fields([
            ("type", "The type.", one_of(&TYPES)),
            ("description", "For people.", text()),
            ("required", "States explicitly that there is no default.", flag()),
            ("default", "The default; without one, the parameter is required.", json!({})),
            ("enum", "The values allowed.", json!({"type": "array"})),
            ("pattern", "A regular expression that a text must match.", text()),
            ("minimum", "The minimum value.", number.clone()),
            ("maximum", "The maximum value.", number),
        ]),
        &["type"],
    );
    parameter["allOf"] = TYPES.iter().map(|kind| of_type(kind)).collect();
    parameter["dependentSchemas"] = json!({
        "default": {"properties": {"required": {"const": false}}},
        "required": {"anyOf": [{"properties": {"required": {"const": true}}}, {"required": ["default"]}]},
    });
    parameter
}

fn of_type(kind: &str) -> Value {
    let value = plain_value(kind);
    let mut properties = json!({"default": value, "enum": {"items": value}});
    if kind != "string" {
        properties["pattern"] = false.into();
    }
    if !["integer", "number"].contains(&kind) {
        properties["minimum"] = false.into();
        properties["maximum"] = false.into();
    }
    json!({
        "if": {"properties": {"type": {"const": kind}}, "required": ["type"]},
        "then": {"properties": properties},
    })
}
