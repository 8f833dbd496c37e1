//! Values that test files share: times, instants, and names of tasks.

use chrono::TimeDelta;
use language::document::{Data, Fields, Node, Place, Report, hint, text};
use language::duration::Duration;
use model::{Instant, TaskSpec, Workflow};
use serde_json::{Map, Value};

/// A length of time such as `30s`, or a number of seconds.
pub(crate) fn span(node: &Node, report: &mut Report<'_>) -> Option<TimeDelta> {
    match serde_json::from_value::<Duration>(node.to_json()) {
        Ok(duration) => TimeDelta::from_std(duration.to_std()).ok(),
        Err(problem) => {
            report.add(&node.at, problem.to_string(), None);
            None
        }
    }
}

/// An instant, RFC 3339.
pub(crate) fn instant(node: &Node, report: &mut Report<'_>) -> Option<Instant> {
    let instant = serde_json::from_value(node.to_json()).ok();
    if instant.is_none() {
        let message = format!("expected an instant, found {}", node.describe());
        report.add(&node.at, message, Some("write such as 2026-01-31T06:00:00Z".to_owned()));
    }
    instant
}

/// A mapping of names to anything.
pub(crate) fn mapping(node: &Node, report: &mut Report<'_>) -> Map<String, Value> {
    match node.to_json() {
        Value::Object(entries) => entries,
        _ => {
            report.add(&node.at, format!("expected a mapping, found {}", node.describe()), None);
            Map::new()
        }
    }
}

/// The text of a field that need not be there.
pub(crate) fn words(fields: &mut Fields<'_>, name: &'static str, report: &mut Report<'_>) -> Option<String> {
    fields.get(name).and_then(|node| text(node, report)).map(|word| word.text.to_owned())
}

/// The definition of the task of that name: of a fan-out's child, that of the fan-out. There must be one.
pub(crate) fn task<'w>(
    name: &str,
    at: &Place,
    workflow: &'w Workflow,
    report: &mut Report<'_>,
) -> Option<&'w TaskSpec> {
    let named = |name: &str| workflow.tasks.iter().find(|spec| spec.name == name);
    let child = || parent(name).and_then(named).filter(|spec| spec.fan_out.is_some());
    let found = named(name).or_else(child);
    if found.is_none() {
        let hint = hint(name, workflow.tasks.iter().map(|spec| spec.name.as_str()));
        report.add(at, format!("the workflow `{}` has no task `{name}`", workflow.name), hint);
    }
    found
}

/// The fan-out whose child would have this name: `split` of `split__3`.
pub(crate) fn parent(name: &str) -> Option<&str> {
    let (parent, number) = name.rsplit_once("__")?;
    (!number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())).then_some(parent)
}

/// One thing, or a list of such things.
pub(crate) fn one_or_more(node: &Node) -> &[Node] {
    match &node.data {
        Data::List(items) => items,
        _ => std::slice::from_ref(node),
    }
}
