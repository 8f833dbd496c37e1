//! The secrets and outputs that a config names: known without rendering it, so that they alone are fetched first.

use std::collections::BTreeSet;

use serde_json::Value;

use super::shell;
use super::syntax::{self, Template, is_template};

const SECRETS: &str = "secrets";

/// The names of the secrets that the templates and command lines of a config use.
pub fn secrets_of(config: &Value) -> BTreeSet<String> {
    named(config, SECRETS).into_iter().flatten().collect()
}

/// The tasks whose outputs the templates, command lines and expressions of a config use. None stands for any of them: which
/// one is known only once it is rendered.
pub fn outputs_of(config: &Value) -> BTreeSet<Option<String>> {
    named(config, "outputs")
}

/// What comes after `top` in the names that a config uses; none where that is known only after rendering.
fn named(config: &Value, top: &str) -> BTreeSet<Option<String>> {
    let mut found = BTreeSet::new();
    gather(config, top, &mut found);
    found
}

fn gather(value: &Value, top: &str, found: &mut BTreeSet<Option<String>>) {
    match value {
        Value::String(text) => of_text(text, top, found),
        Value::Array(items) => items.iter().for_each(|item| gather(item, top, found)),
        Value::Object(fields) => fields.values().for_each(|field| gather(field, top, found)),
        _ => {}
    }
}

/// A command line has braces of others in it and may be no template as a whole. A text without braces may be an expression,
/// which can use no secrets.
fn of_text(text: &str, top: &str, found: &mut BTreeSet<Option<String>>) {
    let parsed = match is_template(text) {
        true => syntax::parse(text),
        false if top == SECRETS => return,
        false => syntax::parse_expression(text),
    };
    match parsed {
        Ok(template) => add(&template, top, found),
        Err(_) => {
            let slots =
                shell::read(text).slots.into_iter().filter_map(|slot| syntax::parse(&text[slot.span]).ok());
            slots.for_each(|template| add(&template, top, found));
        }
    }
}

/// Adds what one template names.
fn add(template: &Template, top: &str, found: &mut BTreeSet<Option<String>>) {
    let named = template.references.iter().filter(|reference| reference.path[0] == top);
    found.extend(named.map(|reference| reference.path.get(1).cloned()));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plain_text_names_no_secret() {
        assert_eq!(secrets_of(&json!(["secrets.A", "{{ secrets.B }}"])), ["B".to_owned()].into());
    }

    #[test]
    fn the_outputs_that_a_config_uses_are_known_by_name() {
        let names = |config: Value| outputs_of(&config).into_iter().collect::<Vec<_>>();
        let one = |name: &str| vec![Some(name.to_owned())];
        assert_eq!(names(json!({"a": ["{{ outputs.load.rows }} of {{ inputs.day }}"]})), one("load"));
        assert_eq!(names(json!({"command": "wc -l ${x} {{ outputs['get-data'].file }}"})), one("get-data"));
        assert_eq!(names(json!({"expression": "outputs.load.rows > 1"})), one("load"));
        assert_eq!(names(json!("{{ outputs[inputs.name] }}")), [None]);
        assert_eq!(names(json!("a text about outputs, and nothing else")), []);
    }
}
