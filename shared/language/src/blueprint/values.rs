//! The values of a template's parameters, and putting them in.

use std::collections::{BTreeMap, BTreeSet};

use super::marker::{self, Marker};
use super::parameter::Parameter;
use crate::allowance;
use crate::diagnostic::Report;
use crate::node::{Data, Key, Node, Position};
use crate::suggest;

/// The value of every parameter that a template may use.
pub(super) struct Values(BTreeMap<String, Value>);

struct Value {
    node: Node,
    /// As it is written within a longer text.
    text: String,
}

impl Values {
    /// The values of the parameters `open`: those given at `at` where they fit, and defaults for the rest.
    pub(super) fn bind(
        template: &str,
        open: &[&Parameter<'_>],
        given: &[(Key, Node)],
        at: &Position,
        report: &mut Report<'_>,
    ) -> Option<Self> {
        let before = report.len();
        let meant = check_names(template, open, given, report);
        let given: BTreeMap<&str, &Node> = given
            .iter()
            .rev()
            .filter(|(_, node)| !node.is_null())
            .map(|(key, node)| (key.name.as_str(), node))
            .collect();
        let mut values = BTreeMap::new();
        for parameter in open {
            let name = parameter.name();
            match given.get(name).copied().or(parameter.default) {
                Some(node) if parameter.check(node, report) => {
                    values.insert(name.to_owned(), Value { node: node.clone(), text: written(node) });
                }
                None if !meant.contains(&name) => {
                    let message = format!("the workflow template `{template}` needs the parameter `{name}`");
                    report.add(at, message, Some(format!("add `{name}: …` to `parameters`")));
                }
                _ => {}
            }
        }
        (report.len() == before).then_some(Self(values))
    }

    /// A parameter's value, to hand it on.
    pub(super) fn entry(&self, name: &str) -> Option<(Key, Node)> {
        let value = self.0.get(name)?;
        Some((Key { name: name.to_owned(), at: value.node.at.clone() }, value.node.clone()))
    }

    /// The tree with values instead of markers.
    pub(super) fn fill(&self, node: &Node, report: &mut Report<'_>) -> Node {
        let data = match &node.data {
            Data::Text(text) if marker::is_in(text) => {
                return self.fill_text(text, &node.at, report);
            }
            Data::List(items) => Data::List(items.iter().map(|item| self.fill(item, report)).collect()),
            Data::Map(entries) => {
                let entry = |(key, node): &(Key, Node)| (key.clone(), self.fill(node, report));
                Data::Map(entries.iter().map(entry).collect())
            }
            data => data.clone(),
        };
        Node { data, at: node.at.clone() }
    }

    fn fill_text(&self, text: &str, at: &Position, report: &mut Report<'_>) -> Node {
        let mut filled = String::new();
        let mut end = 0;
        for marker in marker::find(text) {
            let Some(value) = marker.name().and_then(|name| self.0.get(name)) else { continue };
            let is_all = marker.span == (0..text.len());
            let bytes = if is_all { allowance::weight(&value.node) } else { value.text.len() };
            if !report.take(bytes, |report| marker::position(&marker, text, at, report)) {
                break;
            }
            if is_all {
                return value.node.clone();
            }
            filled.push_str(&text[end..marker.span.start]);
            end = marker.span.end;
            let start = filled.len();
            filled.push_str(&value.text);
            // A value by itself was checked when it was given.
            if opens(&filled[..start], &value.text) || opens(&filled, &text[end..]) {
                report_opening(&marker, text, at, report);
            }
        }
        filled.push_str(&text[end..]);
        Node { data: Data::Text(filled), at: at.clone() }
    }
}

/// Reports given parameters that do not exist. Returns the existing ones that they probably stand for.
pub(super) fn check_names<'p>(
    template: &str,
    open: &[&'p Parameter<'_>],
    given: &[(Key, Node)],
    report: &mut Report<'_>,
) -> BTreeSet<&'p str> {
    let known: BTreeSet<&str> = open.iter().map(|parameter| parameter.name()).collect();
    let written: BTreeSet<&str> = given.iter().map(|(key, _)| key.name.as_str()).collect();
    let free: Vec<&'p str> =
        open.iter().map(|parameter| parameter.name()).filter(|name| !written.contains(name)).collect();
    let mut meant = BTreeSet::new();
    for (key, _) in given.iter().filter(|(key, _)| !known.contains(key.name.as_str())) {
        let near = report.budget.nearest(&key.name, free.iter().copied());
        meant.extend(near);
        let hint = match (near, known.is_empty()) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, true) => "remove it: there are no parameters".to_owned(),
            (None, false) => {
                format!("choose from {}", suggest::list(open.iter().map(|parameter| parameter.name())))
            }
        };
        let message = format!("the workflow template `{template}` has no parameter `{}`", key.name);
        report.add(&key.at, message, Some(hint));
    }
    meant
}

fn report_opening(marker: &Marker<'_>, text: &str, at: &Position, report: &mut Report<'_>) {
    let hint = Some("keep the braces apart from the parameter".to_owned());
    let message = "with its value, the parameter would become part of a template that a run renders";
    report.add(&marker::position(marker, text, at, report), message, hint);
}

/// Whether a template opens where two texts meet.
fn opens(left: &str, right: &str) -> bool {
    left.ends_with('{') && right.starts_with(['{', '%', '#'])
}

fn written(node: &Node) -> String {
    match &node.data {
        Data::Text(text) => text.clone(),
        _ => node.to_json().to_string(),
    }
}
