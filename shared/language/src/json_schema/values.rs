//! Schemas of single values, and mappings of them.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use crate::names::{MAX_CHARS, Rule};

/// What a text has in it that is a template.
const TEMPLATE: &str = r"\{[{%#]";

/// Fields with the words that an editor shows for each.
pub(super) fn fields<const N: usize>(fields: [(&str, &str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, says, schema)| (name.to_owned(), described(says, schema))).collect()
}

/// The same with words for people.
pub(super) fn described(says: &str, mut schema: Value) -> Value {
    schema["description"] = says.into();
    schema
}

/// A mapping of these fields and no others.
pub(super) fn object(properties: Map<String, Value>, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

pub(super) fn text() -> Value {
    json!({"type": "string", "minLength": 1})
}

pub(super) fn texts() -> Value {
    json!({"type": "array", "items": text()})
}

/// The names of tasks, none of them twice.
pub(super) fn task_names() -> Value {
    json!({"type": "array", "items": text(), "uniqueItems": true})
}

pub(super) fn name(rule: &Rule) -> Value {
    json!({"type": "string", "pattern": rule.pattern, "maxLength": MAX_CHARS})
}

pub(super) fn flag() -> Value {
    json!({"type": "boolean"})
}

pub(super) fn whole(range: RangeInclusive<u32>) -> Value {
    json!({"type": "integer", "minimum": range.start(), "maximum": range.end()})
}

pub(super) fn number(range: RangeInclusive<f64>) -> Value {
    json!({"type": "number", "minimum": range.start(), "maximum": range.end()})
}

pub(super) fn one_of(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

/// An expression, which may be as short as `true`.
pub(super) fn expression() -> Value {
    json!({"type": ["string", "boolean"], "minLength": 1})
}

pub(super) fn url() -> Value {
    json!({"type": "string", "pattern": "^https?://"})
}

/// A text that is a template.
pub(super) fn template() -> Value {
    json!({"type": "string", "pattern": TEMPLATE})
}

/// The same, or a template in its place.
pub(super) fn or_template(mut schema: Value) -> Value {
    let has = |name: &str| schema.get(name).is_some();
    let alternatives = ["anyOf", "oneOf", "$ref"].into_iter().any(has);
    let limited = ["enum", "pattern", "format"].into_iter().any(has);
    let mut types = types(&schema);
    let any_text = types.iter().any(|name| name == "string") && !limited;
    if !alternatives && !limited && (types.is_empty() || any_text) {
        return schema;
    }
    if !alternatives && !limited {
        // What limits other types does not touch texts, and a pattern touches nothing else.
        types.push("string".into());
        schema["type"] = types.into();
        schema["pattern"] = TEMPLATE.into();
        return schema;
    }
    let mut whole = json!({"anyOf": [schema, template()]});
    for name in ["description", "default"] {
        if let Some(words) = whole["anyOf"][0].as_object_mut().and_then(|inner| inner.remove(name)) {
            whole[name] = words;
        }
    }
    whole
}

/// The types that a schema names, of which there may be one or several.
pub(super) fn types(schema: &Value) -> Vec<Value> {
    match schema.get("type") {
        Some(Value::Array(names)) => names.clone(),
        Some(name) => vec![name.clone()],
        None => Vec::new(),
    }
}
