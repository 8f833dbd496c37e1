//! A task as written: inline, as a reusable file, or as a reference to one.

use model::{TaskSpec, TriggerRule};
use serde_json::Value;

use crate::dependencies;
use crate::diagnostic::Report;
use crate::kinds::{self, Kind};
use crate::names;
use crate::node::{Data, Node, Place};
use crate::read::{self, Fields, Word};
use crate::retry::RetryParts;
use crate::suggest;
use crate::switch::{self, CaseParts};

/// The lane of a task that names none.
const DEFAULT_QUEUE: &str = "light";
/// A day: nothing may take longer.
const MAX_TIMEOUT: u32 = 86_400;

/// Settings that a task, a reusable task and a workflow's `defaults` share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    retry: RetryParts,
    timeout_seconds: Option<u32>,
    queue: Option<String>,
}

impl Settings {
    pub(crate) fn read(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Self {
        let retry = fields.get("retry_policy").map(|node| RetryParts::read(node, report)).unwrap_or_default();
        let timeout_seconds =
            fields.get("timeout_seconds").and_then(|node| read::whole(node, 1..=MAX_TIMEOUT, report));
        let queue = fields.get("queue").and_then(|node| read::text(node, report));
        if let Some(queue) = queue {
            names::check(queue, &names::PLAIN, report);
        }
        Self { retry, timeout_seconds, queue: queue.map(|queue| queue.text.to_owned()) }
    }

    /// These settings, and where one is missing, the other's.
    fn or(self, other: &Self) -> Self {
        Self {
            retry: self.retry.or(other.retry),
            timeout_seconds: self.timeout_seconds.or(other.timeout_seconds),
            queue: self.queue.or_else(|| other.queue.clone()),
        }
    }
}

/// What was written of a task.
#[derive(Clone, Debug)]
pub(crate) struct TaskParts<'n> {
    pub(crate) at: &'n Place,
    pub(crate) name: Option<Word<'n>>,
    pub(crate) kind: Option<&'static Kind>,
    pub(crate) description: Option<Word<'n>>,
    pub(crate) depends_on: Vec<Word<'n>>,
    pub(crate) when: Option<Word<'n>>,
    pub(crate) cases: Vec<CaseParts<'n>>,
    pub(crate) config: Option<Node>,
    trigger_rule: Option<TriggerRule>,
    allow_failure: Option<bool>,
    settings: Settings,
}

impl<'n> TaskParts<'n> {
    /// A task with a type of its own, in a workflow.
    pub(crate) fn read_inline(mut fields: Fields<'n>, report: &mut Report<'_>) -> Self {
        let name = fields.require("name");
        let kind = fields.require("type");
        let description = fields.get("description").and_then(|node| read::text(node, report));
        let mut task = Self::read_use(&mut fields, name, report);
        task.kind = kind.and_then(|node| read_kind(node, report));
        task.description = description;
        task.read_cases(&mut fields, report);
        fields.finish(report);
        task
    }

    /// An entry that refers to a reusable task and may override parts of it.
    pub(crate) fn read_reference(mut fields: Fields<'n>, report: &mut Report<'_>) -> Self {
        let name = fields.get("name");
        let task = Self::read_use(&mut fields, name, report);
        let hint = "remove it, or remove `task` to define the task here";
        fields.refuse("type", "the type of a reusable task is fixed in its own file", hint, report);
        fields.refuse("cases", "only a task of the type `switch` has cases", hint, report);
        fields.finish(report);
        task
    }

    /// A reusable task, in a file of its own.
    pub(crate) fn read_reusable(mut fields: Fields<'n>, report: &mut Report<'_>) -> Self {
        let name = fields.require("name").and_then(|node| read_name(node, report));
        let kind = fields.require("type").and_then(|node| read_reusable_kind(node, report));
        let description = fields.get("description").and_then(|node| read::text(node, report));
        let config = fields.get("config").cloned();
        let settings = Settings::read(&mut fields, report);
        let at = fields.at;
        fields.finish(report);
        let (trigger_rule, allow_failure, depends_on, when, cases) = Default::default();
        Self {
            at,
            name,
            kind,
            description,
            depends_on,
            when,
            cases,
            config,
            trigger_rule,
            allow_failure,
            settings,
        }
    }

    /// The fields by which any task stands in a workflow.
    fn read_use(fields: &mut Fields<'n>, name: Option<&'n Node>, report: &mut Report<'_>) -> Self {
        let (depends_on, trigger_rule) = dependencies::read(fields, report);
        Self {
            at: fields.at,
            name: name.and_then(|node| read_name(node, report)),
            kind: None,
            description: None,
            depends_on,
            when: fields.get("when").and_then(|node| read::expression(node, report)),
            cases: Vec::new(),
            config: fields.get("config").cloned(),
            trigger_rule,
            allow_failure: fields.get("allow_failure").and_then(|node| read::flag(node, report)),
            settings: Settings::read(fields, report),
        }
    }

    /// The branches of a switch, which no other type has.
    fn read_cases(&mut self, fields: &mut Fields<'n>, report: &mut Report<'_>) {
        if self.kind.is_some_and(is_switch) {
            self.cases = fields.require("cases").map(|node| switch::read(node, report)).unwrap_or_default();
        } else if self.kind.is_some() {
            let hint = "write `type: switch`, or remove `cases`";
            fields.refuse("cases", "only a task of the type `switch` has cases", hint, report);
        } else {
            fields.get("cases");
        }
    }

    /// This reference with everything that it leaves to the reusable task.
    pub(crate) fn over(self, reusable: &TaskParts<'n>) -> Self {
        Self {
            name: self.name.or(reusable.name.map(|name| Word { at: self.at, ..name })),
            kind: reusable.kind,
            description: reusable.description,
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
            kind: self.kind.map(|kind| kind.name.to_owned()).unwrap_or_default(),
            description: self.description.map(|description| description.text.to_owned()),
            depends_on: self.depends_on.iter().map(|word| word.text.to_owned()).collect(),
            trigger_rule: self.trigger_rule.unwrap_or_default(),
            when: self.when.map(|when| when.text.to_owned()),
            cases: self.cases.iter().map(CaseParts::complete).collect(),
            config: self.config.as_ref().map_or_else(|| Value::Object(Default::default()), Node::to_json),
            retry: settings.retry.complete(self.kind.map_or(0, |kind| kind.retries)),
            timeout_seconds: settings
                .timeout_seconds
                .or(self.kind.map(|kind| kind.timeout_seconds))
                .unwrap_or(1),
            queue: settings.queue.unwrap_or_else(|| DEFAULT_QUEUE.to_owned()),
            allow_failure: self.allow_failure.unwrap_or_default(),
            ..TaskSpec::default()
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

fn read_name<'n>(node: &'n Node, report: &mut Report<'_>) -> Option<Word<'n>> {
    let name = read::text(node, report)?;
    names::check(name, &names::TASK, report);
    Some(name)
}

fn is_switch(kind: &Kind) -> bool {
    kind.name == "switch"
}

fn read_reusable_kind(node: &Node, report: &mut Report<'_>) -> Option<&'static Kind> {
    let kind = read_kind(node, report)?;
    if is_switch(kind) {
        let hint = Some("write the switch into the workflow itself".to_owned());
        report.add(&node.at, "a switch names tasks of its workflow, so it cannot be reusable", hint);
    }
    Some(kind)
}

fn read_kind(node: &Node, report: &mut Report<'_>) -> Option<&'static Kind> {
    let word = read::text(node, report)?;
    let kind = kinds::kind(word.text);
    if kind.is_none() {
        let hint = suggest::hint(word.text, kinds::kinds().iter().map(|kind| kind.name));
        report.add(word.at, format!("there is no task type `{}`", word.text), hint);
    }
    kind
}
