//! Dependencies: references that exist, no cycles, and what is upstream of a task.

use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use engine::{Cycle, Graph};
use model::{TaskIndex, TriggerRule, Workflow};
use serde_json::{Value, json};

use crate::diagnostic::Report;
use crate::node::{Data, Node};
use crate::read::Word;
use crate::shape::{Given, Record, Shape, choice, custom, defined, given, list, record, text};
use crate::task::TaskParts;

const TRIGGER_RULES: [&str; 9] = [
    "all_success",
    "all_failed",
    "all_done",
    "one_success",
    "one_failed",
    "none_failed",
    "none_failed_min_one_success",
    "none_skipped",
    "always",
];

record! {
    /// `depends_on` as a mapping.
    struct DependsOn<'n> as "`depends_on`" {
        /// All of these, by the `trigger_rule`.
        all_of: Vec<Word<'n>> = task_names(),
        /// At least one of these succeeded, and the others have ended.
        any_of: Given<'n, Vec<Word<'n>>> = given(custom(read_any, any_schema)),
    }
    where json!({"maxProperties": 1})
}

/// The tasks that a task waits for, and the rule that `any_of` implies.
pub(crate) type Dependencies<'n> = (Vec<Word<'n>>, Option<TriggerRule>);

/// The shape of `depends_on`: a list, or `{any_of: […]}`.
pub(crate) fn depends_on<'n>() -> impl Shape<'n, Value = Dependencies<'n>> {
    defined("depends_on", custom(|node, report| Some(read_list(node, report)), schema))
}

/// The JSON Schema of `depends_on`.
pub(crate) fn schema() -> Value {
    json!({"anyOf": [task_names().schema(), DependsOn::schema()]})
}

/// The names of tasks, none of them twice.
pub(crate) fn task_names<'n>() -> impl Shape<'n, Value = Vec<Word<'n>>> {
    let names = || {
        let mut names = list(text()).schema();
        names["uniqueItems"] = true.into();
        names
    };
    custom(|node, report| list(text()).read(node, report), names)
}

fn read_any<'n>(node: &'n Node, report: &mut Report<'_>) -> Option<Vec<Word<'n>>> {
    if matches!(&node.data, Data::List(items) if items.is_empty()) {
        report.add(&node.at, "`any_of` needs at least one task", None);
    }
    task_names().read(node, report)
}

fn any_schema() -> Value {
    let mut any = task_names().schema();
    any["minItems"] = 1.into();
    any
}

/// The shape of `trigger_rule`.
pub(crate) fn trigger_rule<'n>() -> impl Shape<'n, Value = Given<'n, TriggerRule>> {
    let read = |node: &'n Node, report: &mut Report<'_>| {
        if matches!(&node.data, Data::Text(word) if word == "any_of") {
            let hint = Some("write `depends_on: {any_of: […]}`".to_owned());
            report.add(&node.at, "`any_of` is not a trigger rule", hint);
            return None;
        }
        choice(&TRIGGER_RULES).read(node, report)
    };
    given(custom(read, || choice::<TriggerRule>(&TRIGGER_RULES).schema()))
}

/// The rule of a task that may have both `any_of` and a `trigger_rule`, which exclude each other.
pub(crate) fn rule(
    any_of: Option<TriggerRule>,
    rule: Option<Given<'_, TriggerRule>>,
    report: &mut Report<'_>,
) -> Option<TriggerRule> {
    if let (Some(_), Some(rule)) = (any_of, rule) {
        let message =
            "`any_of` already decides when the task starts, so it cannot be combined with a trigger rule";
        let hint = Some("remove `trigger_rule`, or write `depends_on` as a list".to_owned());
        report.add(rule.at, message, hint);
    }
    any_of.or(rule.and_then(|rule| rule.value))
}

fn read_list<'n>(node: &'n Node, report: &mut Report<'_>) -> Dependencies<'n> {
    if !matches!(node.data, Data::Map(_)) {
        return (task_names().read(node, report).unwrap_or_default(), None);
    }
    let Some(parts) = DependsOn::read(node, report) else { return Default::default() };
    match (parts.all_of, parts.any_of) {
        (Some(_), Some(any)) => {
            let hint = Some("put a `noop` task in between that waits for one of the two".to_owned());
            let message = "a task waits either for all tasks in its list or for any of them, not both";
            report.add(any.at, message, hint);
            Default::default()
        }
        (all, None) => (all.unwrap_or_default(), None),
        (None, Some(any)) => (any.value.unwrap_or_default(), Some(TriggerRule::AnyOf)),
    }
}

/// The maximum number of cycles reported.
const MAX_CYCLES: usize = 10;
/// The maximum length of a chain of tasks.
const MAX_DEPTH: u32 = 1_000;

/// Which tasks there are and which of them a task can see the outputs of.
pub(crate) struct Upstream {
    graph: Graph,
    positions: BTreeMap<String, usize>,
    /// Whether tasks wait for each other in cycles: then what is upstream of what is undefined.
    circular: bool,
    /// What is before and after the task that was asked for last, since a task's templates are checked together.
    last: RefCell<Option<Around>>,
}

/// The tasks before and after one.
struct Around {
    task: usize,
    before: BTreeSet<TaskIndex>,
    after: BTreeSet<TaskIndex>,
}

impl Upstream {
    /// Whether there is a task of that name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.positions.contains_key(name)
    }

    /// Whether `task` waits for the one called `name`, directly or through others.
    pub(crate) fn reaches(&self, task: usize, name: &str) -> bool {
        self.index(name).is_some_and(|wanted| self.circular || self.around(task).before.contains(&wanted))
    }

    /// Whether the one called `name` waits for `task`, directly or through others.
    pub(crate) fn is_after(&self, task: usize, name: &str) -> bool {
        self.index(name).is_some_and(|other| self.around(task).after.contains(&other))
    }

    fn index(&self, name: &str) -> Option<TaskIndex> {
        self.positions.get(name).map(|position| TaskIndex(*position as u32))
    }

    /// The tasks before and after one, directly or through others.
    fn around(&self, task: usize) -> Ref<'_, Around> {
        if self.last.borrow().as_ref().is_none_or(|last| last.task != task) {
            let index = TaskIndex(task as u32);
            let before = self.graph.ancestors(index).into_iter().collect();
            let after = self.graph.descendants([index]);
            *self.last.borrow_mut() = Some(Around { task, before, after });
        }
        Ref::map(self.last.borrow(), |last| last.as_ref().expect("it was just set"))
    }

    /// The names of all tasks that `task` waits for.
    pub(crate) fn of(&self, task: usize) -> Vec<&str> {
        let ancestors = self.graph.ancestors(TaskIndex(task as u32));
        ancestors.into_iter().map(|index| self.graph.spec(index).name.as_str()).collect()
    }

    /// The name of a task.
    pub(crate) fn name(&self, task: usize) -> &str {
        &self.graph.spec(TaskIndex(task as u32)).name
    }
}

/// Reports what is wrong with `depends_on` and `next`. Returns what is upstream of what.
pub(crate) fn check(tasks: &[TaskParts<'_>], workflow: &Workflow, report: &mut Report<'_>) -> Upstream {
    let names = workflow.tasks.iter().zip(0..);
    let positions: BTreeMap<String, usize> = names.map(|(task, index)| (task.name.clone(), index)).collect();
    tasks.iter().for_each(|task| check_references(task, &positions, report));

    let mut sketch = workflow.clone();
    for task in &mut sketch.tasks {
        let own = task.name.clone();
        task.depends_on.retain(|name| *name != own);
        task.cases.iter_mut().for_each(|case| case.next.retain(|name| *name != own));
    }
    let mut cycles = 0;
    loop {
        match Graph::compile(sketch.clone()) {
            Ok(graph) => {
                check_depth(tasks, &graph, report);
                return Upstream { graph, positions, circular: cycles > 0, last: RefCell::default() };
            }
            Err(cycle) => {
                if cycles < MAX_CYCLES {
                    report_cycle(tasks, &cycle, report);
                }
                cycles += 1;
                cut(&mut sketch, &cycle, cycles >= MAX_CYCLES);
            }
        }
    }
}

/// Reports the first task that is too far down a chain.
fn check_depth(tasks: &[TaskParts<'_>], graph: &Graph, report: &mut Report<'_>) {
    let mut depths = vec![1; tasks.len()];
    let mut waits: Vec<usize> = graph.indices().map(|task| graph.parents(task).len()).collect();
    let mut open: Vec<TaskIndex> = graph.indices().filter(|task| waits[task.at()] == 0).collect();
    while let Some(task) = open.pop() {
        for next in graph.dependants(task) {
            depths[next.at()] = depths[next.at()].max(depths[task.at()] + 1);
            waits[next.at()] -= 1;
            open.extend((waits[next.at()] == 0).then_some(*next));
        }
    }
    let too_deep = tasks.iter().zip(&depths).find(|(_, depth)| **depth == MAX_DEPTH + 1);
    if let (Some((task, _)), Some(deepest)) = (too_deep, depths.iter().max()) {
        let message =
            format!("{deepest} tasks wait for one another in a chain, more than the {MAX_DEPTH} allowed");
        let hint = "split the workflow, or let tasks depend on earlier ones";
        report.add(task.at, message, Some(hint.to_owned()));
    }
}

fn check_references(task: &TaskParts<'_>, positions: &BTreeMap<String, usize>, report: &mut Report<'_>) {
    let own = task.name.map_or("", |name| name.text);
    check_list(own, &task.depends_on, "depends_on", positions, report);
    task.cases.iter().for_each(|case| check_list(own, &case.next, "next", positions, report));
}

fn check_list(
    own: &str,
    words: &[Word<'_>],
    field: &str,
    positions: &BTreeMap<String, usize>,
    report: &mut Report<'_>,
) {
    let mut taken = BTreeSet::new();
    for word in words {
        if word.text == own {
            let hint = Some(format!("remove it from its own `{field}`"));
            report.add(word.at, format!("the task `{own}` cannot wait for itself"), hint);
        } else if !positions.contains_key(word.text) {
            let others = positions.keys().map(String::as_str).filter(|name| *name != own && !name.is_empty());
            let hint = report.suggest(word.text, others);
            report.add(word.at, format!("there is no task `{}` in this workflow", word.text), hint);
        } else if !taken.insert(word.text) {
            report.add(
                word.at,
                format!("`{}` appears twice in this list", word.text),
                Some("remove one".to_owned()),
            );
        }
    }
}

/// Reports a cycle at the `depends_on` of its first task, or at the `next` of its last.
fn report_cycle(tasks: &[TaskParts<'_>], cycle: &Cycle, report: &mut Report<'_>) {
    let (Some(first), Some(last)) = (cycle.chain.first(), cycle.chain.iter().rev().nth(1)) else { return };
    let named = |wanted: &str| tasks.iter().find(|task| task.name.is_some_and(|name| name.text == wanted));
    let waits = named(first).and_then(|task| task.depends_on.iter().find(|word| word.text == last));
    let mut nexts = named(last).into_iter().flat_map(|task| &task.cases).flat_map(|case| &case.next);
    if let Some(word) = waits.or_else(|| nexts.find(|word| word.text == first)) {
        let switches = cycle.chain.iter().any(|name| named(name).is_some_and(|task| !task.cases.is_empty()));
        let lists = if switches { "a `depends_on` or a `next`" } else { "a `depends_on`" };
        report.add(word.at, cycle.to_string(), Some(format!("remove one of them from {lists}")));
    }
}

/// Removes an edge of a cycle, so that the next one is found; or all edges.
fn cut(sketch: &mut Workflow, cycle: &Cycle, all: bool) {
    let (first, last) = (cycle.chain.first(), cycle.chain.iter().rev().nth(1));
    for task in &mut sketch.tasks {
        let (is_first, is_last) = (Some(&task.name) == first, Some(&task.name) == last);
        task.depends_on.retain(|name| !(all || is_first && Some(name) == last));
        let nexts = task.cases.iter_mut().map(|case| &mut case.next);
        nexts.for_each(|next| next.retain(|name| !(all || is_last && Some(name) == first)));
    }
}
