//! Schemas with something else in the place of a value: a template, a parameter, nothing.

use serde_json::{Map, Value, json};

/// What a text has in it that is a template.
const TEMPLATE: &str = r"\{[{%#]";
/// What a text has in it that a parameter is put into.
const PARAMETER: &str = r"\$\{\{\s*parameters\.";

/// A text that is a template.
pub(crate) fn template() -> Value {
    json!({"type": "string", "pattern": TEMPLATE})
}

/// The same, or a template in its place.
pub(crate) fn or_template(schema: Value) -> Value {
    or_text(schema, TEMPLATE)
}

/// The same, or a parameter's value in its place; a parameter looks like a template.
pub(super) fn or_parameter(schema: Value) -> Value {
    let is_template = |schema: &Value| schema["pattern"] == TEMPLATE;
    let mut others = schema["anyOf"].as_array().into_iter().flatten();
    match is_template(&schema) || others.any(is_template) {
        true => schema,
        false => or_text(schema, PARAMETER),
    }
}

/// The same, or nothing in its place.
pub(super) fn or_nothing(mut schema: Value) -> Value {
    let mut types = types(&schema);
    let has = |name: &str| schema.get(name).is_some();
    if schema == Value::Bool(false) || ["anyOf", "oneOf", "$ref", "enum", "const"].into_iter().any(has) {
        return either(schema, json!({"type": "null"}));
    }
    if !types.is_empty() {
        types.push("null".into());
        schema["type"] = types.into();
    }
    schema
}

fn or_text(mut schema: Value, pattern: &str) -> Value {
    if schema.is_boolean() {
        return schema;
    }
    let has = |name: &str| schema.get(name).is_some();
    let alternatives = ["anyOf", "oneOf", "$ref"].into_iter().any(has);
    let limited = ["enum", "const", "pattern", "format"].into_iter().any(has);
    let mut types = types(&schema);
    let any_text = types.iter().any(|name| name == "string") && !limited;
    if !alternatives && !limited && (types.is_empty() || any_text) {
        return schema;
    }
    if !alternatives && !limited {
        // What limits other types does not touch texts, and a pattern touches nothing else.
        types.push("string".into());
        schema["type"] = types.into();
        schema["pattern"] = pattern.into();
        return schema;
    }
    either(schema, json!({"type": "string", "pattern": pattern}))
}

/// One or the other, with the words of the first.
fn either(mut schema: Value, other: Value) -> Value {
    let mut whole = Map::new();
    for name in ["description", "default"] {
        whole.extend(schema.as_object_mut().and_then(|schema| schema.remove_entry(name)));
    }
    let mut shapes = match schema {
        Value::Bool(false) => Vec::new(),
        Value::Object(mut schema) if schema.len() == 1 && schema.contains_key("anyOf") => {
            schema["anyOf"].as_array_mut().map(std::mem::take).unwrap_or_default()
        }
        schema => vec![schema],
    };
    shapes.push(other);
    whole.insert("anyOf".to_owned(), shapes.into());
    whole.into()
}

/// The types that a schema names, of which there may be one or several.
pub(super) fn types(schema: &Value) -> Vec<Value> {
    match schema.get("type") {
        Some(Value::Array(names)) => names.clone(),
        Some(name) => vec![name.clone()],
        None => Vec::new(),
    }
}
