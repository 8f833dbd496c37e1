//! The rules of each task type: in a workflow, as the child of a fan-out, and in a file of its own.

use model::TaskKind;
use serde_json::{Map, Value, json};

use super::config;
use super::draft::Draft;
use crate::fan::{CHILDRENS, NO_CHILDREN};
use crate::shape::{Record, Shape, described, forbidden, refer, text};
use crate::task::{ChildParts, EntryParts, OWN_FIELDS, ReusableParts, is_reusable, needed_fields};

/// An entry of `tasks`: a task of its own, or a reference to a reusable one.
pub(super) fn entry() -> Value {
    let mut entry = any_entry();
    entry["allOf"].as_array_mut().into_iter().for_each(|conditions| conditions.push(reference()));
    entry
}

/// An entry that is merged over an inherited one of its name, or removes it. The inherited one may have the other fields.
pub(super) fn partial(draft: &Draft) -> Value {
    let mut entry = draft.shape(&any_entry());
    let remove = described("Removes the task of this name.", json!({"const": true}));
    entry["properties"]["remove"] = remove;
    entry["anyOf"] = json!([{"required": ["name"]}, {"required": ["task"]}]);
    let removal = json!({"if": {"required": ["remove"]}, "then": {"required": ["name"], "maxProperties": 2}});
    entry["allOf"].as_array_mut().into_iter().for_each(|conditions| conditions.push(removal.clone()));
    entry
}

fn any_entry() -> Value {
    let mut entry = EntryParts::schema();
    entry["anyOf"] = json!([{"required": ["type"]}, {"required": ["task"]}]);
    entry["allOf"] = TaskKind::ALL.iter().map(|kind| when(*kind, of_type(*kind))).chain([any_of()]).collect();
    entry
}

/// What holds for a task once its type is known.
fn of_type(kind: TaskKind) -> Value {
    let refused: &[&str] = if kind == TaskKind::FanOut { &CHILDRENS } else { &["task"] };
    let others = OWN_FIELDS.iter().filter(|(_, owner)| *owner != kind).map(|(field, _)| *field);
    let mut properties = forbidden(others.chain(refused.iter().copied()));
    properties.insert("config".to_owned(), refer(&config::name(kind)));
    let mut required = vec!["name"];
    required.extend(needed_fields(kind));
    // A fan-in without dependencies has nothing to aggregate.
    required.extend((kind == TaskKind::FanIn).then_some("depends_on"));
    required.extend(config::is_needed(kind).then_some("config"));
    json!({"properties": properties, "required": required})
}

/// What holds for a reference: its type is fixed elsewhere.
fn reference() -> Value {
    let mut properties = forbidden(OWN_FIELDS.iter().map(|(field, _)| *field).chain(["description"]));
    properties.insert("task".to_owned(), text().schema());
    json!({"if": {"required": ["task"], "not": {"required": ["type"]}}, "then": {"properties": properties}})
}

/// `any_of` excludes a trigger rule.
fn any_of() -> Value {
    let waits = json!({"type": "object", "required": ["any_of"]});
    json!({
        "if": {"properties": {"depends_on": waits}, "required": ["depends_on"]},
        "then": {"properties": {"trigger_rule": false}},
    })
}

/// The task that a fan-out runs for each element, or the name of a reusable one.
pub(super) fn child() -> Value {
    let mut child = ChildParts::schema();
    child["anyOf"] = json!([{"required": ["type"]}, {"required": ["task"]}]);
    let of_type = |kind: TaskKind| {
        let required: &[&str] = if config::is_needed(kind) { &["config"] } else { &[] };
        let properties = json!({"config": refer(&config::name(kind)), "task": false});
        when(kind, json!({"properties": properties, "required": required}))
    };
    child["allOf"] = by_type(|kind| !NO_CHILDREN.contains(&kind), of_type);
    json!({"anyOf": [text().schema(), child]})
}

/// A task in a file of its own.
pub(super) fn reusable() -> Value {
    let mut reusable = ReusableParts::schema();
    let shared = json!({"properties": {"global": {"const": true}}, "required": ["global"]});
    reusable["dependentSchemas"] = json!({"reuse_for_seconds": shared});
    reusable["allOf"] = by_type(is_reusable, |kind| {
        let mut properties = Map::from_iter([("config".to_owned(), refer(&config::name(kind)))]);
        if kind.is_engine_task() {
            // Only the result of a worker can be shared.
            properties.insert("global".to_owned(), json!({"const": false}));
        }
        when(kind, json!({"properties": properties}))
    });
    reusable
}

/// The rules of all types that are allowed somewhere.
fn by_type(allowed: fn(TaskKind) -> bool, rules: impl Fn(TaskKind) -> Value) -> Value {
    TaskKind::ALL.iter().copied().filter(|kind| allowed(*kind)).map(rules).collect()
}

fn when(kind: TaskKind, then: Value) -> Value {
    json!({"if": {"properties": {"type": {"const": kind}}, "required": ["type"]}, "then": then})
}
