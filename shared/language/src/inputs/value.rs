//! What values the types of inputs allow.

use model::{InputSpec, InputType, instant};
use serde_json::{Value, json};

use crate::suggest;

/// The types as written after `type:`.
pub(crate) const TYPES: [&str; 8] =
    ["string", "integer", "number", "boolean", "date", "datetime", "list", "object"];

/// The JSON Schema of the values of a type.
pub(crate) fn schema(kind: InputType) -> Value {
    match kind {
        InputType::String => json!({"type": "string"}),
        InputType::Integer => json!({"type": "integer"}),
        InputType::Number => json!({"type": "number"}),
        InputType::Boolean => json!({"type": "boolean"}),
        InputType::Date => json!({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}),
        InputType::Datetime => json!({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]"}),
        InputType::List => json!({"type": "array"}),
        InputType::Object => json!({"type": "object"}),
    }
}

/// The rules that hold for a declaration once its type is known.
pub(crate) fn by_type(properties: impl Fn(InputType) -> Value) -> Value {
    let of_type = |name: &&str| {
        let kind = serde_json::from_value(Value::from(*name)).expect("it is the name of a type");
        json!({
            "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
            "then": {"properties": properties(kind)},
        })
    };
    json!({"allOf": TYPES.iter().map(of_type).collect::<Vec<_>>()})
}

/// Why the input does not allow `value`.
pub(crate) fn refusal(input: &InputSpec, value: &Value) -> Option<(String, Option<String>)> {
    if !fits(input.kind, value) {
        let hint = hint(input.kind, value);
        return Some((format!("expected {}, found {}", in_words(input.kind), shown(value)), hint));
    }
    if !input.choices.is_empty() && !input.choices.contains(value) {
        let texts = input.choices.iter().filter_map(Value::as_str);
        let near = value.as_str().and_then(|word| suggest::nearest(word, texts));
        let allowed: Vec<String> = input.choices.iter().map(quoted).collect();
        let message = format!("{} is not one of {}", quoted(value), allowed.join(", "));
        return Some((message, near.map(|near| format!("did you mean `{near}`?"))));
    }
    None
}

fn fits(kind: InputType, value: &Value) -> bool {
    match (kind, value) {
        (InputType::String, Value::String(_))
        | (InputType::Number, Value::Number(_))
        | (InputType::Boolean, Value::Bool(_))
        | (InputType::List, Value::Array(_))
        | (InputType::Object, Value::Object(_)) => true,
        (InputType::Integer, Value::Number(number)) => !number.is_f64(),
        (InputType::Date, Value::String(text)) => is_date(text),
        (InputType::Datetime, Value::String(text)) => instant::parse(text).is_ok(),
        _ => false,
    }
}

/// The parser takes `2026-1-1` too, which sorts and compares badly.
fn is_date(text: &str) -> bool {
    text.len() == 10 && text.starts_with(|c: char| c.is_ascii_digit()) && instant::parse_date(text).is_some()
}

fn in_words(kind: InputType) -> &'static str {
    match kind {
        InputType::String => "a text",
        InputType::Integer => "a whole number",
        InputType::Number => "a number",
        InputType::Boolean => "`true` or `false`",
        InputType::Date => "a date such as `2026-01-31`",
        InputType::Datetime => "an instant such as `2026-01-31T18:00:00Z`",
        InputType::List => "a list",
        InputType::Object => "a mapping",
    }
}

fn hint(kind: InputType, value: &Value) -> Option<String> {
    match (kind, value) {
        (InputType::String | InputType::Date | InputType::Datetime, Value::Number(_) | Value::Bool(_)) => {
            Some(format!("put it in quotes: \"{value}\""))
        }
        (InputType::Integer | InputType::Number, Value::String(text)) if text.parse::<f64>().is_ok() => {
            Some("write it without quotes".to_owned())
        }
        (InputType::Boolean, Value::String(text)) => match text.as_str() {
            "yes" | "on" | "true" => Some("write `true`, without quotes".to_owned()),
            "no" | "off" | "false" => Some("write `false`, without quotes".to_owned()),
            _ => None,
        },
        _ => None,
    }
}

fn quoted(value: &Value) -> String {
    value.as_str().map_or_else(|| format!("`{value}`"), |text| format!("`{}`", text.escape_debug()))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
        Value::Null => "nothing".to_owned(),
        Value::String(text) => format!("the text `{}`", text.escape_debug()),
        other => format!("`{other}`"),
    }
}
