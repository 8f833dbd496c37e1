//! `inputs` of a workflow file.

use model::InputSpec;
use serde_json::Value;

use super::value::{self, TYPES};
use crate::diagnostic::Report;
use crate::names;
use crate::node::{Data, Key, Node};
use crate::read::{self, Fields, Word};
use crate::template;

/// Reads the declared inputs, in the order in which they were written.
pub(crate) fn read(node: &Node, report: &mut Report<'_>) -> Vec<InputSpec> {
    let Data::Map(entries) = &node.data else {
        let hint = Some("write, for example, `day: {type: date}`".to_owned());
        report.add(&node.at, format!("`inputs` must be a mapping, but this is {}", node.describe()), hint);
        return Vec::new();
    };
    let mut inputs = Vec::new();
    for (key, node) in entries {
        if let Some(input) = read_input(key, node, &inputs, report) {
            inputs.push(input);
        }
    }
    inputs
}

fn read_input(key: &Key, node: &Node, earlier: &[InputSpec], report: &mut Report<'_>) -> Option<InputSpec> {
    names::check(Word { text: &key.name, at: &key.at }, &names::INPUT, report);
    let mut fields = Fields::of(node, "an input", report)?;
    let kind = fields.require("type").and_then(|node| read::choice(node, &TYPES, report));
    let description = fields.get("description").and_then(|node| read::text(node, report));
    let default = fields.get("default");
    let choices = fields.get("enum").and_then(|node| read::list(node, report)).unwrap_or_default();
    fields.finish(report);
    let mut input = InputSpec {
        name: key.name.clone(),
        kind: kind?,
        description: description.map(|word| word.text.to_owned()),
        default: default.map(Node::to_json),
        choices: Vec::new(),
    };
    choices.iter().for_each(|choice| check(&input, choice, report));
    input.choices = choices.iter().map(Node::to_json).collect();
    if let Some(default) = default {
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
