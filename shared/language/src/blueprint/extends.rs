//! `extends`: which template, and with what parameters.

use serde_json::{Value, json};

use super::field;
use crate::diagnostic::Report;
use crate::node::{Data, Key, Node, Position};
use crate::read::{self, Word};
use crate::shape::{Given, Record, Shape, custom, given, record, required, text};

record! {
    /// The long form of `extends`, with parameters.
    struct ExtendsParts<'n> as "`extends`" {
        /// The name of a workflow template from `templates/`.
        template: Word<'n> = required(text()),
        /// The values of its parameters, by name.
        parameters: Given<'n, &'n [(Key, Node)]> = given(custom(read_given, || json!({"type": "object"}))),
    }
}

/// The JSON Schema of `extends`: the name of a template, with parameters or without.
pub(crate) fn schema() -> Value {
    json!({"anyOf": [text().schema(), ExtendsParts::schema()]})
}

/// The template that a file extends.
pub(super) struct Extends<'n> {
    pub(super) at: &'n Position,
    pub(super) template: Word<'n>,
    pub(super) parameters: &'n [(Key, Node)],
}

impl<'n> Extends<'n> {
    /// Reads the name of a template, or a mapping that gives its parameters too.
    pub(super) fn read(node: &'n Node, report: &mut Report<'_>) -> Option<Self> {
        if !matches!(node.data, Data::Map(_)) {
            let template = read::text(node, report)?;
            return Some(Self { at: &node.at, template, parameters: &[] });
        }
        let parts = ExtendsParts::read(node, report)?;
        let parameters = parts.parameters.map_or(Some([].as_slice()), |given| given.value);
        Some(Self { at: &node.at, template: parts.template?, parameters: parameters? })
    }

    /// Reads it in a workflow, which may also give the parameters in a field of their own.
    pub(super) fn read_in_workflow(root: &'n Node, node: &'n Node, report: &mut Report<'_>) -> Option<Self> {
        let extends = Self::read(node, report)?;
        let Some(beside) = field(root, "parameters").filter(|node| !node.is_null()) else {
            return Some(extends);
        };
        if !extends.parameters.is_empty() {
            let hint = Some("keep one of the two".to_owned());
            report.add(&beside.at, "the parameters are given in `extends` already", hint);
            return None;
        }
        Some(Self { parameters: read_given(beside, report)?, ..extends })
    }

    /// Whether the parameter of that name is given here.
    pub(super) fn gives(&self, name: &str) -> bool {
        self.parameters.iter().any(|(key, node)| key.name == name && !node.is_null())
    }
}

fn read_given<'n>(node: &'n Node, report: &mut Report<'_>) -> Option<&'n [(Key, Node)]> {
    match &node.data {
        Data::Map(entries) => Some(entries),
        _ => {
            let hint = Some("write, for example, `{source: orders}`".to_owned());
            let message = format!("`parameters` must be a mapping, but this is {}", node.describe());
            report.add(&node.at, message, hint);
            None
        }
    }
}
