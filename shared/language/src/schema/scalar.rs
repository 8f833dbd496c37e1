//! What a schema allows of one value by itself: its type, its range, its format, the words allowed.

use serde_json::Value;

use super::format::Format;
use crate::node::{Data, Node};
use crate::suggest::{self, Budget};
use crate::template;

/// What is wrong with a value, and how to put it right.
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Problem {
    fn of(message: String, hint: Option<String>) -> Option<Self> {
        Some(Self { message, hint })
    }
}

/// The first thing about the value itself that the schema does not allow.
pub(super) fn problem(schema: &Value, node: &Node, budget: &Budget) -> Option<Problem> {
    wrong_type(schema, node)
        .or_else(|| wrong_word(schema, node, budget))
        .or_else(|| out_of_range(schema, node))
        .or_else(|| wrong_format(schema, node))
}

fn wrong_type(schema: &Value, node: &Node) -> Option<Problem> {
    let wanted: Vec<&str> = match schema.get("type")? {
        Value::String(name) => vec![name.as_str()],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    if wanted.iter().any(|name| is_of(name, node)) {
        return None;
    }
    let words: Vec<&str> = wanted.iter().filter(|name| **name != "null").map(|name| in_words(name)).collect();
    let hint = match &node.data {
        Data::Number(_) | Data::Bool(_) if wanted.contains(&"string") => {
            Some(format!("put it in quotes: \"{}\"", node.to_json()))
        }
        Data::Text(text) if template::is_template(text) && wanted.iter().any(|name| is_list(name)) => {
            Some("write its entries: one template cannot stand for all of them".to_owned())
        }
        Data::Text(text) if wanted.contains(&"array") => Some(format!("write [{text}]")),
        Data::Number(number) if wanted.contains(&"array") => Some(format!("write [{number}]")),
        _ => None,
    };
    Problem::of(format!("expected {}, found {}", words.join(" or "), node.describe()), hint)
}

fn is_list(name: &str) -> bool {
    matches!(name, "array" | "object")
}

fn is_of(name: &str, node: &Node) -> bool {
    match (name, &node.data) {
        ("null", Data::Null)
        | ("boolean", Data::Bool(_))
        | ("number", Data::Number(_))
        | ("string", Data::Text(_))
        | ("array", Data::List(_))
        | ("object", Data::Map(_)) => true,
        ("integer", Data::Number(number)) => !number.is_f64(),
        _ => false,
    }
}

fn in_words(name: &str) -> &str {
    match name {
        "boolean" => "`true` or `false`",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "a text",
        "array" => "a list",
        "object" => "a mapping",
        other => other,
    }
}

fn wrong_word(schema: &Value, node: &Node, budget: &Budget) -> Option<Problem> {
    let allowed = schema.get("enum")?.as_array()?;
    let value = node.to_json();
    if allowed.contains(&value) {
        return None;
    }
    let words = || allowed.iter().filter_map(Value::as_str);
    let in_words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let listed: Vec<String> = allowed.iter().filter(|value| !value.is_null()).map(in_words).collect();
    let listed = suggest::list(listed.iter().map(String::as_str));
    let hint = value.as_str().and_then(|word| {
        let other_case = words().find(|candidate| candidate.eq_ignore_ascii_case(word));
        other_case.or_else(|| budget.nearest(word, words())).map(|near| format!("did you mean `{near}`?"))
    });
    Problem::of(format!("expected one of {listed}, found {}", node.describe()), hint)
}

fn out_of_range(schema: &Value, node: &Node) -> Option<Problem> {
    let Data::Number(number) = &node.data else { return None };
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let (least, most) = (bound("minimum"), bound("maximum"));
    let value = number.as_f64()?;
    if least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most) {
        return None;
    }
    let range = match (least, most) {
        (Some(least), Some(most)) => format!("from {least} to {most}"),
        (Some(least), None) => format!("of at least {least}"),
        (None, most) => format!("of at most {}", most.unwrap_or_default()),
    };
    Problem::of(format!("expected a number {range}, found {number}"), None)
}

/// Whether a setting must be known before anything runs, and so cannot be a template.
pub(crate) fn is_fixed(schema: &Value) -> bool {
    Format::of(schema).is_some_and(|format| format.is_fixed)
}

fn wrong_format(schema: &Value, node: &Node) -> Option<Problem> {
    let Data::Text(text) = &node.data else { return None };
    Format::of(schema)?.problem(text)
}
