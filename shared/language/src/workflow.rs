//! A workflow file: its own fields, its tasks, and the checks that need all of them.

use std::collections::BTreeMap;

use model::{InputSpec, Occasion, TaskKind, Workflow};
use serde_json::{Value, json};

use crate::callbacks::{CallbackParts, Callbacks, callbacks};
use crate::concurrency::{self, ConcurrencyParts, MAX_RUNS};
use crate::custom_type;
use crate::dependencies;
use crate::diagnostic::Report;
use crate::fan;
use crate::inputs::{self, InputNames};
use crate::library::Library;
use crate::names;
use crate::node::{Data, Node};
use crate::queue::KnownQueues;
use crate::read::{self, Word};
use crate::schedule;
use crate::schema::{self, Extent};
use crate::shape::{self, Given, Record, custom, given, list, node, record, refer, required, text, whole};
use crate::switch;
use crate::task::{self, Settings, TaskParts};
use crate::template::{self, Names};
use crate::triggers;
use crate::types::TaskType;

/// The maximum number of tasks of a workflow.
pub(crate) const MAX_TASKS: usize = 10_000;
const MAX_ACTIVE_TASKS: u32 = 10_000;
/// The maximum timeout and deadline: thirty days.
const MAX_SECONDS: u32 = 2_592_000;

record! {
    /// A workflow as written, beside what it extends.
    pub(crate) struct WorkflowParts<'n> as "a workflow" {
        /// The workflow's name, the same as the file's: lower-case letters, digits and `-`.
        name: Word<'n> = required(shape::name(&names::PLAIN)),
        /// For people. Templates may name `inputs` and `run`.
        description: Word<'n> = text(),
        /// Words by which people find the workflow.
        tags: Vec<Word<'n>> = list(text()),
        /// The inputs of a run, by name; checked when it starts.
        inputs: Vec<InputSpec> = custom(|node, report| Some(inputs::read(node, report)), inputs::schema),
        /// When runs start. Every input needs a default or a value here.
        schedule: &'n Node = node(|| refer("schedule")),
        /// Several schedules, each with a name.
        schedules: &'n Node = node(|| refer("schedule")),
        /// Other sources that start runs: events, webhooks, other workflows, sensors.
        triggers: &'n Node = node(triggers::schema),
        /// Limits the number of active runs.
        concurrency: &'n Node = node(ConcurrencyParts::schema),
        /// The maximum number of active runs; further ones wait.
        max_active_runs: Given<'n, u32> = given(whole(1..=MAX_RUNS)),
        /// The maximum number of active tasks, across all runs.
        max_active_tasks: u32 = whole(1..=MAX_ACTIVE_TASKS),
        /// How long a run may take before it fails.
        timeout_seconds: u32 = whole(1..=MAX_SECONDS),
        /// How long a run should take; after that, `on_missed_deadline` is called.
        deadline_seconds: Given<'n, u32> = given(whole(1..=MAX_SECONDS)),
        /// Defaults for all tasks.
        defaults: Settings = shape::record(),
        /// The tasks, at least one.
        tasks: &'n Node = required(node(tasks_schema)),
        /// Callbacks for a run that takes longer than `deadline_seconds`.
        on_missed_deadline: Given<'n, Vec<CallbackParts<'n>>> =
            given(callbacks(Occasion::MissedDeadline)),
        ..callbacks: Callbacks<'n>,
    }
}

fn tasks_schema() -> Value {
    json!({"type": "array", "items": refer("task"), "minItems": 1, "maxItems": MAX_TASKS})
}

/// Reads a workflow and its name. It is valid if nothing was reported meanwhile.
pub(crate) fn read<'n>(
    root: &'n Node,
    library: &Library<'n>,
    report: &mut Report<'_>,
) -> Option<(Word<'n>, Workflow)> {
    let parts = WorkflowParts::read(root, report)?;
    let tasks = parts.tasks.map(|node| read_tasks(node, library, report)).unwrap_or_default();
    let workflow = complete(&parts, &tasks, library.queues(), report);
    let inputs = InputNames::of(&workflow.inputs);
    let names = Names::of_run(&inputs);
    parts.description.iter().for_each(|word| template::check_word(*word, &names, report));
    parts.all_callbacks().for_each(|callback| callback.check(Some(&names), report));
    let defaults = parts.defaults.clone().unwrap_or_default();
    check_tasks(&tasks, &workflow, (&inputs, &defaults, library.queues()), report);
    Some((parts.name?, workflow))
}

impl<'n> WorkflowParts<'n> {
    fn all_callbacks(&self) -> impl Iterator<Item = &CallbackParts<'n>> {
        let missed = self.on_missed_deadline.iter().flat_map(|given| &given.value).flatten();
        self.callbacks.iter().chain(missed)
    }
}

/// The finished workflow. Where something is missing, that was reported, and the workflow is not used.
fn complete(
    parts: &WorkflowParts<'_>,
    tasks: &[TaskParts<'_>],
    queues: &KnownQueues<'_>,
    report: &mut Report<'_>,
) -> Workflow {
    let name = parts.name.map(|word| word.text);
    let inputs = parts.inputs.clone().unwrap_or_default();
    let schedules = schedule::read(parts.schedule, parts.schedules, &inputs, report);
    let triggers = parts.triggers.map(|node| triggers::read(node, name, &inputs, report));
    let limit = concurrency::read(parts.concurrency, parts.max_active_runs, &inputs, &schedules, report);
    if let (Some(callbacks), None) = (&parts.on_missed_deadline, parts.deadline_seconds) {
        let hint = Some("add, for example, `deadline_seconds: 3600`".to_owned());
        report.add(callbacks.at, "there is no deadline that could be missed", hint);
    }
    let defaults = parts.defaults.clone().unwrap_or_default();
    Workflow {
        name: name.unwrap_or_default().to_owned(),
        description: parts.description.map(|word| word.text.to_owned()),
        tags: parts.tags.iter().flatten().map(|tag| tag.text.to_owned()).collect(),
        tasks: tasks.iter().map(|task| task.complete(&defaults, queues)).collect(),
        schedules,
        triggers: triggers.unwrap_or_default(),
        concurrency: limit,
        max_active_tasks: parts.max_active_tasks,
        timeout_seconds: parts.timeout_seconds,
        deadline_seconds: parts.deadline_seconds.and_then(|given| given.value),
        callbacks: parts.all_callbacks().map(CallbackParts::complete).collect(),
        types: custom_type::used_by(tasks, report),
        inputs,
    }
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
    let mut tasks = Vec::new();
    for entry in entries.iter().take(MAX_TASKS) {
        if report.is_stopped() {
            break;
        }
        tasks.extend(TaskParts::read(entry, library, report));
    }
    tasks
}

fn check_tasks(
    tasks: &[TaskParts<'_>],
    workflow: &Workflow,
    given: (&InputNames, &Settings, &KnownQueues<'_>),
    report: &mut Report<'_>,
) {
    check_duplicates(tasks, report);
    let upstream = dependencies::check(tasks, workflow, report);
    fan::check_in(tasks, report);
    for (index, task) in tasks.iter().enumerate() {
        if report.is_stopped() {
            break;
        }
        let names = Names::of_task(given.0, &upstream, index);
        check_task(task, &names, given, report);
        task.when.iter().for_each(|word| template::check_expression(*word, Some(&names), report));
        switch::check(&task.cases, &names, report);
        let Some(fan_out) = &task.fan_out else { continue };
        fan_out.for_each.iter().for_each(|word| template::check_expression(*word, Some(&names), report));
        let child = fan_out.task.iter();
        child.for_each(|child| check_task(child, &names.with_item(), given, report));
    }
    report.user = None;
}

/// Reports what is wrong with the settings of a task, or of a fan-out's.
fn check_task(
    task: &TaskParts<'_>,
    names: &Names<'_>,
    (inputs, defaults, queues): (&InputNames, &Settings, &KnownQueues<'_>),
    report: &mut Report<'_>,
) {
    report.user = Some(task.at.clone());
    check_config(task, report);
    task.check_queue(defaults, queues, report);
    task.description.iter().for_each(|word| template::check_word(*word, names, report));
    task.callbacks.iter().for_each(|callback| callback.check(Some(&Names::of_run(inputs)), report));
    // Which settings are templates and which are programs is known only with the type.
    if let (Some(config), Some(task)) = (&task.config, task.task_type()) {
        template::check_config(config, task, Some(names), report);
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
    let Some(TaskType { kind, schema, .. }) = task.task_type() else { return };
    let nothing = || Node { data: Data::Map(Vec::new()), at: task.at.clone() };
    let config = task.config.clone().unwrap_or_else(nothing);
    let mut findings = match &task.declared {
        Some(declared) => declared.checks.findings(&config, Extent::Whole, &report.budget),
        None => schema::check(schema, &config, kind.name(), Extent::Whole, &report.budget),
    };
    for field in task::own_fields(kind) {
        let misplaced = findings
            .iter_mut()
            .filter(|finding| finding.at.path.to_string().ends_with(&format!("config.{field}")));
        misplaced
            .for_each(|finding| finding.hint = Some("put it beside `type`, not into `config`".to_owned()));
    }
    report.extend(findings);
    if *kind == TaskKind::Sensor {
        triggers::check_sensor(&config, report);
    }
}
