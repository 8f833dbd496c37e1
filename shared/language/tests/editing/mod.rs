//! Every way to change a document in one place.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// A name that no field has.
const UNKNOWN: &str = "zzzzzzzz";

/// One change of a document.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    /// Another value at this place.
    Replace { at: String, value: Value },
    /// This entry of the mapping at this place is gone.
    Remove { at: String, name: String },
    /// The mapping at this place has this entry more.
    Insert { at: String, name: String, value: Value },
}

impl Edit {
    /// The document after the change.
    pub(crate) fn apply(&self, document: &Value) -> Value {
        let mut edited = document.clone();
        let (Self::Replace { at, .. } | Self::Remove { at, .. } | Self::Insert { at, .. }) = self;
        let Some(place) = edited.pointer_mut(at) else { return edited };
        match self {
            Self::Replace { value, .. } => *place = value.clone(),
            Self::Remove { name, .. } => drop(place.as_object_mut().and_then(|entries| entries.remove(name))),
            Self::Insert { name, value, .. } => place[name] = value.clone(),
        }
        edited
    }

    /// Whether it inserts a field that is none.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Self::Insert { name, .. } if name == UNKNOWN)
    }

    /// The same entry under another name, with values of several types; nothing if there is one of that name.
    pub(crate) fn renamed(&self, document: &Value, name: &str) -> Vec<Self> {
        let Self::Insert { at, .. } = self else { return Vec::new() };
        if document.pointer(at).is_some_and(|place| place.get(name).is_some()) {
            return Vec::new();
        }
        let values = [json!(true), json!(5), json!("text"), json!([]), json!({})];
        let inserted =
            values.into_iter().map(|value| Self::Insert { at: at.clone(), name: name.to_owned(), value });
        inserted.collect()
    }
}

fn values() -> Vec<Value> {
    let template = "{% if true %}x{% endif %}";
    vec![
        json!(true),
        json!(5),
        json!(-1),
        json!(0.5),
        json!(100_000_000),
        json!("text"),
        json!(""),
        json!("{{ 5 }}"),
        json!(template),
        json!([]),
        json!({}),
        json!(["text"]),
        json!({"text": "text"}),
        json!("10%"),
        json!("5m"),
    ]
}

/// Every edit at a place that is unlike those seen before.
pub(crate) fn edits(document: &Value, seen: &mut BTreeSet<String>) -> Vec<Edit> {
    let mut found = Vec::new();
    visit(document, String::new(), String::new(), &mut |value, at, like| {
        if !seen.insert(like.to_owned()) {
            return;
        }
        let at = || at.to_owned();
        found.extend(values().into_iter().map(|value| Edit::Replace { at: at(), value }));
        for name in value.as_object().into_iter().flat_map(|entries| entries.keys()) {
            found.push(Edit::Remove { at: at(), name: name.clone() });
        }
        if value.is_object() {
            found.push(Edit::Insert { at: at(), name: UNKNOWN.to_owned(), value: json!("text") });
        }
    });
    found
}

/// Whether parameters are given here, which only the template knows.
fn is_heir(mapping: &Map<String, Value>) -> bool {
    mapping.contains_key("extends") || mapping.contains_key("template")
}

/// Visits every value with its place and what makes that place unlike others: its fields, not its position.
fn visit(value: &Value, at: String, like: String, see: &mut impl FnMut(&Value, &str, &str)) {
    see(value, &at, &like);
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let kind = item.get("type").and_then(Value::as_str).unwrap_or_default();
                visit(item, format!("{at}/{index}"), format!("{like}/{kind}"), see);
            }
        }
        Value::Object(entries) => {
            // What overrides something else can be checked only beside it.
            let overrides = !entries.contains_key("type");
            let is_skipped = |name: &str| overrides && ["config", "default"].contains(&name);
            for (name, inner) in entries.iter().filter(|(name, _)| !is_skipped(name)) {
                let escaped = name.replace('~', "~0").replace('/', "~1");
                let (at, like) = (format!("{at}/{escaped}"), format!("{like}/{name}"));
                match name == "parameters" && is_heir(entries) {
                    true => see(&Value::Null, &at, &like),
                    false => visit(inner, at, like, see),
                }
            }
        }
        _ => {}
    }
}
