//! The parameters that a template declares, and what values they take.

use model::{InputSpec, InputType};
use regex::Regex;
use serde_json::{Number, Value};

use super::marker;
use crate::diagnostic::Report;
use crate::inputs;
use crate::names;
use crate::node::{Data, Key, Node};
use crate::read::{self, Fields, Word};
use crate::template;

/// One declared parameter.
pub(super) struct Parameter<'n> {
    /// Name, type and choices, which are those of an input.
    spec: InputSpec,
    pub(super) default: Option<&'n Node>,
    pattern: Option<Regex>,
    minimum: Option<Number>,
    maximum: Option<Number>,
}

/// Reads the declared parameters, in the order in which they were written.
pub(super) fn read<'n>(node: &'n Node, report: &mut Report<'_>) -> Vec<Parameter<'n>> {
    let Data::Map(entries) = &node.data else {
        let hint = Some("write, for example, `source: {type: string}`".to_owned());
        let message = format!("`parameters` must be a mapping, but this is {}", node.describe());
        report.add(&node.at, message, hint);
        return Vec::new();
    };
    entries.iter().filter_map(|(key, node)| Parameter::read(key, node, report)).collect()
}

impl<'n> Parameter<'n> {
    fn read(key: &Key, node: &'n Node, report: &mut Report<'_>) -> Option<Self> {
        names::check(Word { text: &key.name, at: &key.at }, &names::PARAMETER, report);
        let mut fields = Fields::of(node, "a parameter", report)?;
        let kind = fields.require("type").and_then(|node| read::choice(node, &inputs::TYPES, report));
        let description = fields.get("description").and_then(|node| read::text(node, report));
        let (required, default) = (fields.get("required"), fields.get("default"));
        let choices = fields.get("enum").and_then(|node| read::list(node, report)).unwrap_or_default();
        let (pattern, limits) = (fields.get("pattern"), ["minimum", "maximum"].map(|name| fields.get(name)));
        fields.finish(report);
        check_required(required, default, report);
        let spec = InputSpec {
            name: key.name.clone(),
            kind: kind?,
            description: description.map(|word| word.text.to_owned()),
            default: None,
            choices: Vec::new(),
        };
        let pattern = pattern.and_then(|node| read_pattern(node, spec.kind, report));
        let [minimum, maximum] = read_limits(limits, spec.kind, report);
        let mut parameter = Self { spec, default, pattern, minimum, maximum };
        for choice in choices {
            parameter.check(choice, report);
        }
        parameter.spec.choices = choices.iter().map(Node::to_json).collect();
        if let Some(default) = default {
            parameter.check(default, report);
        }
        Some(parameter)
    }

    pub(super) fn name(&self) -> &str {
        &self.spec.name
    }

    /// Whether the parameter takes a value; why not is reported.
    pub(super) fn check(&self, node: &Node, report: &mut Report<'_>) -> bool {
        let before = report.len();
        let value = node.to_json();
        marker::each_text(node, &mut |text, at, _| {
            if template::is_template(text) {
                let message =
                    "parameters are filled in before a run exists, so they cannot contain templates";
                let hint = "write `{{ … }}` into the task that renders it, or use an input";
                report.add(at, message, Some(hint.to_owned()));
            }
        });
        if report.len() == before
            && let Some((message, hint)) =
                inputs::refusal(&self.spec, &value).or_else(|| self.refusal(&value))
        {
            report.add(&node.at, message, hint);
        }
        report.len() == before
    }

    /// Why a value of the right type is not taken.
    fn refusal(&self, value: &Value) -> Option<(String, Option<String>)> {
        let pattern =
            self.pattern.as_ref().zip(value.as_str()).filter(|(pattern, text)| !pattern.is_match(text));
        if let Some((pattern, text)) = pattern {
            return Some((format!("`{}` does not match `{pattern}`", text.escape_debug()), None));
        }
        let number = value.as_f64()?;
        let low = self.minimum.as_ref().filter(|limit| limit.as_f64().is_some_and(|limit| number < limit));
        let high = self.maximum.as_ref().filter(|limit| limit.as_f64().is_some_and(|limit| number > limit));
        let low = low.map(|limit| format!("{value} is less than the minimum, {limit}"));
        low.or_else(|| high.map(|limit| format!("{value} is more than the maximum, {limit}")))
            .map(|message| (message, None))
    }
}

fn check_required(required: Option<&Node>, default: Option<&Node>, report: &mut Report<'_>) {
    let Some(node) = required else { return };
    match (read::flag(node, report), default) {
        (Some(true), Some(_)) => {
            let hint = Some("remove one of the two".to_owned());
            report.add(&node.at, "a parameter with a default cannot be required", hint);
        }
        (Some(false), None) => {
            let hint = Some("add `default: …`, or remove `required`".to_owned());
            report.add(&node.at, "an optional parameter needs a default", hint);
        }
        _ => {}
    }
}

fn read_pattern(node: &Node, kind: InputType, report: &mut Report<'_>) -> Option<Regex> {
    if kind != InputType::String {
        let hint = Some("write `type: string`, or remove `pattern`".to_owned());
        report.add(&node.at, "only a text has a pattern", hint);
        return None;
    }
    let word = read::text(node, report)?;
    let refused = |error: regex::Error| {
        let shown = error.to_string();
        let reason = shown.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        report.add(word.at, format!("this is not a valid regular expression: {reason}"), None);
    };
    Regex::new(word.text).map_err(refused).ok()
}

fn read_limits(nodes: [Option<&Node>; 2], kind: InputType, report: &mut Report<'_>) -> [Option<Number>; 2] {
    let limits = nodes.map(|node| node.and_then(|node| read_limit(node, kind, report)));
    let [minimum, maximum] = limits.each_ref().map(|limit| limit.as_ref().and_then(Number::as_f64));
    if let (Some(minimum), Some(maximum), Some(node)) = (minimum, maximum, nodes[0])
        && minimum > maximum
    {
        let message = "the minimum is more than the maximum, so there is no value in between";
        report.add(&node.at, message, None);
    }
    limits
}

fn read_limit(node: &Node, kind: InputType, report: &mut Report<'_>) -> Option<Number> {
    if !matches!(kind, InputType::Integer | InputType::Number) {
        let hint = Some("write `type: integer` or `type: number`, or remove it".to_owned());
        report.add(&node.at, "only a number has a minimum and a maximum", hint);
        return None;
    }
    match &node.data {
        Data::Number(number) => Some(number.clone()),
        _ => {
            report.add(&node.at, format!("expected a number, found {}", node.describe()), None);
            None
        }
    }
}
