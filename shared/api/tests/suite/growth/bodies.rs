//! Bodies made up from the OpenAPI document: valid ones, with one field as large as one likes.

use ebbflow_api::openapi;
use serde_json::{Map, Value, json};

/// Stands for a number with as many digits as are wanted; no other text has it.
const DIGITS: &str = "\u{1}digits";

/// Values of fields that name something, so that requests get further than the lookup of a name.
const KNOWN: [(&str, &str); 10] = [
    ("worker", "w1"),
    ("queue", "remote-gpu"),
    ("workflow", "hello"),
    ("role", "viewer"),
    ("tenant", "default"),
    ("action", "cancel"),
    ("stream", "stdout"),
    ("level", "info"),
    ("from", "2027-01-01T00:00:00Z"),
    ("to", "2027-01-02T00:00:00Z"),
];

/// How deep fields of fields are enlarged.
const MAX_DEPTH: usize = 3;

/// A body in which something is large.
pub(super) struct Large {
    /// The field, and what it is full of.
    pub(super) what: String,
    make: Box<dyn Fn(usize) -> Value>,
}

impl Large {
    fn new(what: impl Into<String>, make: impl Fn(usize) -> Value + 'static) -> Self {
        Self { what: what.into(), make: Box::new(make) }
    }

    /// The body, about as large as that.
    pub(super) fn body(&self, size: usize) -> String {
        let text = (self.make)(size).to_string();
        text.replace(&json!(DIGITS).to_string(), &"7".repeat(size))
    }

    /// The same within an object that has other fields.
    fn within(self, name: &str, others: Map<String, Value>) -> Self {
        let (what, name) = (format!("{name}.{}", self.what), name.to_owned());
        Self::new(what, move |size| {
            let mut object = others.clone();
            object.insert(name.clone(), (self.make)(size));
            Value::Object(object)
        })
    }

    /// The same as the only item of a list.
    fn listed(self) -> Self {
        Self::new(format!("0.{}", self.what), move |size| json!([(self.make)(size)]))
    }
}

/// The schema of an operation's body, if it has one.
pub(super) fn schema(method: &str, path: &str) -> Option<&'static Value> {
    let operation = &openapi::document()["paths"][format!("/api/v1{path}")][method.to_lowercase()];
    let content = operation["requestBody"]["content"].as_object()?;
    content.get("application/json").map(|content| &content["schema"])
}

/// What a schema refers to, and the alternatives that it has, without null.
fn alternatives(schema: &'static Value) -> Vec<&'static Value> {
    if let Some(reference) = schema["$ref"].as_str() {
        let pointer = reference.trim_start_matches('#');
        return openapi::document().pointer(pointer).map(alternatives).unwrap_or_default();
    }
    let several = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema[*key].as_array());
    match several {
        Some(several) => several.iter().filter(|one| one["type"] != "null").flat_map(alternatives).collect(),
        None => vec![schema],
    }
}

/// Whether a schema allows a type; one without a type allows all.
fn allows(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::Null => schema["enum"].is_null() && schema["const"].is_null(),
        Value::Array(kinds) => kinds.iter().any(|one| one == kind),
        only => only == kind,
    }
}

/// The smallest value that fits a schema, more or less.
pub(super) fn valid(schema: &'static Value, name: &str) -> Value {
    let Some(schema) = alternatives(schema).into_iter().next() else { return json!(1) };
    if let Some((_, known)) = KNOWN.iter().find(|(known, _)| *known == name) {
        return json!(known);
    }
    let first = schema["enum"].get(0).or_else(|| schema.get("const"));
    if let Some(first) = first {
        return first.clone();
    }
    if allows(schema, "object") && schema["properties"].is_object() {
        return Value::Object(required(schema));
    }
    match schema["format"].as_str() {
        Some("date-time") => return json!("2027-01-15T08:00:00Z"),
        Some("date") => return json!("2027-01-15"),
        Some("uuid") => return json!("018f0000-0000-7000-8000-000000000001"),
        _ => {}
    }
    let kinds = [
        ("integer", schema["minimum"].as_i64().map_or(json!(1), |minimum| json!(minimum))),
        ("number", json!(1)),
        ("string", json!("x")),
        ("boolean", json!(true)),
        ("array", json!([])),
        ("object", json!({})),
    ];
    kinds.into_iter().find(|(kind, _)| allows(schema, kind)).map_or(Value::Null, |(_, value)| value)
}

/// The fields that an object must have.
fn required(schema: &'static Value) -> Map<String, Value> {
    let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names.map(|name| (name.to_owned(), valid(&schema["properties"][name], name))).collect()
}

/// Bodies of a schema, each with another thing that is large.
pub(super) fn large(schema: &'static Value) -> Vec<Large> {
    let mut found = values(schema, MAX_DEPTH);
    let unknown = valid(schema, "");
    if unknown.is_object() {
        found.push(Large::new("unknown fields", move |size| {
            let Value::Object(mut object) = keys(size, &json!(1)) else { return Value::Null };
            object.extend(unknown.as_object().cloned().unwrap_or_default());
            Value::Object(object)
        }));
    }
    found.push(Large::new("a list", |size| list(size, &json!(1))));
    found
}

fn values(schema: &'static Value, depth: usize) -> Vec<Large> {
    alternatives(schema).into_iter().flat_map(|one| one_of(one, depth)).collect()
}

fn one_of(schema: &'static Value, depth: usize) -> Vec<Large> {
    let mut found = Vec::new();
    if allows(schema, "string") {
        found.push(Large::new("a text", |size| json!("r".repeat(size))));
        found.push(Large::new("quotes and separators", |size| json!("\"\\{}[]=,:*/ é\n".repeat(size / 24))));
    }
    if allows(schema, "integer") || allows(schema, "number") {
        found.push(Large::new("digits", |_| json!(DIGITS)));
    }
    if allows(schema, "array") {
        let item = schema.get("items").filter(|items| items.is_object());
        let one = item.map_or(json!(1), |items| valid(items, ""));
        found.push(Large::new("items", move |size| list(size, &one)));
        if let Some(items) = item.filter(|_| depth > 0) {
            found.extend(values(items, depth - 1).into_iter().map(Large::listed));
        }
    }
    if allows(schema, "object") {
        let fields = schema["properties"].as_object().into_iter().flatten();
        for (name, field) in fields.filter(|_| depth > 0) {
            let others = required(schema);
            found
                .extend(values(field, depth - 1).into_iter().map(|large| large.within(name, others.clone())));
        }
        if schema["additionalProperties"] != json!(false) {
            let additional = schema.get("additionalProperties").filter(|it| it.is_object());
            let value = additional.map_or(json!(1), |value| valid(value, ""));
            let others = required(schema);
            found.push(Large::new("keys", move |size| {
                let Value::Object(mut object) = keys(size, &value) else { return Value::Null };
                object.extend(others.clone());
                Value::Object(object)
            }));
            found.push(Large::new("a long key", |size| json!({ "k".repeat(size): 1 })));
        }
    }
    found
}

/// Many copies of an item.
fn list(size: usize, item: &Value) -> Value {
    let length = item.to_string().len() + 1;
    Value::Array(vec![item.clone(); size / length])
}

/// Many keys with the same value.
fn keys(size: usize, value: &Value) -> Value {
    let length = value.to_string().len() + 10;
    Value::Object((0..size / length).map(|number| (format!("k{number:05}"), value.clone())).collect())
}
