//! The parameters that a template declares, and what values they take.

use model::{InputSpec, InputType};
use regex::Regex;
use serde_json::{Number, Value, json};

use super::marker;
use crate::diagnostic::Report;
use crate::inputs;
use crate::names;
use crate::node::{Data, Key, Node};
use crate::read::{self, Word};
use crate::shape::{
    Given, Record, Shape, any, choice, flag, given, list, name, node, record, refer, required, text,
};
use crate::template;

/// One parameter that a template declares.
pub(super) struct Parameter<'n> {
    /// Name, type and choices, which are those of an input.
    spec: InputSpec,
    pub(super) default: Option<&'n Node>,
    pattern: Option<Regex>,
    minimum: Option<Number>,
    maximum: Option<Number>,
}

record! {
    /// A parameter as declared.
    pub(crate) struct ParameterParts<'n> as "a parameter" {
        /// The type of its value.
        r#type: InputType = required(choice(&inputs::TYPES)),
        /// A description for people.
        description: Word<'n> = text(),
        /// States explicitly that there is no default.
        required: Given<'n, bool> = given(flag()),
        /// The default; without one, the parameter is required.
        default: &'n Node = any(),
        /// The only values that are allowed.
        r#enum: Vec<&'n Node> = list(any()),
        /// A regular expression that a text must match.
        pattern: &'n Node = node(|| text().schema()),
        /// The minimum of a number.
        minimum: &'n Node = node(|| json!({"type": "number"})),
        /// The maximum of a number.
        maximum: &'n Node = node(|| json!({"type": "number"})),
    }
    where rules()
}

fn rules() -> Value {
    let mut rules = inputs::by_type(|kind| {
        let value = inputs::value_schema(kind);
        let mut properties = json!({"default": value, "enum": {"items": value}});
        let has_limits = matches!(kind, InputType::Integer | InputType::Number);
        for (field, allowed) in
            [("pattern", kind == InputType::String), ("minimum", has_limits), ("maximum", has_limits)]
        {
            if !allowed {
                properties[field] = false.into();
            }
        }
        properties
    });
    rules["dependentSchemas"] = json!({
        "default": {"properties": {"required": {"const": false}}},
        "required": {"anyOf": [{"properties": {"required": {"const": true}}}, {"required": ["default"]}]},
    });
    rules
}

/// The JSON Schema of a template's `parameters`.
pub(crate) fn schema() -> Value {
    let names = name(&names::PARAMETER).schema();
    json!({"type": "object", "propertyNames": names, "additionalProperties": refer("parameter")})
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
        let parts = ParameterParts::read(node, report)?;
        check_required(&parts, report);
        let spec = InputSpec {
            name: key.name.clone(),
            kind: parts.r#type?,
            description: parts.description.map(|word| word.text.to_owned()),
            default: None,
            choices: Vec::new(),
        };
        let pattern = parts.pattern.and_then(|node| read_pattern(node, spec.kind, report));
        let [minimum, maximum] = read_limits([parts.minimum, parts.maximum], spec.kind, report);
        let mut parameter = Self { spec, default: parts.default, pattern, minimum, maximum };
        let choices = parts.r#enum.unwrap_or_default();
        for choice in &choices {
            parameter.check(choice, report);
        }
        parameter.spec.choices = choices.into_iter().map(Node::to_json).collect();
        if let Some(default) = parts.default {
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

fn check_required(parts: &ParameterParts<'_>, report: &mut Report<'_>) {
    let Some(required) = parts.required else { return };
    match (required.value, parts.default) {
        (Some(true), Some(_)) => {
            let hint = Some("remove one of the two".to_owned());
            report.add(required.at, "a parameter with a default cannot be required", hint);
        }
        (Some(false), None) => {
            let hint = Some("add `default: …`, or remove `required`".to_owned());
            report.add(required.at, "an optional parameter needs a default", hint);
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
