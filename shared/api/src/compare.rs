//! The differences between two definitions of a workflow: its fields, its inputs, its tasks and the edges between them.
//!
//! Definitions are compared as they are serialized, so whatever the language can say is compared, field by field.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use model::Workflow;
use runtime::Graph;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Fields that are not compared as such, because another part of the difference shows them.
const COMPARED_APART: [&str; 4] = ["name", "inputs", "tasks", "depends_on"];

/// The differences between two definitions.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Difference {
    /// Fields of the workflow itself.
    pub fields: Vec<FieldChange>,
    /// The inputs that differ.
    pub inputs: Parts,
    /// The tasks that differ in more than their dependencies.
    pub tasks: Parts,
    /// The dependencies that differ.
    pub edges: Edges,
}

/// The named parts that differ: inputs or tasks.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Parts {
    /// The names that only the second definition has, in its order.
    pub added: Vec<String>,
    /// The names that only the first definition has, in its order.
    pub removed: Vec<String>,
    /// Those that both have and that differ, in the second one's order.
    pub changed: Vec<PartChange>,
}

/// A part that both definitions have and that differs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PartChange {
    /// The name of the part.
    pub name: String,
    /// The fields that differ in it.
    pub fields: Vec<FieldChange>,
}

/// A field that differs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FieldChange {
    /// The way to it, as in `config.command`.
    pub field: String,
    /// The value before; none if it was absent.
    pub before: Option<Value>,
    /// The value now; none if it was removed.
    pub after: Option<Value>,
}

/// The edges that only one of the definitions has, in the order of their names.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Edges {
    /// Those of the second one.
    pub added: Vec<Edge>,
    /// Those of the first one.
    pub removed: Vec<Edge>,
}

/// One task that another waits for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Edge {
    /// The task that is waited for.
    pub from: String,
    /// The task that waits.
    pub to: String,
}

impl fmt::Display for Edge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} → {}", self.from, self.to)
    }
}

impl Difference {
    /// Whether nothing differs but the order in which things are written.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The changes that turn the first definition into the second.
pub fn compare(before: &Workflow, after: &Workflow) -> Difference {
    let mut fields = Vec::new();
    compare_fields("", &fields_of(before), &fields_of(after), &mut fields);
    Difference {
        fields,
        inputs: compare_parts(
            before.inputs.iter().map(|input| (input.name.as_str(), fields_of(input))),
            after.inputs.iter().map(|input| (input.name.as_str(), fields_of(input))),
        ),
        tasks: compare_parts(
            before.tasks.iter().map(|task| (task.name.as_str(), fields_of(task))),
            after.tasks.iter().map(|task| (task.name.as_str(), fields_of(task))),
        ),
        edges: compare_edges(&edges(before), &edges(after)),
    }
}

fn fields_of(part: &impl Serialize) -> Map<String, Value> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(part) else { return Map::new() };
    fields.retain(|field, _| !COMPARED_APART.contains(&field.as_str()));
    fields
}

fn compare_parts<'a>(
    before: impl Iterator<Item = (&'a str, Map<String, Value>)>,
    after: impl Iterator<Item = (&'a str, Map<String, Value>)>,
) -> Parts {
    let before: Vec<_> = before.collect();
    let mut known: BTreeMap<&str, &Map<String, Value>> =
        before.iter().map(|(name, fields)| (*name, fields)).collect();
    let mut parts = Parts::default();
    for (name, now) in after {
        match known.remove(name) {
            None => parts.added.push(name.to_owned()),
            Some(then) => {
                let mut fields = Vec::new();
                compare_fields("", then, &now, &mut fields);
                if !fields.is_empty() {
                    parts.changed.push(PartChange { name: name.to_owned(), fields });
                }
            }
        }
    }
    let gone = before.iter().filter(|(name, _)| known.contains_key(name));
    parts.removed = gone.map(|(name, _)| (*name).to_owned()).collect();
    parts
}

/// Descends into mappings, so that each change has its path; lists are compared as a whole, and so are mappings that
/// have nothing in common, since they say something else.
fn compare_fields(
    way: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    found: &mut Vec<FieldChange>,
) {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        let field = if way.is_empty() { name.clone() } else { format!("{way}.{name}") };
        match (before.get(name), after.get(name)) {
            (Some(Value::Object(before)), Some(Value::Object(after)))
                if before.keys().any(|key| after.contains_key(key)) =>
            {
                compare_fields(&field, before, after, found);
            }
            (before, after) if before != after => {
                found.push(FieldChange { field, before: before.cloned(), after: after.cloned() });
            }
            _ => {}
        }
    }
}

/// Every edge, as the engine sees it; a definition that has no graph has none.
fn edges(workflow: &Workflow) -> BTreeSet<Edge> {
    let Ok(graph) = Graph::compile(workflow.clone()) else { return BTreeSet::new() };
    let name = |task| graph.spec(task).name.clone();
    graph
        .indices()
        .flat_map(|task| graph.parents(task).iter().map(move |parent| (*parent, task)))
        .map(|(parent, task)| Edge { from: name(parent), to: name(task) })
        .collect()
}

fn compare_edges(before: &BTreeSet<Edge>, after: &BTreeSet<Edge>) -> Edges {
    Edges {
        added: after.difference(before).cloned().collect(),
        removed: before.difference(after).cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use runtime::{FileKind, SourceFile};
    use serde_json::json;

    use super::*;

    fn workflow(text: &str) -> Workflow {
        let file = SourceFile { path: "etl.yaml".into(), kind: FileKind::Workflow, text: text.into() };
        let mut compiled = runtime::compile(&model::Queues::default(), &[file], &|| false).unwrap();
        compiled.remove(0).workflow
    }

    const BEFORE: &str = "
name: etl
inputs:
  day: {type: date}
  mode: {type: string, default: full}
tasks:
  - {name: load, type: bash, config: {command: load, env: {A: '1', B: '2'}}}
  - {name: check, type: noop, depends_on: [load]}
  - {name: tell, type: echo, depends_on: [check], config: {text: done}}
";

    #[test]
    fn a_definition_does_not_differ_from_itself() {
        assert!(compare(&workflow(BEFORE), &workflow(BEFORE)).is_empty());
    }

    #[test]
    fn tasks_and_edges_that_come_and_go_are_named() {
        let after = BEFORE
            .replace("{name: check, type: noop", "{name: clean, type: noop")
            .replace("[check]", "[clean, load]");
        let difference = compare(&workflow(BEFORE), &workflow(&after));
        assert_eq!(difference.tasks.added, ["clean"]);
        assert_eq!(difference.tasks.removed, ["check"]);
        assert_eq!(difference.tasks.changed, [], "edges are separate from tasks");
        let names = |edges: &[Edge]| edges.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(&difference.edges.added), ["clean → tell", "load → clean", "load → tell"]);
        assert_eq!(names(&difference.edges.removed), ["check → tell", "load → check"]);
    }

    #[test]
    fn a_changed_field_has_its_path() {
        let after = BEFORE.replace("A: '1', B: '2'", "A: '3', C: '4'").replace("text: done", "text: [done]");
        let changed = compare(&workflow(BEFORE), &workflow(&after)).tasks.changed;
        let change = |field: &str, before: Option<&str>, after: Option<Value>| FieldChange {
            field: field.into(),
            before: before.map(Value::from),
            after,
        };
        assert_eq!(changed[0].name, "load");
        assert_eq!(
            changed[0].fields,
            [
                change("config.env.A", Some("1"), Some(json!("3"))),
                change("config.env.B", Some("2"), None),
                change("config.env.C", None, Some(json!("4"))),
            ]
        );
        assert_eq!(changed[1].fields, [change("config.text", Some("done"), Some(json!(["done"])))]);
    }

    #[test]
    fn inputs_and_descriptions_are_compared_too() {
        let after = BEFORE
            .replace("day: {type: date}", "region: {type: string}")
            .replace("default: full", "default: delta")
            .replace("name: etl\n", "name: etl\ndescription: Loads.\n");
        let difference = compare(&workflow(BEFORE), &workflow(&after));
        assert_eq!(
            (difference.inputs.added, difference.inputs.removed),
            (vec!["region".into()], vec!["day".into()])
        );
        assert_eq!(difference.inputs.changed[0].fields[0].after, Some(json!("delta")));
        assert_eq!(difference.fields[0].field, "description");
        assert!(difference.tasks.changed.is_empty() && difference.edges == Edges::default());
    }

    #[test]
    fn another_order_is_no_difference() {
        let lines: Vec<&str> = BEFORE.lines().collect();
        let mut turned = lines.clone();
        turned.swap(7, 8);
        assert!(compare(&workflow(BEFORE), &workflow(&turned.join("\n"))).is_empty());
    }
}
