//! What can be checked of a template before its parameters are given: its fields, and its tasks' fields and types.
//!
//! Only the readers of workflows and tasks know the fields. So they read a skeleton: the template with nothing behind
//! most of its keys. Their reports on keys hold; those on missing values do not matter.

use super::{OWN, field, marker, without};
use crate::diagnostic::Report;
use crate::library::Library;
use crate::node::{Data, Node};
use crate::workflow;

/// Reports fields that no workflow or task has, and types and reusable tasks that do not exist.
pub(super) fn check(root: &Node, library: &Library<'_>, report: &mut Report<'_>) {
    let skeleton = skeleton(root);
    // A missing field is reported for the whole mapping.
    let mut wholes = vec![root.at.path.to_string()];
    if let Some(Node { data: Data::List(tasks), .. }) = field(&skeleton, "tasks") {
        wholes.extend(tasks.iter().map(|task| task.at.path.to_string()));
    }
    let mut aside = report.aside();
    aside.allowance.begin();
    workflow::read(&skeleton, library, &mut aside);
    report.take_over(aside, |found| !wholes.contains(&found.path));
}

fn skeleton(root: &Node) -> Node {
    let mut root = without(root, &OWN);
    if let Data::Map(entries) = &mut root.data {
        for (key, node) in entries {
            match &mut node.data {
                Data::List(tasks) if key.name == "tasks" => {
                    tasks.retain(|task| field(task, "remove").is_none());
                    tasks.iter_mut().for_each(strip_task);
                    if tasks.is_empty() {
                        node.data = Data::Null;
                    }
                }
                _ if key.name == "tasks" => {}
                data => *data = Data::Null,
            }
        }
    }
    root
}

/// Leaves a task's keys, and the values that decide its kind.
fn strip_task(task: &mut Node) {
    let Data::Map(entries) = &mut task.data else { return };
    for (key, node) in entries {
        let decides = matches!(key.name.as_str(), "type" | "task");
        let known = matches!(&node.data, Data::Text(text) if !marker::is_in(text));
        if !(decides && known) {
            node.data = Data::Null;
        }
    }
}
