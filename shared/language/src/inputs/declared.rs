//! `inputs` of a workflow file.

use model::{InputSpec, InputType};
use serde_json::{Value, json};

use super::InputNames;
use super::value::{self, TYPES};
use crate::diagnostic::Report;
use crate::names;
use crate::node::{Data, Key, Node};
use crate::read::Word;
use crate::shape::{Record, any, choice, list, name, record, refer, required, text};
use crate::template;

record! {
    /// An input as declared.
    pub(crate) struct InputParts<'n> as "an input" {
        /// The type of its value.
        r#type: InputType = required(choice(&TYPES)),
        /// A description for people.
        description: Word<'n> = text(),
        /// The default; without one, the input is required.
        default: &'n Node = any(),
        /// The only values that are allowed.
        r#enum: Vec<&'n Node> = list(any()),
    }
    where value::by_type(|kind| {
        // A template may give it too.
        let value = crate::json_schema::or_template(value::schema(kind));
        json!({"default": value, "enum": {"items": value}})
    })
}

/// The JSON Schema of `inputs`.
pub(crate) fn schema() -> Value {
    let names = crate::shape::Shape::schema(&name(&names::INPUT));
    json!({"type": "object", "propertyNames": names, "additionalProperties": refer("input")})
}

/// Reads the declared inputs, in the order in which they were written.
pub(crate) fn read(node: &Node, report: &mut Report<'_>) -> Vec<InputSpec> {
    let Data::Map(entries) = &node.data else {
        let hint = Some("write, for example, `day: {type: date}`".to_owned());
        report.add(&node.at, format!("`inputs` must be a mapping, but this is {}", node.describe()), hint);
        return Vec::new();
    };
    let mut inputs = Vec::new();
    let mut earlier = InputNames::default();
    for (key, node) in entries {
        if let Some(input) = read_input(key, node, &earlier, report) {
            earlier.push(&input.name);
            inputs.push(input);
        }
    }
    inputs
}

fn read_input(key: &Key, node: &Node, earlier: &InputNames, report: &mut Report<'_>) -> Option<InputSpec> {
    names::check(Word { text: &key.name, at: &key.at }, &names::INPUT, report);
    let parts = InputParts::read(node, report)?;
    let mut input = InputSpec {
        name: key.name.clone(),
        kind: parts.r#type?,
        description: parts.description.map(|word| word.text.to_owned()),
        default: parts.default.map(Node::to_json),
        choices: Vec::new(),
    };
    let choices = parts.r#enum.unwrap_or_default();
    choices.iter().for_each(|choice| check(&input, choice, report));
    input.choices = choices.into_iter().map(Node::to_json).collect();
    if let Some(default) = parts.default {
        template::check(default, Some(&template::Names::of_default(earlier)), report);
        check(&input, default, report);
    }
    Some(input)
}

/// Reports a value that the input would not take; what a template gives is known only later.
fn check(input: &InputSpec, node: &Node, report: &mut Report<'_>) {
    let value = node.to_json();
    let later = matches!(&value, Value::String(text) if template::is_template(text));
    if let Some((message, hint)) = value::refusal(input, &value).filter(|_| !later) {
        report.add(&node.at, message, hint);
    }
}
