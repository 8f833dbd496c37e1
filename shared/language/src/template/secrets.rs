//! The secrets that a config names: known without rendering it, so that a worker can fetch them first.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{shell, syntax};

/// The names of the secrets that the templates and command lines of a config use.
pub fn secrets_of(config: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    gather(config, &mut found);
    found
}

fn gather(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => of_text(text, found),
        Value::Array(items) => items.iter().for_each(|item| gather(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| gather(field, found)),
        _ => {}
    }
}

/// A command line has braces of others in it and may be no template as a whole.
fn of_text(text: &str, found: &mut BTreeSet<String>) {
    if !add(text, found) {
        shell::slots(text).into_iter().for_each(|slot| _ = add(&text[slot.span], found));
    }
}

/// Adds what one template names; whether it is one.
fn add(source: &str, found: &mut BTreeSet<String>) -> bool {
    let Ok(template) = syntax::parse(source) else { return false };
    let secrets = template.references.iter().filter(|reference| reference.path[0] == "secrets");
    found.extend(secrets.filter_map(|reference| reference.path.get(1)).cloned());
    true
}
