//! The fields of tasks: in a workflow, in a fan-out, and in a file of their own.

use model::{Aggregation, Labels, NetworkAccess, TaskKind, Tolerance, TriggerRule};
use serde_json::json;

use crate::breaker::BreakerParts;
use crate::callbacks::Callbacks;
use crate::dependencies::{self, Dependencies};
use crate::diagnostic::Report;
use crate::fan;
use crate::labels::labels;
use crate::names;
use crate::node::Node;
use crate::queue::{self, NamedQueue};
use crate::read::{self, Word};
use crate::resources::{self, ResourceParts};
use crate::retry::RetryParts;
use crate::shape::{
    self, Given, Record, Shape, any, custom, defined, expression, flag, given, node, record, refer, required,
    signed, text, whole, with_default,
};
use crate::suggest;
use crate::switch::{self, CaseParts};

/// The queue of a task that names none.
pub(super) const DEFAULT_QUEUE: &str = "light";
/// A day: no attempt takes longer.
const MAX_TIMEOUT: u32 = 86_400;
/// A week: no retries go on for longer.
const MAX_RETRY_TIMEOUT: u32 = 604_800;
const PRIORITIES: std::ops::RangeInclusive<i32> = -100..=100;
/// A year: no older output is reused.
const MAX_REUSE: u32 = 31_536_000;

/// The fields that tasks of one type have, and no others.
pub(crate) const OWN_FIELDS: &[(&str, TaskKind)] = &[
    ("cases", TaskKind::Switch),
    ("for_each", TaskKind::FanOut),
    ("max_parallel", TaskKind::FanOut),
    ("tolerated_failures", TaskKind::FanOut),
    ("aggregation", TaskKind::FanIn),
    ("field", TaskKind::FanIn),
];

record! {
    /// Settings that a task, a reusable task and a workflow's `defaults` share.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Settings as "`defaults`" {
        /// Whether and when it is retried.
        retry_policy: RetryParts = defined("retry_policy", shape::record()),
        /// How long one attempt may take.
        timeout_seconds: u32 = whole(1..=MAX_TIMEOUT),
        /// How long all attempts together may take.
        retry_timeout_seconds: u32 = whole(1..=MAX_RETRY_TIMEOUT),
        /// Whether a second attempt does no harm after one whose end is unknown, such as after the loss of its worker. `true` allows
        /// up to three further attempts, `false` allows none; by default, `retry_policy` decides.
        idempotent: bool = flag(),
        /// How long a dispatched attempt waits for a worker before it fails as `not_taken`; by default, 600 seconds if no
        /// living worker can run it.
        dispatch_timeout_seconds: u32 = whole(1..=MAX_TIMEOUT),
        /// When failed attempts keep further ones from beginning, in all runs of its workflow; by default, never. Engine tasks such as
        /// `sleep` have none.
        breaker: BreakerParts = defined("breaker", shape::record()),
        /// The queue whose workers execute it.
        queue: NamedQueue = with_default(queue::named(), DEFAULT_QUEUE),
        /// The pool; tasks of a pool share its slots.
        pool: String = plain_name(),
        /// Where slots are scarce, a higher priority goes first.
        priority: i32 = signed(PRIORITIES),
        /// The maximum amounts that its program may use.
        resources: ResourceParts = defined("resources", shape::record()),
        /// What its program may reach over the network: `shared`, as its worker, or `none`; by default, what the operator
        /// of its worker chose, usually `shared`.
        network: NetworkAccess = resources::network(),
        /// The labels that a worker must have to lease it, such as `{gpu: true}`; its queue is of the kind `pool`.
        requires: Labels = labels(),
    }
}

impl Settings {
    /// These settings over others, with the retry policies and resources merged field by field.
    pub(super) fn over(self, other: &Self) -> Self {
        let policies =
            [&self.retry_policy, &other.retry_policy].map(|policy| policy.clone().unwrap_or_default());
        let [own, others] = policies;
        let resources = [&self.resources, &other.resources].map(|resources| resources.unwrap_or_default());
        let resources = Some(resources[0].or(resources[1]));
        Self { retry_policy: Some(own.or(others)), resources, ..self.or(other.clone()) }
    }
}

/// The name of a pool.
fn plain_name<'n>() -> impl Shape<'n, Value = String> {
    let name = shape::name(&names::PLAIN);
    let schema = name.schema();
    let read = move |node, report: &mut Report<'_>| name.read(node, report).map(|word| word.text.to_owned());
    custom(read, move || schema.clone())
}

record! {
    /// An entry of `tasks`: a task of its own, or a reference to a reusable one. The type decides which fields belong.
    pub(crate) struct EntryParts<'n> as "a task" {
        /// The task's name, unique in the workflow.
        name: Word<'n> = shape::name(&names::TASK),
        /// The type of the task.
        r#type: Given<'n, TaskKind> = given(kind()),
        /// The name of a reusable task from `tasks/`. In a fan-out: the task to run for each element.
        task: &'n Node = node(|| refer("child")),
        /// For people. Templates are rendered.
        description: Word<'n> = text(),
        /// The dependencies: a list, or `{any_of: […]}`.
        depends_on: Dependencies<'n> = dependencies::depends_on(),
        /// Which states of the dependencies let the task run; default `all_success`.
        trigger_rule: Given<'n, TriggerRule> = dependencies::trigger_rule(),
        /// An expression; if it is false, the task is skipped.
        when: Word<'n> = expression(),
        /// Whether the run may succeed although this task failed.
        allow_failure: bool = flag(),
        /// The settings of its type.
        config: &'n Node = any(),
        /// The branches of a switch.
        cases: Vec<CaseParts<'n>> = switch::cases(),
        /// An expression that returns the list, such as `outputs['find'].files`.
        for_each: Word<'n> = fan::for_each(),
        /// The maximum number of active children.
        max_parallel: u32 = fan::max_parallel(),
        /// How many children may fail: a number, or a share such as `10%`.
        tolerated_failures: Tolerance = fan::tolerated_failures(),
        /// How to aggregate the outputs; default `collect`.
        aggregation: Aggregation = fan::aggregation(),
        /// The field of each output to aggregate; default: all of it.
        field: Word<'n> = text(),
        ..settings: Settings,
        ..callbacks: Callbacks<'n>,
    }
}

record! {
    /// The task that a fan-out runs for each element.
    pub(crate) struct ChildParts<'n> as "a fan-out's task" {
        /// The type of each child.
        r#type: Given<'n, TaskKind> = given(kind()),
        /// The name of a reusable task from `tasks/`.
        task: Word<'n> = text(),
        /// The settings of its type. Templates may name `item` and `index`.
        config: &'n Node = any(),
        ..settings: Settings,
    }
}

record! {
    /// A task in a file of its own.
    pub(crate) struct ReusableParts<'n> as "a reusable task" {
        /// The task's name, the same as the file's.
        name: Word<'n> = required(shape::name(&names::TASK)),
        /// The type of the task.
        r#type: Given<'n, TaskKind> = required(given(kind())),
        /// For people. Templates are rendered.
        description: Word<'n> = text(),
        /// The settings of its type. Workflows that use the task may add to them.
        config: &'n Node = any(),
        /// Whether all runs share one execution of it.
        global: Given<'n, bool> = given(flag()),
        /// How long a shared output is reused; default 0.
        reuse_for_seconds: Given<'n, u32> = given(whole(0..=MAX_REUSE)),
        ..settings: Settings,
        ..callbacks: Callbacks<'n>,
    }
}

/// A task type; which are allowed, the JSON Schema of the whole task adds.
fn kind<'n>() -> impl Shape<'n, Value = TaskKind> {
    custom(read_kind, || json!({}))
}

/// Whether tasks of the type can have a file of their own.
pub(crate) fn is_reusable(kind: &TaskKind) -> bool {
    own_fields(kind).next().is_none()
}

/// The fields that stand beside `type: KIND` and nowhere else.
pub(crate) fn own_fields(kind: &TaskKind) -> impl Iterator<Item = &'static str> {
    OWN_FIELDS.iter().filter(move |(_, owner)| owner == kind).map(|(field, _)| *field)
}

/// The fields that a task of the type needs, beside its name and its settings.
pub(crate) fn needed_fields(kind: &TaskKind) -> &'static [&'static str] {
    match kind {
        TaskKind::Switch => &["cases"],
        TaskKind::FanOut => &["for_each", "task"],
        TaskKind::Noop
        | TaskKind::Echo
        | TaskKind::Fail
        | TaskKind::Flaky
        | TaskKind::Sleep
        | TaskKind::Transform
        | TaskKind::WaitForSignal
        | TaskKind::Approval
        | TaskKind::FanIn
        | TaskKind::Workflow
        | TaskKind::Sensor
        | TaskKind::Http
        | TaskKind::Bash
        | TaskKind::Python
        | TaskKind::Custom(_) => &[],
    }
}

fn read_kind(node: &Node, report: &mut Report<'_>) -> Option<TaskKind> {
    let word = read::text(node, report)?;
    let kind = TaskKind::named(word.text);
    if kind.is_none() {
        let names = || TaskKind::ALL.iter().map(TaskKind::name);
        let hint = match report.budget.nearest(word.text, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("choose from {}", suggest::list(names())),
        };
        report.add(word.at, format!("unknown task type `{}`", word.text), Some(hint));
    }
    kind
}
