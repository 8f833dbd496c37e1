//! A workflow file: its own fields, its tasks, and the checks that need all of them.

use std::collections::BTreeMap;

use model::{InputSpec, TaskKind, Workflow};

use crate::callbacks::{self, CallbackParts};
use crate::concurrency;
use crate::dependencies;
use crate::diagnostic::Report;
use crate::fan;
use crate::inputs;
use crate::library::Library;
use crate::names;
use crate::node::{Data, Node};
use crate::read::{self, Fields, Word};
use crate::schedule;
use crate::schema::{self, Extent};
use crate::switch;
use crate::task::{self, Settings, TaskParts};
use crate::template::{self, Names};
use crate::triggers;
use crate::types::TaskType;

/// No workflow may have more tasks.
pub(crate) const MAX_TASKS: usize = 10_000;
/// No workflow may have more of its tasks under way.
pub(crate) const MAX_ACTIVE_TASKS: u32 = 10_000;
/// Thirty days: no run may take longer.
pub(crate) const MAX_SECONDS: u32 = 2_592_000;

/// Reads a workflow and its name. It is sound if nothing was reported meanwhile.
pub(crate) fn read<'n>(
    root: &'n Node,
    library: &Library<'n>,
    report: &mut Report<'_>,
) -> Option<(Word<'n>, Workflow)> {
    let mut fields = Fields::of(root, "a workflow", report)?;
    let name = fields.require("name").and_then(|node| read::text(node, report));
    if let Some(name) = name {
        names::check(name, &names::PLAIN, report);
    }
    let description = fields.get("description").and_then(|node| read::text(node, report));
    let tags = fields.get("tags").map(|node| read::texts(node, report)).unwrap_or_default();
    let inputs = fields.get("inputs").map(|node| inputs::read(node, report)).unwrap_or_default();
    let runs = read_runs(&mut fields, name.map(|word| word.text), &inputs, report);
    let defaults = fields.get("defaults").map(|node| read_defaults(node, report)).unwrap_or_default();
    let tasks = fields.require("tasks").map(|node| read_tasks(node, library, report)).unwrap_or_default();
    fields.finish(report);

    let workflow = Workflow {
        name: name?.text.to_owned(),
        description: description.map(|word| word.text.to_owned()),
        tags: tags.iter().map(|tag| tag.text.to_owned()).collect(),
        tasks: tasks.iter().map(|task| task.complete(&defaults)).collect(),
        inputs,
        ..runs
    };
    description.iter().for_each(|word| template::check_word(*word, &Names::of_run(&workflow.inputs), report));
    check_tasks(&tasks, &workflow, report);
    Some((name?, workflow))
}

/// What a workflow says of its runs as a whole: when they begin, how many there are, whom to tell.
fn read_runs(
    fields: &mut Fields<'_>,
    name: Option<&str>,
    inputs: &[InputSpec],
    report: &mut Report<'_>,
) -> Workflow {
    let schedules = schedule::read(fields, inputs, report);
    let triggers = fields.get("triggers").map(|node| triggers::read(node, name, inputs, report));
    let concurrency = concurrency::read(fields, inputs, &schedules, report);
    let max_active_tasks =
        fields.get("max_active_tasks").and_then(|node| read::whole(node, 1..=MAX_ACTIVE_TASKS, report));
    let mut seconds = |name| fields.get(name).map(|node| read::whole(node, 1..=MAX_SECONDS, report));
    let (timeout_seconds, deadline_seconds) = (seconds("timeout_seconds"), seconds("deadline_seconds"));
    let callbacks = callbacks::read_of_workflow(fields, deadline_seconds.is_some(), report);
    callbacks.iter().for_each(|callback| callback.check(Some(&Names::of_run(inputs)), report));
    Workflow {
        schedules,
        triggers: triggers.unwrap_or_default(),
        concurrency,
        max_active_tasks,
        timeout_seconds: timeout_seconds.flatten(),
        deadline_seconds: deadline_seconds.flatten(),
        callbacks: callbacks.iter().map(CallbackParts::complete).collect(),
        ..Workflow::default()
    }
}

fn read_defaults(node: &Node, report: &mut Report<'_>) -> Settings {
    let Some(mut fields) = Fields::of(node, "`defaults`", report) else { return Settings::default() };
    let settings = Settings::read(&mut fields, report);
    fields.finish(report);
    settings
}

fn read_tasks<'n>(node: &'n Node, library: &Library<'n>, report: &mut Report<'_>) -> Vec<TaskParts<'n>> {
    let Some(entries) = read::list(node, report) else { return Vec::new() };
    if entries.is_empty() {
        report.add(&node.at, "a workflow needs at least one task", None);
    }
    if let Some(first_too_many) = entries.get(MAX_TASKS) {
        let message = format!("there are {} tasks, more than the {MAX_TASKS} allowed", entries.len());
        report.add(&first_too_many.at, message, Some("split the workflow".to_owned()));
    }
    entries.iter().take(MAX_TASKS).filter_map(|entry| read_task(entry, library, report)).collect()
}

fn read_task<'n>(entry: &'n Node, library: &Library<'n>, report: &mut Report<'_>) -> Option<TaskParts<'n>> {
    let mut fields = Fields::of(entry, "a task", report)?;
    let is_fan_out = matches!(fields.peek("type"), Some(Node { data: Data::Text(kind), .. }) if kind == TaskKind::FanOut.name());
    let reference = if is_fan_out { None } else { fields.get("task") };
    let Some(reference) = reference.filter(|node| !is_child(node, report)) else {
        return Some(TaskParts::read_inline(fields, library, report));
    };
    let mut task = TaskParts::read_reference(fields, report);
    let name = read::text(reference, report)?;
    match library.find(name, report) {
        Some(reusable) => task = task.over(reusable),
        // Kept under the name it would have, so that others may depend on it without a second complaint.
        None => task.name = task.name.or(Some(name)),
    }
    Some(task)
}

/// Whether a task stands where a reusable one should be named: only a fan-out has such a thing.
fn is_child(node: &Node, report: &mut Report<'_>) -> bool {
    let is_map = matches!(node.data, Data::Map(_));
    if is_map {
        let hint = "to do it for each element of a list, add `type: fan_out` and `for_each`".to_owned();
        report.add(&node.at, "`task` names a reusable task, but this is a mapping", Some(hint));
    }
    is_map
}

fn check_tasks(tasks: &[TaskParts<'_>], workflow: &Workflow, report: &mut Report<'_>) {
    check_duplicates(tasks, report);
    let upstream = dependencies::check(tasks, workflow, report);
    fan::check_in(tasks, report);
    for (index, task) in tasks.iter().enumerate() {
        let names = Names::of_task(&workflow.inputs, &upstream, index);
        check_task(task, &names, &workflow.inputs, report);
        task.when.iter().for_each(|word| template::check_expression(*word, Some(&names), report));
        switch::check(&task.cases, &names, report);
        let Some(fan_out) = &task.fan_out else { continue };
        fan_out.for_each.iter().for_each(|word| template::check_expression(*word, Some(&names), report));
        let child = fan_out.task.iter();
        child.for_each(|child| check_task(child, &names.with_item(), &workflow.inputs, report));
    }
    report.user = None;
}

/// Reports what is wrong with the settings of a task, or of a fan-out's.
fn check_task(task: &TaskParts<'_>, names: &Names<'_>, inputs: &[InputSpec], report: &mut Report<'_>) {
    report.user = Some(task.at.clone());
    check_config(task, report);
    task.description.iter().for_each(|word| template::check_word(*word, names, report));
    task.callbacks.iter().for_each(|callback| callback.check(Some(&Names::of_run(inputs)), report));
    // Which settings are templates and which are programs is known only with the type.
    if let (Some(config), Some(kind)) = (&task.config, task.kind) {
        template::check_config(config, TaskType::of(kind), Some(names), report);
    }
}

fn check_duplicates<'n>(tasks: &[TaskParts<'n>], report: &mut Report<'_>) {
    let mut taken = BTreeMap::new();
    for name in tasks.iter().filter_map(|task| task.name) {
        if let Some(line) = taken.insert(name.text, name.at.line) {
            let hint = Some("rename one of the two".to_owned());
            report.add(name.at, format!("the task `{}` is already defined in line {line}", name.text), hint);
        }
    }
}

fn check_config(task: &TaskParts<'_>, report: &mut Report<'_>) {
    let Some(kind) = task.kind else { return };
    let nothing = || Node { data: Data::Map(Vec::new()), at: task.at.clone() };
    let config = task.config.clone().unwrap_or_else(nothing);
    let mut findings = schema::check(&TaskType::of(kind).schema, &config, kind.name(), Extent::Whole);
    for field in task::own_fields(kind) {
        let misplaced =
            findings.iter_mut().filter(|finding| finding.at.path.ends_with(&format!("config.{field}")));
        misplaced
            .for_each(|finding| finding.hint = Some("put it beside `type`, not into `config`".to_owned()));
    }
    report.extend(findings);
    if kind == TaskKind::Sensor {
        triggers::check_sensor(&config, report);
    }
}
