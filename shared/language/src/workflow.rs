//! A workflow file: its own fields, its tasks, and the checks that need all of them.

use std::collections::BTreeMap;

use model::Workflow;

use crate::dependencies;
use crate::diagnostic::Report;
use crate::inputs;
use crate::library::Library;
use crate::names;
use crate::node::{Data, Node};
use crate::read::{self, Fields, Word};
use crate::schema::{self, Extent};
use crate::switch;
use crate::task::{Settings, TaskParts};
use crate::template;

/// No workflow may have more tasks.
const MAX_TASKS: usize = 10_000;

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
    let defaults = fields.get("defaults").map(|node| read_defaults(node, report)).unwrap_or_default();
    let tasks = fields.require("tasks").map(|node| read_tasks(node, library, report)).unwrap_or_default();
    fields.finish(report);

    let workflow = Workflow {
        name: name?.text.to_owned(),
        description: description.map(|word| word.text.to_owned()),
        tags: tags.iter().map(|tag| tag.text.to_owned()).collect(),
        tasks: tasks.iter().map(|task| task.complete(&defaults)).collect(),
        inputs,
        ..Workflow::default()
    };
    description
        .iter()
        .for_each(|word| template::check_word(*word, &template::Names::of_run(&workflow.inputs), report));
    check_tasks(&tasks, &workflow, report);
    Some((name?, workflow))
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
    let Some(reference) = fields.get("task") else { return Some(TaskParts::read_inline(fields, report)) };
    let mut task = TaskParts::read_reference(fields, report);
    let name = read::text(reference, report)?;
    match library.find(name, report) {
        Some(reusable) => task = task.over(reusable),
        // Kept under the name it would have, so that others may depend on it without a second complaint.
        None => task.name = task.name.or(Some(name)),
    }
    Some(task)
}

fn check_tasks(tasks: &[TaskParts<'_>], workflow: &Workflow, report: &mut Report<'_>) {
    check_duplicates(tasks, report);
    let upstream = dependencies::check(tasks, workflow, report);
    for (index, task) in tasks.iter().enumerate() {
        report.user = Some(task.at.clone());
        check_config(task, report);
        let names = template::Names::of_task(&workflow.inputs, &upstream, index);
        task.description.iter().for_each(|word| template::check_word(*word, &names, report));
        task.when.iter().for_each(|word| template::check_expression(*word, Some(&names), report));
        switch::check(&task.cases, &names, report);
        // Which settings are templates and which are programs is known only with the type.
        let (Some(config), Some(kind)) = (&task.config, task.kind) else { continue };
        template::check_config(config, kind, Some(&names), report);
    }
    report.user = None;
}

fn check_duplicates<'n>(tasks: &[TaskParts<'n>], report: &mut Report<'_>) {
    let mut taken = BTreeMap::new();
    for name in tasks.iter().filter_map(|task| task.name) {
        if let Some(line) = taken.insert(name.text, name.at.line) {
            let hint = Some("give one of the two another `name`".to_owned());
            report.add(name.at, format!("there is a task `{}` already, in line {line}", name.text), hint);
        }
    }
}

fn check_config(task: &TaskParts<'_>, report: &mut Report<'_>) {
    let Some(kind) = task.kind else { return };
    let nothing = || Node { data: Data::Map(Vec::new()), at: task.at.clone() };
    let config = task.config.clone().unwrap_or_else(nothing);
    report.extend(schema::check(&kind.schema, &config, kind.name, Extent::Whole));
}
