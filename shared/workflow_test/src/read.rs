//! Values that test files share: times, instants and mappings.

use chrono::TimeDelta;
use language::document::{Data, Fields, Node, Report, text};
use language::duration::Duration;
use model::Instant;
use serde_json::{Map, Value};

/// A duration such as `30s`, or a number of seconds.
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
        report.add(&node.at, message, Some("for example 2026-01-31T06:00:00Z".to_owned()));
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

/// The text of an optional field.
pub(crate) fn words(fields: &mut Fields<'_>, name: &'static str, report: &mut Report<'_>) -> Option<String> {
    fields.get(name).and_then(|node| text(node, report)).map(|word| word.text.to_owned())
}

/// One node, or a list of nodes.
pub(crate) fn one_or_more(node: &Node) -> &[Node] {
    match &node.data {
        Data::List(items) => items,
        _ => std::slice::from_ref(node),
    }
}
