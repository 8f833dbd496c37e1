//! A task as written: inline, as a reusable file, or as a reference to one.

mod fields;

use std::collections::BTreeSet;
use std::rc::Rc;

use model::{FanIn, Global, TaskKind, TaskSpec, TriggerRule};
use serde_json::Value;

use crate::allowance;
use crate::breaker::BreakerParts;
use crate::callbacks::{self, CallbackParts, Callbacks};
use crate::config;
use crate::custom_type::{CustomTypes, DeclaredType};
use crate::dependencies;
use crate::diagnostic::Report;
use crate::fan::{self, FanOutParts};
use crate::library::Library;
use crate::node::{Data, Node, Position};
use crate::queue::KnownQueues;
use crate::read::{self, Fields, Word};
use crate::shape::{Given, Record};
use crate::switch::CaseParts;
use crate::types::TaskType;
use fields::DEFAULT_QUEUE;

pub(crate) use fields::{
    ChildParts, EntryParts, OWN_FIELDS, ReusableParts, Settings, is_reusable, needed_fields, own_fields,
};

/// An hour: the time-out of a task that names none.
const DEFAULT_TIMEOUT: u32 = 3_600;

/// A task as written, from any of the three records.
#[derive(Clone, Debug)]
pub(crate) struct TaskParts<'n> {
    pub(crate) at: &'n Position,
    pub(crate) name: Option<Word<'n>>,
    pub(crate) kind: Option<TaskKind>,
    /// What its type's own file declares, if it has one.
    pub(crate) declared: Option<Rc<DeclaredType<'n>>>,
    pub(crate) description: Option<Word<'n>>,
    pub(crate) depends_on: Vec<Word<'n>>,
    pub(crate) when: Option<Word<'n>>,
    pub(crate) cases: Vec<CaseParts<'n>>,
    pub(crate) fan_out: Option<FanOutParts<'n>>,
    pub(crate) fan_in: Option<FanIn>,
    pub(crate) config: Option<Node>,
    pub(crate) global: Option<Global>,
    pub(crate) callbacks: Callbacks<'n>,
    /// What each use of it takes, if it is a reusable task.
    pub(crate) weight: usize,
    trigger_rule: Option<TriggerRule>,
    allow_failure: Option<bool>,
    settings: Settings,
}

impl<'n> TaskParts<'n> {
    /// A task of which only the position is known.
    pub(crate) fn at(at: &'n Position) -> Self {
        let (name, kind, description, when, config, global) = Default::default();
        let (depends_on, cases, fan_out, fan_in, callbacks, weight) = Default::default();
        let (trigger_rule, allow_failure, settings, declared) = Default::default();
        Self {
            at,
            name,
            kind,
            declared,
            description,
            depends_on,
            when,
            cases,
            fan_out,
            fan_in,
            config,
            global,
            callbacks,
            weight,
            trigger_rule,
            allow_failure,
            settings,
        }
    }

    /// An entry of a workflow's `tasks`.
    pub(crate) fn read(entry: &'n Node, library: &Library<'n>, report: &mut Report<'_>) -> Option<Self> {
        let mut fields = Fields::of(entry, EntryParts::WHAT, report)?;
        let kind = fields.peek("type").and_then(kind_of);
        let is_reference = kind != Some(TaskKind::FanOut)
            && fields.peek("task").is_some_and(|node| !node.is_null() && !is_child(node, report));
        callbacks::refuse_deadline(&mut fields, report);
        match is_reference {
            true => refuse_in_reference(&mut fields, report),
            false => refuse_beside_type(kind.as_ref(), &mut fields, report),
        }
        let parts = EntryParts::take(&mut fields, report);
        let at = fields.at;
        fields.finish(report);
        let (depends_on, any_of) = parts.depends_on.unwrap_or_default();
        let task = Self {
            name: parts.name,
            description: parts.description,
            depends_on,
            when: parts.when,
            cases: parts.cases.unwrap_or_default(),
            config: parts.config.cloned(),
            callbacks: parts.callbacks,
            trigger_rule: dependencies::rule(any_of, parts.trigger_rule, report),
            allow_failure: parts.allow_failure,
            settings: parts.settings,
            fan_in: (kind == Some(TaskKind::FanIn)).then(|| FanIn {
                aggregation: parts.aggregation.unwrap_or_default(),
                field: parts.field.map(|field| field.text.to_owned()),
            }),
            fan_out: (kind == Some(TaskKind::FanOut)).then(|| FanOutParts {
                for_each: parts.for_each,
                max_parallel: parts.max_parallel,
                tolerated_failures: parts.tolerated_failures,
                task: parts.task.and_then(|node| fan::read_child(node, library, report)).map(Box::new),
            }),
            ..Self::at(at)
        };
        let task = task.typed(parts.r#type, library.types(), report);
        match parts.task.filter(|_| is_reference) {
            Some(reference) => task.referring(read::text(reference, report)?, library, report),
            None => Some(task),
        }
    }

    /// The task that a reference stands for.
    fn referring(self, name: Word<'n>, library: &Library<'n>, report: &mut Report<'_>) -> Option<Self> {
        Some(match library.find(name, report) {
            Some(reusable) if report.take(reusable.weight, |_| name.at.clone()) => self.over(reusable),
            // Kept under the name it would have, so that others may depend on it without a second problem.
            _ => Self { name: self.name.or(Some(name)), ..self },
        })
    }

    /// The task that a fan-out runs: of a type of its own, or a reusable task with parts overridden.
    pub(crate) fn read_child(mut fields: Fields<'n>, library: &Library<'n>, report: &mut Report<'_>) -> Self {
        match fields.peek("task").is_some_and(|node| !node.is_null()) {
            true => refuse_type(&mut fields, report),
            false => fields.require("type"),
        }
        let parts = ChildParts::take(&mut fields, report);
        let child = Self { config: parts.config.cloned(), settings: parts.settings, ..Self::at(fields.at) };
        let child = child.typed(parts.r#type, library.types(), report);
        fields.finish(report);
        let Some(name) = parts.task else { return child };
        match library.find(name, report) {
            Some(reusable) if report.take(reusable.weight, |_| name.at.clone()) => child.over(reusable),
            _ => child,
        }
    }

    /// A reusable task, in a file of its own.
    pub(crate) fn read_reusable(
        root: &'n Node,
        types: &CustomTypes<'n>,
        report: &mut Report<'_>,
    ) -> Option<Self> {
        let mut fields = Fields::of(root, ReusableParts::WHAT, report)?;
        callbacks::refuse_deadline(&mut fields, report);
        let parts = ReusableParts::take(&mut fields, report);
        fields.finish(report);
        let global = read_global(&parts, report);
        let kind = parts.r#type.as_ref().and_then(|given| given.value.as_ref());
        if let (Some(given), Some(kind)) = (&parts.r#type, kind.filter(|kind| !is_reusable(kind))) {
            let message = format!("a `{kind}` belongs to the tasks around it, so it cannot be reusable");
            report.add(given.at, message, Some("write it into the workflow itself".to_owned()));
        }
        let task = Self {
            name: parts.name,
            description: parts.description,
            config: parts.config.cloned(),
            settings: parts.settings,
            global,
            callbacks: parts.callbacks,
            weight: allowance::weight(root),
            ..Self::at(&root.at)
        };
        Some(task.typed(parts.r#type, types, report))
    }

    /// This task with its type. The settings of a custom type stand for those that the task leaves out.
    fn typed(
        self,
        given: Option<Given<'n, TaskKind>>,
        types: &CustomTypes<'n>,
        report: &mut Report<'_>,
    ) -> Self {
        let Some(Given { at, value: Some(kind) }) = given else { return self };
        let TaskKind::Custom(name) = &kind else { return Self { kind: Some(kind), ..self } };
        match types.find(Word { text: name.as_str(), at }, report) {
            Some(declared) => {
                let settings = self.settings.over(&declared.settings);
                Self { kind: Some(kind), declared: Some(declared), settings, ..self }
            }
            None => self,
        }
    }

    /// What the language knows about its type.
    pub(crate) fn task_type(&self) -> Option<&TaskType> {
        let declared = self.declared.as_ref().map(|declared| &declared.task_type);
        declared.or_else(|| self.kind.as_ref().map(TaskType::of))
    }

    /// This reference with everything that it leaves to the reusable task.
    pub(crate) fn over(self, reusable: &TaskParts<'n>) -> Self {
        Self {
            name: self.name.or(reusable.name.map(|name| Word { at: self.at, ..name })),
            kind: reusable.kind.clone(),
            declared: reusable.declared.clone(),
            description: reusable.description,
            global: reusable.global.clone(),
            callbacks: self.callbacks.or(reusable.callbacks.clone()),
            config: merge(reusable.config.clone(), self.config),
            settings: self.settings.over(&reusable.settings),
            ..self
        }
    }

    /// Reports a queue that does not exist, or that is not of the kind `pool` although the task needs a worker.
    pub(crate) fn check_queue(&self, defaults: &Settings, queues: &KnownQueues<'_>, report: &mut Report<'_>) {
        let named = self.settings.queue.as_ref().or(defaults.queue.as_ref());
        named.iter().for_each(|queue| queues.check(queue, report));
        let name = named.map_or(DEFAULT_QUEUE, |queue| queue.name.as_str());
        if queues.is_leased(name) != Some(false) {
            return;
        }
        let hint = "name a queue whose file in queues/ says `kind: pool`";
        if let Some(declared) = &self.declared {
            let kind = declared.name();
            let message =
                format!("tasks of type `{kind}` run on workers, which do not lease from the queue `{name}`");
            report.add(self.at, message, Some(format!("{hint}, here or in types/{kind}.yaml")));
        }
        if self.settings.requires.as_ref().is_some_and(|labels| !labels.is_empty()) {
            let message = format!("`requires` is for workers, which do not lease from the queue `{name}`");
            report.add(self.at, message, Some(hint.to_owned()));
        }
    }

    /// The finished task. Where something is missing, that was reported, and the workflow is not used.
    pub(crate) fn complete(&self, defaults: &Settings, queues: &KnownQueues<'_>) -> TaskSpec {
        let settings = self.settings.clone().over(defaults);
        let queue = settings.queue.map_or_else(|| DEFAULT_QUEUE.to_owned(), |queue| queue.name);
        TaskSpec {
            name: self.name.map(|name| name.text.to_owned()).unwrap_or_default(),
            kind: self.kind.clone().unwrap_or_default(),
            description: self.description.map(|description| description.text.to_owned()),
            depends_on: self.depends_on.iter().map(|word| word.text.to_owned()).collect(),
            trigger_rule: self.trigger_rule.unwrap_or_default(),
            when: self.when.map(|when| when.text.to_owned()),
            cases: self.cases.iter().map(CaseParts::complete).collect(),
            fan_out: self.fan_out.as_ref().map(|fan_out| fan_out.complete(defaults, queues)),
            fan_in: self.fan_in.clone(),
            config: self.config.as_ref().map_or_else(|| Value::Object(Default::default()), Node::to_json),
            pacing: self
                .kind
                .as_ref()
                .filter(|kind| **kind == TaskKind::Sensor)
                .map(|_| config::pacing(&self.config.as_ref().map(Node::to_json).unwrap_or_default())),
            retry: settings.retry_policy.unwrap_or_default().complete(),
            timeout_seconds: settings.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT),
            timeout_is_explicit: settings.timeout_seconds.is_some(),
            retry_timeout_seconds: settings.retry_timeout_seconds,
            idempotent: settings.idempotent,
            dispatch_timeout_seconds: settings.dispatch_timeout_seconds,
            leased: queues.is_leased(&queue) == Some(true),
            // The engine's own tasks wait for no slot.
            breaker: settings
                .breaker
                .filter(|_| self.kind.as_ref().is_some_and(|kind| !kind.is_engine_task()))
                .map(BreakerParts::complete),
            queue,
            pool: settings.pool,
            priority: settings.priority.unwrap_or_default(),
            allow_failure: self.allow_failure.unwrap_or_default(),
            global: self.global.clone(),
            callbacks: self.callbacks.iter().map(CallbackParts::complete).collect(),
            resources: settings.resources.unwrap_or_default().complete(),
            network: settings.network,
            requires: settings.requires.unwrap_or_default(),
        }
    }
}

/// Mappings are merged key by key; of anything else, the upper one stands.
fn merge(lower: Option<Node>, upper: Option<Node>) -> Option<Node> {
    match (lower, upper) {
        (Some(Node { data: Data::Map(lower), .. }), Some(Node { data: Data::Map(upper), at })) => {
            let overridden: BTreeSet<&str> = upper.iter().map(|(key, _)| key.name.as_str()).collect();
            let kept = lower.into_iter().filter(|(key, _)| !overridden.contains(key.name.as_str()));
            let entries = kept.chain(upper.iter().cloned()).collect();
            Some(Node { data: Data::Map(entries), at })
        }
        (lower, upper) => upper.or(lower),
    }
}

/// Refuses the fields that do not go with the type of a task; which do not is unknown if the type is.
fn refuse_beside_type(kind: Option<&TaskKind>, fields: &mut Fields<'_>, report: &mut Report<'_>) {
    fields.require("name");
    fields.require("type");
    let hint = "move the task into a file under tasks/, and refer to it by `task: NAME`";
    refuse_global(fields, "global tasks are defined in tasks/", hint, report);
    let Some(kind) = kind else { return };
    needed_fields(kind).iter().for_each(|field| fields.require(field));
    if *kind == TaskKind::FanOut {
        fan::refuse_settings(fields, report);
    }
    for (field, owner) in OWN_FIELDS.iter().filter(|(_, owner)| owner != kind) {
        let hint = format!("write `type: {owner}`, or remove `{field}`");
        fields.refuse(field, &only(owner, field), &hint, report);
    }
}

/// Refuses what a reference leaves to the file of the reusable task.
fn refuse_in_reference(fields: &mut Fields<'_>, report: &mut Report<'_>) {
    refuse_type(fields, report);
    let hint = "remove it, or remove `task` to define the task here";
    for (field, owner) in OWN_FIELDS {
        fields.refuse(field, &only(owner, field), hint, report);
    }
    let hint = "set it there, or remove it";
    fields.refuse("description", "the description of a reusable task is set in its own file", hint, report);
    refuse_global(fields, "whether a task is global is set in its own file", hint, report);
}

fn refuse_type(fields: &mut Fields<'_>, report: &mut Report<'_>) {
    let hint = "remove it, or remove `task` to define the task here";
    fields.refuse("type", "the type of a reusable task is fixed in its own file", hint, report);
}

fn refuse_global(fields: &mut Fields<'_>, message: &str, hint: &str, report: &mut Report<'_>) {
    fields.refuse("global", message, hint, report);
    fields.refuse("reuse_for_seconds", message, hint, report);
}

fn only(owner: &TaskKind, field: &str) -> String {
    format!("only a task of type `{owner}` has `{field}`")
}

/// Whether a task is defined where a reusable one should be named: only a fan-out has one there.
fn is_child(node: &Node, report: &mut Report<'_>) -> bool {
    let is_map = matches!(node.data, Data::Map(_));
    if is_map {
        let hint = "to do it for each element of a list, add `type: fan_out` and `for_each`".to_owned();
        report.add(&node.at, "`task` names a reusable task, but this is a mapping", Some(hint));
    }
    is_map
}

/// Whether runs share one execution of a reusable task, and for how long.
fn read_global(parts: &ReusableParts<'_>, report: &mut Report<'_>) -> Option<Global> {
    let is_global = parts.global.map(|global| global.value);
    if let (Some(reuse), None | Some(Some(false))) = (parts.reuse_for_seconds, is_global) {
        let hint = Some("add `global: true`".to_owned());
        report.add(reuse.at, "only global tasks can be reused", hint);
    }
    let global = parts.global.filter(|global| global.value == Some(true))?;
    let kind = parts.r#type.as_ref().and_then(|given| given.value.as_ref());
    if let Some(kind) = kind.filter(|kind| kind.is_engine_task()) {
        let message = format!("a task of type `{kind}` cannot be global");
        let hint = "only tasks that a worker performs can be shared, such as `http`, `bash` or `python`";
        report.add(global.at, message, Some(hint.to_owned()));
    }
    let seconds = parts.reuse_for_seconds.and_then(|reuse| reuse.value);
    Some(Global { name: parts.name?.text.to_owned(), reuse_for_seconds: seconds.unwrap_or_default() })
}

fn kind_of(node: &Node) -> Option<TaskKind> {
    match &node.data {
        Data::Text(word) => TaskKind::named(word),
        _ => None,
    }
}
