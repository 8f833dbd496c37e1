//! The rules of each task type: in a workflow, as the child of a fan-out, and in a file of its own.

use model::TaskKind;
use serde_json::{Map, Value, json};

use super::config;
use super::draft::Draft;
use super::kinds::Kinds;
use crate::fan::{CHILD_ONLY_SETTINGS, can_be_child};
use crate::shape::{Record, Shape, described, forbidden, refer, text};
use crate::task::{ChildParts, EntryParts, OWN_FIELDS, ReusableParts, is_reusable, needed_fields};
use crate::types::TaskType;

/// An entry of `tasks`: a task of its own, or a reference to a reusable one.
pub(super) fn entry(kinds: &Kinds) -> Value {
    let mut entry = any_entry(kinds);
    entry["allOf"].as_array_mut().into_iter().for_each(|conditions| conditions.push(reference()));
    entry
}

/// An entry that is merged over an inherited one of its name, or removes it. The inherited one may have the other fields.
pub(super) fn partial(draft: &Draft, kinds: &Kinds) -> Value {
    let mut entry = draft.shape(&any_entry(kinds));
    let remove = described("Removes the task of this name.", json!({"const": true}));
    entry["properties"]["remove"] = remove;
    entry["anyOf"] = json!([{"required": ["name"]}, {"required": ["task"]}]);
    let removal = json!({"if": {"required": ["remove"]}, "then": {"required": ["name"], "maxProperties": 2}});
    entry["allOf"].as_array_mut().into_iter().for_each(|conditions| conditions.push(removal.clone()));
    entry
}

fn any_entry(kinds: &Kinds) -> Value {
    let mut entry = EntryParts::schema();
    kinds.offer(&mut entry, |_| true);
    entry["anyOf"] = json!([{"required": ["type"]}, {"required": ["task"]}]);
    entry["allOf"] = kinds.rules(|_| true, of_type).chain([any_of()]).collect();
    entry
}

/// What holds for a task once its type is known.
fn of_type(task: &TaskType) -> Value {
    let kind = &task.kind;
    let refused: &[&str] = if *kind == TaskKind::FanOut { &CHILD_ONLY_SETTINGS } else { &["task"] };
    let others = OWN_FIELDS.iter().filter(|(_, owner)| owner != kind).map(|(field, _)| *field);
    let mut properties = forbidden(others.chain(refused.iter().copied()));
    properties.insert("config".to_owned(), refer(&config::name(kind)));
    let mut required = vec!["name"];
    required.extend(needed_fields(kind));
    // A fan-in without dependencies has nothing to aggregate.
    required.extend((*kind == TaskKind::FanIn).then_some("depends_on"));
    required.extend(config::is_needed(task).then_some("config"));
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
pub(super) fn child(kinds: &Kinds) -> Value {
    let mut child = ChildParts::schema();
    kinds.offer(&mut child, can_be_child);
    child["anyOf"] = json!([{"required": ["type"]}, {"required": ["task"]}]);
    let of_type = |task: &TaskType| {
        let required: &[&str] = if config::is_needed(task) { &["config"] } else { &[] };
        let properties = json!({"config": refer(&config::name(&task.kind)), "task": false});
        json!({"properties": properties, "required": required})
    };
    child["allOf"] = kinds.rules(can_be_child, of_type).collect();
    json!({"anyOf": [text().schema(), child]})
}

/// A task in a file of its own.
pub(super) fn reusable(kinds: &Kinds) -> Value {
    let mut reusable = ReusableParts::schema();
    kinds.offer(&mut reusable, is_reusable);
    let shared = json!({"properties": {"global": {"const": true}}, "required": ["global"]});
    reusable["dependentSchemas"] = json!({"reuse_for_seconds": shared});
    let of_type = |task: &TaskType| {
        let mut properties = Map::from_iter([("config".to_owned(), refer(&config::name(&task.kind)))]);
        if task.kind.is_engine_task() {
            // Only the result of a worker can be shared.
            properties.insert("global".to_owned(), json!({"const": false}));
        }
        json!({"properties": properties})
    };
    reusable["allOf"] = kinds.rules(is_reusable, of_type).collect();
    reusable
}
