//! A config against its task type's JSON Schema: every problem, with its position and the nearest valid word.
//!
//! A general validator reports "is not valid under any of the schemas"; this one knows only what our own types
//! produce, so it can tell a person what to write. It also lets templates pass,
//! whose values are not known yet. What else the schema of a custom type requires, a general validator checks after it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::diagnostic::Finding;
use crate::node::{Data, Key, Node, Position};
use crate::suggest::{self, Budget};
use crate::template;

pub(crate) mod format;
pub(crate) mod scalar;

/// How much of a config is at hand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// A reusable task's: a reference may add to it.
    Part,
    /// All of it, before rendering.
    Whole,
    /// All of it, after rendering: what looks like a template is a text.
    Rendered,
}

/// Everything about `node` that the schema of the task type called `owner` does not allow.
pub(crate) fn check(
    schema: &Value,
    node: &Node,
    owner: &str,
    extent: Extent,
    budget: &Budget,
) -> Vec<Finding> {
    let mut checker = Checker { root: schema, owner, extent, budget, found: Vec::new() };
    checker.value(schema, node);
    checker.found
}

struct Checker<'s> {
    root: &'s Value,
    owner: &'s str,
    extent: Extent,
    budget: &'s Budget,
    found: Vec<Finding>,
}

impl<'s> Checker<'s> {
    fn value(&mut self, schema: &'s Value, node: &Node) {
        let schema = self.resolve(schema);
        if self.is_template(node) && !scalar::is_fixed(schema) {
            return;
        }
        if let Some(problem) = scalar::problem(schema, node, self.budget) {
            return self.report(&node.at, problem.message, problem.hint);
        }
        match alternatives(schema) {
            Some(alternatives) => self.best_of(alternatives, node),
            None => self.members(schema, node),
        }
    }

    fn members(&mut self, schema: &'s Value, node: &Node) {
        match &node.data {
            Data::Map(entries) => {
                let unknown: Vec<&Key> =
                    entries.iter().filter_map(|(key, value)| self.entry(schema, key, value)).collect();
                let meant = self.unknown(schema, entries, &unknown);
                self.required(schema, entries, &meant, &node.at);
            }
            Data::List(items) => {
                if let Some(inner) = schema.get("items") {
                    items.iter().for_each(|item| self.value(inner, item));
                }
            }
            _ => {}
        }
    }

    /// Checks one entry of a mapping; returns its key if it is unknown.
    fn entry<'k>(&mut self, schema: &'s Value, key: &'k Key, value: &Node) -> Option<&'k Key> {
        if let Some(rule) = schema.get("propertyNames") {
            let name = Node { data: Data::Text(key.name.clone()), at: key.at.clone() };
            let problem = scalar::problem(rule, &name, self.budget);
            problem.into_iter().for_each(|problem| self.report(&key.at, problem.message, problem.hint));
        }
        let known = schema.get("properties").and_then(|properties| properties.get(&key.name));
        match (known, schema.get("additionalProperties")) {
            // Written with nothing after it: as if it were absent.
            (Some(_), _) if value.is_null() && self.extent != Extent::Rendered => {}
            (Some(inner), _) => self.value(inner, value),
            (None, _) if schema.get("patternProperties").is_some() => {}
            (None, Some(Value::Bool(false))) => return Some(key),
            (None, Some(inner)) => self.value(inner, value),
            (None, None) => {}
        }
        None
    }

    /// Reports unknown settings. Returns the known ones that they probably stand for.
    fn unknown(&mut self, schema: &'s Value, entries: &[(Key, Node)], keys: &[&Key]) -> BTreeSet<&'s str> {
        let written: BTreeSet<&str> = entries.iter().map(|(key, _)| key.name.as_str()).collect();
        let known: Vec<&str> = properties(schema).collect();
        let absent: Vec<&str> = known.iter().copied().filter(|name| !written.contains(name)).collect();
        let mut meant = BTreeSet::new();
        for key in keys {
            let near = self.budget.nearest(&key.name, absent.iter().copied());
            meant.extend(near);
            let hint = match (near, known.is_empty()) {
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, true) => "remove it: there are no settings".to_owned(),
                (None, false) => format!("known here: {}", suggest::list(known.iter().copied())),
            };
            let message = format!("`{}` has no setting `{}` here", self.owner, key.name);
            self.report(&key.at, message, Some(hint));
        }
        meant
    }

    /// Reports missing settings, except those of which a misspelling was reported.
    fn required(
        &mut self,
        schema: &'s Value,
        entries: &[(Key, Node)],
        meant: &BTreeSet<&str>,
        at: &Position,
    ) {
        if self.extent == Extent::Part {
            return;
        }
        let given = |name: &str| entries.iter().any(|(key, value)| key.name == name && !value.is_null());
        for name in names(schema.get("required")).filter(|name| !given(name) && !meant.contains(name)) {
            let hint = Some(format!("add `{name}: …`"));
            self.report(at, format!("`{}` needs the setting `{name}`", self.owner), hint);
        }
        for (name, needed) in dependent(schema).filter(|(name, needed)| given(name) && !given(needed)) {
            let at = entries.iter().find(|(key, _)| key.name == name).map_or(at, |(key, _)| &key.at);
            let hint = Some(format!("add `{needed}: …`, or remove `{name}`"));
            self.report(at, format!("`{}` takes `{name}` only with `{needed}`", self.owner), hint);
        }
        let choices: Vec<&str> = exclusive(schema).collect();
        let chosen = choices.iter().filter(|name| given(name)).count();
        let missing = chosen == 0 && !choices.is_empty() && !choices.iter().any(|name| meant.contains(name));
        if chosen > 1 || missing {
            self.not_one_of(choices, chosen, at);
        }
    }

    fn not_one_of(&mut self, choices: Vec<&str>, chosen: usize, at: &Position) {
        let found = if chosen == 0 { "is none of them" } else { "are several" };
        let which = suggest::list(choices);
        self.report(at, format!("`{}` needs exactly one of {which}, and here {found}", self.owner), None);
    }

    /// Of several shapes one must fit; if none does, the one that fits best is reported.
    fn best_of(&mut self, alternatives: &'s [Value], node: &Node) {
        let absence = |shape: &&Value| shape.get("type").is_some_and(|name| name == "null");
        let serious = alternatives.iter().filter(|shape| node.is_null() || !absence(shape));
        let trials = serious.map(|alternative| {
            let mut trial = Checker { found: Vec::new(), ..*self };
            trial.value(alternative, node);
            trial.found
        });
        let best = trials.min_by_key(Vec::len).unwrap_or_default();
        if best.is_empty() {
            return;
        }
        let shapes = || alternatives.iter().filter(|shape| shape.get("properties").is_some());
        match (&node.data, shapes().count() > 1) {
            (Data::Map(entries), true) => self.one_shape(&shapes().collect::<Vec<_>>(), entries, node),
            _ => self.found.extend(best),
        }
    }

    /// Shapes that differ by their only key, such as `{duration: …}` and `{until: …}`.
    fn one_shape(&mut self, shapes: &[&'s Value], entries: &[(Key, Node)], node: &Node) {
        let keys: Vec<&str> = shapes.iter().flat_map(|shape| properties(shape)).collect();
        let (known, unknown): (Vec<&Key>, Vec<&Key>) =
            entries.iter().map(|(key, _)| key).partition(|key| keys.contains(&key.name.as_str()));
        for key in &unknown {
            let hint = self.budget.hint(&key.name, keys.iter().copied());
            self.report(&key.at, format!("`{}` has no setting `{}` here", self.owner, key.name), hint);
        }
        match known.as_slice() {
            _ if !unknown.is_empty() => {}
            [key] => {
                let shape = shapes.iter().find(|shape| properties(shape).any(|name| name == key.name));
                shape.iter().for_each(|shape| self.members(shape, node));
            }
            [] if self.extent == Extent::Part => {}
            several => self.not_one_of(keys, several.len(), &node.at),
        }
    }

    fn resolve(&self, schema: &'s Value) -> &'s Value {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#'));
        target.and_then(|pointer| self.root.pointer(pointer)).unwrap_or(schema)
    }

    fn is_template(&self, node: &Node) -> bool {
        self.extent != Extent::Rendered
            && matches!(&node.data, Data::Text(text) if template::is_template(text))
    }

    fn report(&mut self, at: &Position, message: String, hint: Option<String>) {
        self.found.push(Finding { at: at.clone(), message, hint });
    }
}

/// The settings that only make sense beside another one, each with that other one.
fn dependent(schema: &Value) -> impl Iterator<Item = (&str, &str)> {
    let rules = schema.get("dependentRequired").and_then(Value::as_object).into_iter().flatten();
    rules.flat_map(|(name, needed)| names(Some(needed)).map(move |needed| (name.as_str(), needed)))
}

/// The shapes of which one must fit.
fn alternatives(schema: &Value) -> Option<&[Value]> {
    let shapes = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
    let only_required = |shape: &Value| shape.as_object().is_some_and(|keys| keys.keys().eq(["required"]));
    let is_record = schema.get("properties").is_some();
    (!is_record && !shapes.iter().all(only_required)).then_some(shapes)
}

/// The keys of which exactly one must be given, beside others.
fn exclusive(schema: &Value) -> impl Iterator<Item = &str> {
    let shapes = schema.get("oneOf").filter(|_| alternatives(schema).is_none()).and_then(Value::as_array);
    let one_key = |shape: &Value| {
        shape.as_object().is_some_and(|keys| keys.len() == 1) && names(shape.get("required")).count() == 1
    };
    let shapes = shapes.filter(|shapes| shapes.iter().all(one_key));
    shapes.into_iter().flatten().flat_map(|shape| names(shape.get("required")))
}

fn properties(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str())
}

fn names(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
