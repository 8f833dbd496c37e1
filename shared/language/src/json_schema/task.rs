//! Tasks: in a workflow, as the child of a fan-out, and in a file of their own.

use model::TaskKind;
use serde_json::{Map, Value, json};

use super::config;
use super::draft::Draft;
use super::parts;
use super::refer;
use super::values::{described, expression, fields, flag, name, object, one_of, signed, text, whole};
use crate::dependencies::TRIGGER_RULES;
use crate::fan::{AGGREGATIONS, CHILDRENS, MAX_CHILDREN, NO_CHILDREN};
use crate::names;
use crate::task::{self, MAX_RETRY_TIMEOUT, MAX_REUSE, MAX_TIMEOUT, OWN_FIELDS};
use crate::types;

/// Settings that a task, a reusable task and a workflow's `defaults` share.
pub(super) fn settings() -> Map<String, Value> {
    let mut queue = name(&names::PLAIN);
    queue["default"] = task::DEFAULT_QUEUE.into();
    fields([
        ("retry_policy", "Whether and when it is retried.", refer("retry_policy")),
        ("timeout_seconds", "How long one attempt may take.", whole(1..=MAX_TIMEOUT)),
        ("retry_timeout_seconds", "How long all attempts together may take.", whole(1..=MAX_RETRY_TIMEOUT)),
        ("queue", "The queue whose workers execute it.", queue),
        ("pool", "The pool; tasks of a pool share its slots.", name(&names::PLAIN)),
        ("priority", "Where slots are scarce, a higher priority goes first.", signed(task::PRIORITIES)),
    ])
}

/// An entry of `tasks`: a task of its own, or a reference to a reusable one.
pub(super) fn entry() -> Value {
    let mut entry = any_entry();
    entry["allOf"].as_array_mut().into_iter().for_each(|conditions| conditions.push(reference()));
    entry
}

/// An entry that is laid over another one of its name, or takes it out. What it does not say may be said there.
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
    let mut properties = fields([
        ("name", "The task's name, unique in the workflow.", name(&names::TASK)),
        ("type", "The task type.", types(|_| true)),
        (
            "task",
            "The name of a reusable task from `tasks/`. In a fan-out: the task to run for each element.",
            refer("child"),
        ),
        ("description", "For people. Templates are rendered.", text()),
        ("depends_on", "The dependencies: a list, or `{any_of: […]}`.", refer("depends_on")),
        (
            "trigger_rule",
            "Which states of the dependencies let the task run; default `all_success`.",
            one_of(&TRIGGER_RULES),
        ),
        ("when", "An expression; if it is false, the task is skipped.", expression()),
        ("allow_failure", "Whether the run may succeed although this task failed.", flag()),
        ("config", "The settings of its type.", json!({})),
    ]);
    properties.extend(own_fields());
    properties.extend(settings());
    properties.extend(parts::callbacks(false));
    let mut entry = object(properties, &[]);
    entry["anyOf"] = json!([{"required": ["type"]}, {"required": ["task"]}]);
    entry["allOf"] = TaskKind::ALL.iter().map(|kind| when(*kind, of_type(*kind))).chain([any_of()]).collect();
    entry
}

/// The fields that only tasks of some types have.
fn own_fields() -> Map<String, Value> {
    let tolerance = json!({"anyOf": [
        whole(0..=MAX_CHILDREN),
        {"type": "string", "pattern": r"^\s*\+?0*(100|[0-9]{1,2})\s*%$"},
    ]});
    fields([
        ("cases", "The branches of a switch.", parts::cases()),
        ("for_each", "An expression that returns the list, such as `outputs['find'].files`.", text()),
        ("max_parallel", "The maximum number of active children.", whole(1..=MAX_CHILDREN)),
        ("tolerated_failures", "How many children may fail: a number, or a share such as `10%`.", tolerance),
        ("aggregation", "How to aggregate the outputs; default `collect`.", one_of(&AGGREGATIONS)),
        ("field", "The field of each output to aggregate; default: all of it.", text()),
    ])
}

/// What holds for a task once its type is known.
fn of_type(kind: TaskKind) -> Value {
    let strange = OWN_FIELDS.iter().filter(|(_, owner)| *owner != kind).map(|(field, _)| *field);
    let (needed, refused): (&[&str], &[&str]) = match kind {
        TaskKind::Switch => (&["cases"], &["task"]),
        TaskKind::FanOut => (&["for_each", "task"], &CHILDRENS),
        TaskKind::FanIn => (&["depends_on"], &["task"]),
        _ => (&[], &["task"]),
    };
    let mut properties: Map<String, Value> =
        strange.chain(refused.iter().copied()).map(|field| (field.to_owned(), false.into())).collect();
    properties.insert("config".to_owned(), refer(&config::name(kind)));
    let mut required = vec!["name"];
    required.extend(needed);
    required.extend(config::is_needed(kind).then_some("config"));
    json!({"properties": properties, "required": required})
}

/// What holds for a reference: its type is fixed elsewhere.
fn reference() -> Value {
    let strange = OWN_FIELDS.iter().map(|(field, _)| *field).chain(["description"]);
    let mut properties: Map<String, Value> = strange.map(|field| (field.to_owned(), false.into())).collect();
    properties.insert("task".to_owned(), text());
    json!({"if": {"required": ["task"], "not": {"required": ["type"]}}, "then": {"properties": properties}})
}

/// `any_of` says itself when a task goes on.
fn any_of() -> Value {
    let waits = json!({"type": "object", "required": ["any_of"]});
    json!({
        "if": {"properties": {"depends_on": waits}, "required": ["depends_on"]},
        "then": {"properties": {"trigger_rule": false}},
    })
}

/// What a fan-out does for each element: a task written there, or the name of a reusable one.
pub(super) fn child() -> Value {
    let is_child = |kind: TaskKind| !NO_CHILDREN.contains(&kind);
    let mut properties = fields([
        ("type", "The type of each child.", types(is_child)),
        ("task", "The name of a reusable task from `tasks/`.", text()),
        ("config", "The settings of its type. Templates may name `item` and `index`.", json!({})),
    ]);
    properties.extend(settings());
    let mut child = object(properties, &[]);
    child["anyOf"] = json!([{"required": ["type"]}, {"required": ["task"]}]);
    let of_type = |kind: TaskKind| {
        let required: &[&str] = if config::is_needed(kind) { &["config"] } else { &[] };
        let properties = json!({"config": refer(&config::name(kind)), "task": false});
        when(kind, json!({"properties": properties, "required": required}))
    };
    child["allOf"] = TaskKind::ALL.iter().copied().filter(|kind| is_child(*kind)).map(of_type).collect();
    json!({"anyOf": [text(), child]})
}

/// A task in a file of its own.
pub(super) fn reusable() -> Value {
    let is_reusable = |kind: TaskKind| task::own_fields(kind).next().is_none();
    let mut properties = fields([
        ("name", "The task's name, the same as the file's.", name(&names::TASK)),
        ("type", "The task type.", types(is_reusable)),
        ("description", "For people. Templates are rendered.", text()),
        ("config", "The settings of its type. Workflows that use the task may add to them.", json!({})),
        ("global", "Whether all runs share one execution of it.", flag()),
        ("reuse_for_seconds", "How long a shared output is reused; default 0.", whole(0..=MAX_REUSE)),
    ]);
    properties.extend(settings());
    properties.extend(parts::callbacks(false));
    let mut reusable = object(properties, &["name", "type"]);
    let shared = json!({"properties": {"global": {"const": true}}, "required": ["global"]});
    reusable["dependentSchemas"] = json!({"reuse_for_seconds": shared});
    let of_type = |kind: TaskKind| {
        let mut properties = json!({"config": refer(&config::name(kind))});
        if kind.is_engine_task() {
            // Only a worker's result can be shared.
            properties["global"] = json!({"const": false});
        }
        when(kind, json!({"properties": properties}))
    };
    reusable["allOf"] =
        TaskKind::ALL.iter().copied().filter(|kind| is_reusable(*kind)).map(of_type).collect();
    reusable
}

fn when(kind: TaskKind, then: Value) -> Value {
    json!({"if": {"properties": {"type": {"const": kind}}, "required": ["type"]}, "then": then})
}

/// The types that are allowed somewhere, each with what it does.
fn types(allowed: impl Fn(TaskKind) -> bool) -> Value {
    let each = types::types().iter().filter(|task| allowed(task.kind));
    json!({"oneOf": each.map(|task| json!({"const": task.kind, "description": task.summary})).collect::<Vec<_>>()})
}
