//! Fan-outs, which run a task for each element of a list, and fan-ins, which aggregate the results.

use std::collections::BTreeMap;

use model::{Aggregation, FanOut, TaskKind, Tolerance};
use serde_json::json;

use crate::diagnostic::Report;
use crate::library::Library;
use crate::node::{Data, Node, Position};
use crate::queue::KnownQueues;
use crate::read::{self, Fields, Word};
use crate::shape::{Record, Shape, choice, custom, text, whole};
use crate::task::{ChildParts, Settings, TaskParts};

/// The maximum number of children of a fan-out.
const MAX_CHILDREN: u32 = 10_000;
const AGGREGATIONS: [&str; 5] = ["collect", "concat", "sum", "first", "last"];
const BESIDE: &str = "put it beside `for_each`, or remove it";
/// The fields of a task that a fan-out's task does not have, and what to do instead.
const PARENT_ONLY_FIELDS: [(&str, &str); 14] = [
    ("name", "remove it: children are called after their fan-out, such as `split__0`"),
    ("depends_on", BESIDE),
    ("trigger_rule", BESIDE),
    ("when", BESIDE),
    ("cases", "remove it"),
    ("allow_failure", "write `tolerated_failures` beside `for_each`"),
    ("for_each", BESIDE),
    ("max_parallel", BESIDE),
    ("tolerated_failures", BESIDE),
    ("global", "remove it"),
    ("reuse_for_seconds", "remove it"),
    ("on_success", BESIDE),
    ("on_failure", BESIDE),
    ("on_retry", BESIDE),
];
/// Settings of the work itself: a fan-out has none, its children have.
pub(crate) const CHILD_ONLY_SETTINGS: [&str; 11] = [
    "breaker",
    "queue",
    "pool",
    "priority",
    "retry_policy",
    "retry_timeout_seconds",
    "idempotent",
    "dispatch_timeout_seconds",
    "resources",
    "network",
    "requires",
];

/// Whether a fan-out can run a task of the type for each element: not if it belongs to a graph, or waits for a person or a
/// signal.
pub(crate) fn can_be_child(kind: &TaskKind) -> bool {
    match kind {
        TaskKind::Switch
        | TaskKind::FanOut
        | TaskKind::FanIn
        | TaskKind::WaitForSignal
        | TaskKind::Approval => false,
        TaskKind::Noop
        | TaskKind::Echo
        | TaskKind::Fail
        | TaskKind::Flaky
        | TaskKind::Sleep
        | TaskKind::Transform
        | TaskKind::Workflow
        | TaskKind::Sensor
        | TaskKind::Http
        | TaskKind::Bash
        | TaskKind::Python
        | TaskKind::Custom(_) => true,
    }
}

/// A fan-out as written.
#[derive(Clone, Debug)]
pub(crate) struct FanOutParts<'n> {
    pub(crate) for_each: Option<Word<'n>>,
    pub(crate) max_parallel: Option<u32>,
    pub(crate) tolerated_failures: Option<Tolerance>,
    pub(crate) task: Option<Box<TaskParts<'n>>>,
}

impl FanOutParts<'_> {
    pub(crate) fn complete(&self, defaults: &Settings, queues: &KnownQueues<'_>) -> FanOut {
        FanOut {
            for_each: self.for_each.map(|list| list.text.to_owned()).unwrap_or_default(),
            max_parallel: self.max_parallel,
            tolerated_failures: self.tolerated_failures.unwrap_or_default(),
            task: self
                .task
                .as_ref()
                .map(|task| Box::new(task.complete(defaults, queues)))
                .unwrap_or_default(),
        }
    }
}

/// Refuses the settings that a fan-out leaves to its children.
pub(crate) fn refuse_settings(fields: &mut Fields<'_>, report: &mut Report<'_>) {
    for name in CHILD_ONLY_SETTINGS {
        let message = format!("a fan-out has no `{name}` of its own");
        fields.refuse(name, &message, "put it into `task`: it is for each child", report);
    }
}

/// The shape of `for_each`: an expression whose value is the list.
pub(crate) fn for_each<'n>() -> impl Shape<'n, Value = Word<'n>> {
    custom(read_list, || text().schema())
}

/// The shape of `max_parallel`.
pub(crate) fn max_parallel<'n>() -> impl Shape<'n, Value = u32> {
    whole(1..=MAX_CHILDREN)
}

/// The shape of `tolerated_failures`: a number of children, or a percentage of them.
pub(crate) fn tolerated_failures<'n>() -> impl Shape<'n, Value = Tolerance> {
    let percentage = r"^\s*\+?0*(100|[0-9]{1,2})\s*%$";
    let schema = move || json!({"anyOf": [whole(0..=MAX_CHILDREN).schema(), {"type": "string", "pattern": percentage}]});
    custom(read_tolerance, schema)
}

/// The shape of `aggregation`.
pub(crate) fn aggregation<'n>() -> impl Shape<'n, Value = Aggregation> {
    choice(&AGGREGATIONS)
}

fn read_list<'n>(node: &'n Node, report: &mut Report<'_>) -> Option<Word<'n>> {
    let hint = match &node.data {
        Data::Text(_) => return read::text(node, report),
        Data::List(_) => format!("write it as a text: '{}'", node.to_json()),
        _ => "such as `inputs.files`, `outputs['find'].files` or `range(5)`".to_owned(),
    };
    let message = format!("expected an expression that gives a list, found {}", node.describe());
    report.add(&node.at, message, Some(hint));
    None
}

fn read_tolerance(node: &Node, report: &mut Report<'_>) -> Option<Tolerance> {
    let percent = match &node.data {
        Data::Text(text) => text.strip_suffix('%').map(str::trim),
        _ => None,
    };
    match percent {
        None => {
            read::whole_or(node, 0..=MAX_CHILDREN, "a percentage such as `10%`", report).map(Tolerance::Count)
        }
        Some(digits) => {
            let percent = digits.parse().ok().filter(|percent| *percent <= 100).map(Tolerance::Percent);
            if percent.is_none() {
                let message =
                    format!("expected a whole percentage from 0% to 100%, found {}", node.describe());
                report.add(&node.at, message, None);
            }
            percent
        }
    }
}

/// Reads the task of each child: a task of its own, or the name of a reusable one.
pub(crate) fn read_child<'n>(
    node: &'n Node,
    library: &Library<'n>,
    report: &mut Report<'_>,
) -> Option<TaskParts<'n>> {
    let (mut child, at) = match &node.data {
        Data::Text(_) => {
            let reusable = library.find(read::text(node, report)?, report)?;
            if !report.take(reusable.weight, |_| node.at.clone()) {
                return None;
            }
            (TaskParts::at(&node.at).over(reusable), &node.at)
        }
        _ => {
            let mut fields = Fields::of(node, ChildParts::WHAT, report)?;
            let at = fields.peek("type").or(fields.peek("task")).map_or(&node.at, |node| &node.at);
            for (name, hint) in PARENT_ONLY_FIELDS {
                fields.refuse(name, &format!("a fan-out's task has no `{name}`"), hint, report);
            }
            (TaskParts::read_child(fields, library, report), at)
        }
    };
    check_child(&child, at, report);
    child.name = None;
    Some(child)
}

fn check_child(child: &TaskParts<'_>, at: &Position, report: &mut Report<'_>) {
    if let Some(kind) = child.kind.as_ref().filter(|kind| !can_be_child(kind)) {
        let hint =
            "make each child a run: use `type: workflow` with a workflow that contains this task".to_owned();
        report.add(at, format!("a fan-out's task cannot be of type `{kind}`"), Some(hint));
    }
    if let Some(global) = &child.global {
        let message = format!("`{}` is global: it runs once, not once per element", global.name);
        let hint = "let the fan-out depend on it, or refer to a task that is not global".to_owned();
        report.add(at, message, Some(hint));
    }
}

/// Reports each fan-in that waits for no fan-out.
pub(crate) fn check_in(tasks: &[TaskParts<'_>], report: &mut Report<'_>) {
    let named: BTreeMap<&str, &TaskParts<'_>> =
        tasks.iter().rev().filter_map(|task| Some((task.name?.text, task))).collect();
    let fan_out = tasks.iter().find(|task| task.fan_out.is_some()).and_then(|task| task.name);
    // An unknown task, or one of an unknown type, was reported and may well be a fan-out.
    let may_be_fan_out = |word: &Word<'_>| {
        named.get(word.text).is_none_or(|task| task.kind.is_none() || task.fan_out.is_some())
    };
    for task in tasks.iter().filter(|task| task.fan_in.is_some()) {
        if task.depends_on.iter().any(may_be_fan_out) {
            continue;
        }
        let hint = match fan_out {
            Some(name) => format!("add `{}` to its `depends_on`", name.text),
            None => "add a task of type `fan_out` to its `depends_on`".to_owned(),
        };
        let message = "a fan-in aggregates the results of a fan-out, but this one depends on none";
        report.add(task.at, message, Some(hint));
    }
}
