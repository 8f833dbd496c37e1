//! A task as written: inline, as a reusable file, or as a reference to one.

use model::{FanIn, Global, TaskKind, TaskSpec, TriggerRule};
use serde_json::Value;

use crate::callbacks::{self, CallbackParts};
use crate::config;
use crate::dependencies;
use crate::diagnostic::Report;
use crate::fan::{self, FanOutParts};
use crate::library::Library;
use crate::names;
use crate::node::{Data, Node, Place};
use crate::read::{self, Fields, Word};
use crate::retry::RetryParts;
use crate::suggest;
use crate::switch::{self, CaseParts};

/// The lane of a task that names none.
pub(crate) const DEFAULT_QUEUE: &str = "light";
/// An hour: the time-out of a task that names none.
pub(crate) const DEFAULT_TIMEOUT: u32 = 3_600;
/// A day: nothing may take longer.
pub(crate) const MAX_TIMEOUT: u32 = 86_400;
/// A week: no retries may go on for longer.
pub(crate) const MAX_RETRY_TIMEOUT: u32 = 604_800;
/// No task may come further before or behind another.
pub(crate) const PRIORITIES: std::ops::RangeInclusive<i32> = -100..=100;
/// A year: nothing older is reused.
pub(crate) const MAX_REUSE: u32 = 31_536_000;

/// The fields that tasks of one type have, and no others.
pub(crate) const OWN_FIELDS: [(&str, TaskKind); 6] = [
    ("cases", TaskKind::Switch),
    ("for_each", TaskKind::FanOut),
    ("max_parallel", TaskKind::FanOut),
    ("tolerated_failures", TaskKind::FanOut),
    ("aggregation", TaskKind::FanIn),
    ("field", TaskKind::FanIn),
];

/// Settings that a task, a reusable task and a workflow's `defaults` share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    retry: RetryParts,
    timeout_seconds: Option<u32>,
    retry_timeout_seconds: Option<u32>,
    queue: Option<String>,
    pool: Option<String>,
    priority: Option<i32>,
}

impl Settings {
    pub(crate) fn read(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Self {
        let retry = fields.get("retry_policy").map(|node| RetryParts::read(node, report)).unwrap_or_default();
        let timeout_seconds =
            fields.get("timeout_seconds").and_then(|node| read::whole(node, 1..=MAX_TIMEOUT, report));
        let retry_timeout_seconds = fields
            .get("retry_timeout_seconds")
            .and_then(|node| read::whole(node, 1..=MAX_RETRY_TIMEOUT, report));
        let queue = fields.get("queue").and_then(|node| read_plain(node, report));
        let pool = fields.get("pool").and_then(|node| read_plain(node, report));
        let priority = fields.get("priority").and_then(|node| read::signed(node, PRIORITIES, report));
        Self { retry, timeout_seconds, retry_timeout_seconds, queue, pool, priority }
    }

    /// These settings, and where one is missing, the other's.
    fn or(self, other: &Self) -> Self {
        Self {
            retry: self.retry.or(other.retry),
            timeout_seconds: self.timeout_seconds.or(other.timeout_seconds),
            retry_timeout_seconds: self.retry_timeout_seconds.or(other.retry_timeout_seconds),
            queue: self.queue.or_else(|| other.queue.clone()),
            pool: self.pool.or_else(|| other.pool.clone()),
            priority: self.priority.or(other.priority),
        }
    }
}

/// What was written of a task.
#[derive(Clone, Debug)]
pub(crate) struct TaskParts<'n> {
    pub(crate) at: &'n Place,
    pub(crate) name: Option<Word<'n>>,
    pub(crate) kind: Option<TaskKind>,
    pub(crate) description: Option<Word<'n>>,
    pub(crate) depends_on: Vec<Word<'n>>,
    pub(crate) when: Option<Word<'n>>,
    pub(crate) cases: Vec<CaseParts<'n>>,
    pub(crate) fan_out: Option<FanOutParts<'n>>,
    pub(crate) fan_in: Option<FanIn>,
    pub(crate) config: Option<Node>,
    pub(crate) global: Option<Global>,
    pub(crate) callbacks: Vec<CallbackParts<'n>>,
    trigger_rule: Option<TriggerRule>,
    allow_failure: Option<bool>,
    settings: Settings,
}

impl<'n> TaskParts<'n> {
    /// A task of which nothing is known but where it stands.
    pub(crate) fn at(at: &'n Place) -> Self {
        let (name, kind, description, when, config, global) = Default::default();
        let (depends_on, cases, fan_out, fan_in, callbacks) = Default::default();
        let (trigger_rule, allow_failure, settings) = Default::default();
        Self {
            at,
            name,
            kind,
            description,
            depends_on,
            when,
            cases,
            fan_out,
            fan_in,
            config,
            global,
            callbacks,
            trigger_rule,
            allow_failure,
            settings,
        }
    }

    /// A task with a type of its own, in a workflow.
    pub(crate) fn read_inline(
        mut fields: Fields<'n>,
        library: &Library<'n>,
        report: &mut Report<'_>,
    ) -> Self {
        let name = fields.require("name");
        let kind = fields.require("type");
        let description = fields.get("description").and_then(|node| read::text(node, report));
        let mut task = Self::read_use(&mut fields, name, report);
        task.kind = kind.and_then(|node| read_kind(node, report));
        task.description = description;
        task.read_own(&mut fields, library, report);
        let hint = "move the task into a file under tasks/, and refer to it by `task: NAME`";
        refuse_global(&mut fields, "global tasks are defined in tasks/", hint, report);
        fields.finish(report);
        task
    }

    /// An entry that refers to a reusable task and may override parts of it.
    pub(crate) fn read_reference(mut fields: Fields<'n>, report: &mut Report<'_>) -> Self {
        let name = fields.get("name");
        let task = Self::read_use(&mut fields, name, report);
        let hint = "remove it, or remove `task` to define the task here";
        fields.refuse("type", "the type of a reusable task is fixed in its own file", hint, report);
        for (field, owner) in OWN_FIELDS {
            fields.refuse(field, &only(owner, field), hint, report);
        }
        let hint = "set it there, or remove it";
        refuse_global(&mut fields, "whether a task is global is set in its own file", hint, report);
        fields.finish(report);
        task
    }

    /// What each child of a fan-out is: of a type of its own, or a reusable task with parts overridden.
    pub(crate) fn read_child(
        fields: &mut Fields<'n>,
        library: &Library<'n>,
        report: &mut Report<'_>,
    ) -> Self {
        let config = fields.get("config").cloned();
        let child = Self { config, settings: Settings::read(fields, report), ..Self::at(fields.at) };
        let Some(reference) = fields.get("task") else {
            let kind = fields.require("type").and_then(|node| read_kind(node, report));
            return Self { kind, ..child };
        };
        let hint = "remove it, or remove `task` to define the task here";
        fields.refuse("type", "the type of a reusable task is fixed in its own file", hint, report);
        match read::text(reference, report).and_then(|name| library.find(name, report)) {
            Some(reusable) => child.over(reusable),
            None => child,
        }
    }

    /// A reusable task, in a file of its own.
    pub(crate) fn read_reusable(mut fields: Fields<'n>, report: &mut Report<'_>) -> Self {
        let name = fields.require("name").and_then(|node| read_name(node, report));
        let kind = fields.require("type").and_then(|node| read_reusable_kind(node, report));
        let description = fields.get("description").and_then(|node| read::text(node, report));
        let config = fields.get("config").cloned();
        let settings = Settings::read(&mut fields, report);
        let global = read_global(&mut fields, name, kind, report);
        let callbacks = callbacks::read_of_task(&mut fields, report);
        let at = fields.at;
        fields.finish(report);
        Self { name, kind, description, config, settings, global, callbacks, ..Self::at(at) }
    }

    /// The fields by which any task stands in a workflow.
    fn read_use(fields: &mut Fields<'n>, name: Option<&'n Node>, report: &mut Report<'_>) -> Self {
        let (depends_on, trigger_rule) = dependencies::read(fields, report);
        Self {
            at: fields.at,
            name: name.and_then(|node| read_name(node, report)),
            depends_on,
            when: fields.get("when").and_then(|node| read::expression(node, report)),
            config: fields.get("config").cloned(),
            trigger_rule,
            allow_failure: fields.get("allow_failure").and_then(|node| read::flag(node, report)),
            settings: Settings::read(fields, report),
            callbacks: callbacks::read_of_task(fields, report),
            ..Self::at(fields.at)
        }
    }

    /// The fields that only tasks of its type have; those of other types are refused.
    fn read_own(&mut self, fields: &mut Fields<'n>, library: &Library<'n>, report: &mut Report<'_>) {
        let Some(kind) = self.kind else {
            // Which fields belong to what was misspelt is not known.
            for (field, _) in OWN_FIELDS {
                fields.get(field);
            }
            return;
        };
        match kind {
            TaskKind::Switch => {
                self.cases =
                    fields.require("cases").map(|node| switch::read(node, report)).unwrap_or_default();
            }
            TaskKind::FanOut => self.fan_out = Some(FanOutParts::read(fields, library, report)),
            TaskKind::FanIn => self.fan_in = Some(fan::read_in(fields, report)),
            _ => {}
        }
        for (field, owner) in OWN_FIELDS.into_iter().filter(|(_, owner)| *owner != kind) {
            let hint = format!("write `type: {owner}`, or remove `{field}`");
            fields.refuse(field, &only(owner, field), &hint, report);
        }
    }

    /// This reference with everything that it leaves to the reusable task.
    pub(crate) fn over(self, reusable: &TaskParts<'n>) -> Self {
        Self {
            name: self.name.or(reusable.name.map(|name| Word { at: self.at, ..name })),
            kind: reusable.kind,
            description: reusable.description,
            global: reusable.global.clone(),
            callbacks: callbacks::over(self.callbacks, &reusable.callbacks),
            config: merge(reusable.config.clone(), self.config),
            settings: self.settings.or(&reusable.settings),
            ..self
        }
    }

    /// The finished task. Where something is missing, that was reported, and the workflow is not used.
    pub(crate) fn complete(&self, defaults: &Settings) -> TaskSpec {
        let settings = self.settings.clone().or(defaults);
        TaskSpec {
            name: self.name.map(|name| name.text.to_owned()).unwrap_or_default(),
            kind: self.kind.unwrap_or_default(),
            description: self.description.map(|description| description.text.to_owned()),
            depends_on: self.depends_on.iter().map(|word| word.text.to_owned()).collect(),
            trigger_rule: self.trigger_rule.unwrap_or_default(),
            when: self.when.map(|when| when.text.to_owned()),
            cases: self.cases.iter().map(CaseParts::complete).collect(),
            fan_out: self.fan_out.as_ref().map(|fan_out| fan_out.complete(defaults)),
            fan_in: self.fan_in.clone(),
            config: self.config.as_ref().map_or_else(|| Value::Object(Default::default()), Node::to_json),
            pacing: self
                .kind
                .filter(|kind| *kind == TaskKind::Sensor)
                .map(|_| config::pacing(&self.config.as_ref().map(Node::to_json).unwrap_or_default())),
            retry: settings.retry.complete(),
            timeout_seconds: settings.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT),
            retry_timeout_seconds: settings.retry_timeout_seconds,
            queue: settings.queue.unwrap_or_else(|| DEFAULT_QUEUE.to_owned()),
            pool: settings.pool,
            priority: settings.priority.unwrap_or_default(),
            allow_failure: self.allow_failure.unwrap_or_default(),
            global: self.global.clone(),
            callbacks: self.callbacks.iter().map(CallbackParts::complete).collect(),
        }
    }
}

/// Mappings are merged key by key; of anything else, the upper one stands.
fn merge(lower: Option<Node>, upper: Option<Node>) -> Option<Node> {
    match (lower, upper) {
        (Some(Node { data: Data::Map(lower), .. }), Some(Node { data: Data::Map(upper), at })) => {
            let kept =
                lower.into_iter().filter(|(key, _)| upper.iter().all(|(other, _)| other.name != key.name));
            let entries = kept.chain(upper.iter().cloned()).collect();
            Some(Node { data: Data::Map(entries), at })
        }
        (lower, upper) => upper.or(lower),
    }
}

/// The name of a queue or a pool.
fn read_plain(node: &Node, report: &mut Report<'_>) -> Option<String> {
    let name = read::text(node, report)?;
    names::check(name, &names::PLAIN, report);
    Some(name.text.to_owned())
}

fn read_name<'n>(node: &'n Node, report: &mut Report<'_>) -> Option<Word<'n>> {
    let name = read::text(node, report)?;
    names::check(name, &names::TASK, report);
    Some(name)
}

/// The fields that stand beside `type: KIND` and nowhere else.
pub(crate) fn own_fields(kind: TaskKind) -> impl Iterator<Item = &'static str> {
    OWN_FIELDS.into_iter().filter(move |(_, owner)| *owner == kind).map(|(field, _)| field)
}

fn only(owner: TaskKind, field: &str) -> String {
    format!("only a task of type `{owner}` has `{field}`")
}

fn refuse_global(fields: &mut Fields<'_>, message: &str, hint: &str, report: &mut Report<'_>) {
    fields.refuse("global", message, hint, report);
    fields.refuse("reuse_for_seconds", message, hint, report);
}

/// Whether runs share one execution of a reusable task, and for how long.
fn read_global(
    fields: &mut Fields<'_>,
    name: Option<Word<'_>>,
    kind: Option<TaskKind>,
    report: &mut Report<'_>,
) -> Option<Global> {
    let (global, reuse) = (fields.get("global"), fields.get("reuse_for_seconds"));
    let flag = global.map(|node| read::flag(node, report));
    let is_global = flag == Some(Some(true));
    let seconds = reuse.and_then(|node| read::whole(node, 0..=MAX_REUSE, report));
    if let (Some(reuse), None | Some(Some(false))) = (reuse, flag) {
        let hint = Some("add `global: true`".to_owned());
        report.add(&reuse.at, "only global tasks can be reused", hint);
    }
    if let (Some(global), Some(kind)) =
        (global.filter(|_| is_global), kind.filter(|kind| kind.is_engine_task()))
    {
        let message = format!("a task of type `{kind}` cannot be global");
        let hint =
            "only tasks that a worker performs can be shared, such as `http`, `bash` or `python`".to_owned();
        report.add(&global.at, message, Some(hint));
    }
    let name = name.filter(|_| is_global)?.text.to_owned();
    Some(Global { name, reuse_for_seconds: seconds.unwrap_or_default() })
}

fn read_reusable_kind(node: &Node, report: &mut Report<'_>) -> Option<TaskKind> {
    let kind = read_kind(node, report)?;
    if own_fields(kind).next().is_some() {
        let message = format!("a `{kind}` belongs to the tasks around it, so it cannot be reusable");
        report.add(&node.at, message, Some("write it into the workflow itself".to_owned()));
    }
    Some(kind)
}

fn read_kind(node: &Node, report: &mut Report<'_>) -> Option<TaskKind> {
    let word = read::text(node, report)?;
    let kind = TaskKind::named(word.text);
    if kind.is_none() {
        let names = || TaskKind::ALL.iter().map(|kind| kind.name());
        let hint = match suggest::nearest(word.text, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("choose from {}", suggest::list(names())),
        };
        report.add(word.at, format!("unknown task type `{}`", word.text), Some(hint));
    }
    kind
}
