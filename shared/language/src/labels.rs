//! `requires` of a task, as written: the labels that its worker must have.

use model::{Label, Labels};
use serde_json::json;

use crate::diagnostic::Report;
use crate::node::{Data, Node};
use crate::read;
use crate::shape::{Shape, custom};

/// The maximum number of labels that a task requires.
const MAX_LABELS: usize = 8;

/// The maximum length of a label's name, and of its value if that is a text.
const MAX_CHARS: usize = 63;

const NAME: &str = "^[A-Za-z0-9_.-]{1,63}$";
const VALUE: &str = "^[A-Za-z0-9_.:/-]{1,63}$";

/// The shape of labels: a mapping of names to texts, numbers or flags.
pub(crate) fn labels<'n>() -> impl Shape<'n, Value = Labels> {
    let schema = || {
        json!({
            "type": "object",
            "maxProperties": MAX_LABELS,
            "propertyNames": {"pattern": NAME},
            "additionalProperties": {"type": ["string", "number", "boolean"], "pattern": VALUE},
            "examples": [{"gpu": true}],
        })
    };
    custom(read_labels, schema)
}

fn read_labels(node: &Node, report: &mut Report<'_>) -> Option<Labels> {
    let entries = read::entries(node, "labels by name", report)?;
    if entries.len() > MAX_LABELS {
        report.add(&node.at, format!("a task requires at most {MAX_LABELS} labels"), None);
        return None;
    }
    let mut labels = Labels::default();
    for (key, value) in entries {
        if !fits(&key.name, "_.-") {
            let message = format!(
                "a label's name has only letters, digits, `_`, `.` and `-`, and at most {MAX_CHARS} characters"
            );
            report.add(&key.at, message, None);
        }
        if let Some(label) = read_label(value, report) {
            labels.0.insert(key.name.clone(), label);
        }
    }
    Some(labels)
}

fn read_label(node: &Node, report: &mut Report<'_>) -> Option<Label> {
    match &node.data {
        Data::Bool(flag) => Some(Label::Flag(*flag)),
        Data::Number(number) => Some(Label::Number(number.clone())),
        Data::Text(text) if fits(text, "_.:/-") => Some(Label::Text(text.clone())),
        _ => {
            let message = format!(
                "expected `true`, `false`, a number, or a text of letters, digits, `_`, `.`, `:`, `/` and `-` with at most \
                 {MAX_CHARS} characters, found {}",
                node.describe()
            );
            report.add(&node.at, message, None);
            None
        }
    }
}

fn fits(text: &str, marks: &str) -> bool {
    let known = |character: char| character.is_ascii_alphanumeric() || marks.contains(character);
    (1..=MAX_CHARS).contains(&text.len()) && text.chars().all(known)
}
