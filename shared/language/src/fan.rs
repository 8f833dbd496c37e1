//! Fan-outs, which do a task for each element of a list, and fan-ins, which gather what came of it.

use model::{FanIn, FanOut, TaskKind, Tolerance};

use crate::diagnostic::Report;
use crate::library::Library;
use crate::node::{Data, Node, Place};
use crate::read::{self, Fields, Word};
use crate::task::{Settings, TaskParts};

/// What a fan-in can make of what it gathers.
pub(crate) const AGGREGATIONS: [&str; 5] = ["collect", "concat", "sum", "first", "last"];
/// No fan-out has more children.
pub(crate) const MAX_CHILDREN: u32 = 10_000;
/// The types that cannot be done for each element: they belong to a graph, or wait for a person or a signal.
pub(crate) const NO_CHILDREN: [TaskKind; 5] =
    [TaskKind::Switch, TaskKind::FanOut, TaskKind::FanIn, TaskKind::WaitForSignal, TaskKind::Approval];
const BESIDE: &str = "put it beside `for_each`, or remove it";
/// What a task has and a fan-out's has not, and what to do instead.
const NOT_A_CHILDS: [(&str, &str); 14] = [
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
/// Settings that say how a worker is used: a fan-out has none, its children have.
pub(crate) const CHILDRENS: [&str; 5] =
    ["queue", "pool", "priority", "retry_policy", "retry_timeout_seconds"];

/// A fan-out as written.
#[derive(Clone, Debug)]
pub(crate) struct FanOutParts<'n> {
    pub(crate) for_each: Option<Word<'n>>,
    max_parallel: Option<u32>,
    tolerated_failures: Option<Tolerance>,
    pub(crate) task: Option<Box<TaskParts<'n>>>,
}

impl<'n> FanOutParts<'n> {
    pub(crate) fn read(fields: &mut Fields<'n>, library: &Library<'n>, report: &mut Report<'_>) -> Self {
        for name in CHILDRENS {
            let message = format!("a fan-out has no `{name}` of its own");
            fields.refuse(name, &message, "put it into `task`: it is for each child", report);
        }
        Self {
            for_each: fields.require("for_each").and_then(|node| read_list(node, report)),
            max_parallel: fields
                .get("max_parallel")
                .and_then(|node| read::whole(node, 1..=MAX_CHILDREN, report)),
            tolerated_failures: fields
                .get("tolerated_failures")
                .and_then(|node| read_tolerance(node, report)),
            task: fields.require("task").and_then(|node| read_child(node, library, report)).map(Box::new),
        }
    }

    pub(crate) fn complete(&self, defaults: &Settings) -> FanOut {
        FanOut {
            for_each: self.for_each.map(|list| list.text.to_owned()).unwrap_or_default(),
            max_parallel: self.max_parallel,
            tolerated_failures: self.tolerated_failures.unwrap_or_default(),
            task: self.task.as_ref().map(|task| Box::new(task.complete(defaults))).unwrap_or_default(),
        }
    }
}

/// The expression whose value is the list.
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

/// A number of children, or a percentage of them.
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

/// The task that each child is: written here, or a reusable one by its name.
fn read_child<'n>(node: &'n Node, library: &Library<'n>, report: &mut Report<'_>) -> Option<TaskParts<'n>> {
    let (mut child, at) = match &node.data {
        Data::Text(_) => {
            let reusable = library.find(read::text(node, report)?, report)?;
            (TaskParts::at(&node.at).over(reusable), &node.at)
        }
        _ => {
            let mut fields = Fields::of(node, "a fan-out's task", report)?;
            let at = fields.peek("type").or(fields.peek("task")).map_or(&node.at, |node| &node.at);
            let child = TaskParts::read_child(&mut fields, library, report);
            for (name, hint) in NOT_A_CHILDS {
                fields.refuse(name, &format!("a fan-out's task has no `{name}`"), hint, report);
            }
            fields.finish(report);
            (child, at)
        }
    };
    check_child(&child, at, report);
    child.name = None;
    Some(child)
}

fn check_child(child: &TaskParts<'_>, at: &Place, report: &mut Report<'_>) {
    if let Some(kind) = child.kind.filter(|kind| NO_CHILDREN.contains(kind)) {
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

/// Reads what a fan-in makes of what it gathers.
pub(crate) fn read_in(fields: &mut Fields<'_>, report: &mut Report<'_>) -> FanIn {
    let aggregation = fields.get("aggregation").and_then(|node| read::choice(node, &AGGREGATIONS, report));
    let field = fields.get("field").and_then(|node| read::text(node, report));
    FanIn { aggregation: aggregation.unwrap_or_default(), field: field.map(|field| field.text.to_owned()) }
}

/// Reports each fan-in that waits for no fan-out.
pub(crate) fn check_in(tasks: &[TaskParts<'_>], report: &mut Report<'_>) {
    let named = |name: &str| tasks.iter().find(|task| task.name.is_some_and(|word| word.text == name));
    for task in tasks.iter().filter(|task| task.fan_in.is_some()) {
        let parents: Vec<_> = task.depends_on.iter().map(|word| named(word.text)).collect();
        // One that is not there, or of no known type, was reported and may well be meant.
        if parents
            .iter()
            .any(|parent| parent.is_none_or(|task| task.kind.is_none() || task.fan_out.is_some()))
        {
            continue;
        }
        let other = tasks.iter().find(|task| task.fan_out.is_some()).and_then(|task| task.name);
        let hint = match other {
            Some(name) => format!("add `{}` to its `depends_on`", name.text),
            None => "add a task of type `fan_out` to its `depends_on`".to_owned(),
        };
        report.add(
            task.at,
            "a fan-in aggregates the results of a fan-out, but this one depends on none",
            Some(hint),
        );
    }
}
