//! The normalization of rows before they are written, so that all stores contain the same.
//!
//! Instances' clocks differ by milliseconds: a time that would lie before the one it follows is written as
//! that one, since refusing it would leave a run stuck. Texts lose their NUL characters, which Postgres
//! cannot hold; inside JSON they stay.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use model::change::Recheck;
use model::{
    AttemptRecord, Changes, Instant, Limit, Parent, Run, Schedule, Task, TaskIndex, TaskState, WorkerCommand,
    WorkerFacts,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{DeadLetter, Facts, Heartbeat};

/// The longest id that an index can hold, in characters.
const MAX_DEAD_LETTER_ID: usize = 512;

/// The maximum number of labels by which a run can be found.
const MAX_LABELS: usize = 64;

/// The longest label that an index can hold beside others, in characters.
const MAX_LABEL: usize = 256;

/// The text with each NUL replaced by the character that stands for the unreadable.
pub fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{FFFD}")) } else { Cow::Borrowed(text) }
}

/// A text that rows are found by, as an index can hold it: a longer one keeps its beginning, followed by a hash of the
/// whole text.
pub fn label(label: &str) -> Cow<'_, str> {
    let label = text(label);
    if label.chars().count() <= MAX_LABEL {
        return label;
    }
    let hash = Uuid::new_v5(&Uuid::NAMESPACE_OID, label.as_bytes()).simple().to_string();
    let beginning: String = label.chars().take(MAX_LABEL - hash.len()).collect();
    Cow::Owned(beginning + &hash)
}

/// The search keys of a run with these labels, each as `name=value`.
pub(crate) fn labels(labels: &Map<String, Value>) -> BTreeSet<String> {
    let pair = |(name, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        label(&format!("{name}={value}")).into_owned()
    };
    labels.iter().take(MAX_LABELS).map(pair).collect()
}

/// A limit under the name that a row can hold.
pub(crate) fn limit(limit: &Limit) -> Limit {
    Limit::of(limit.kind(), limit.tenant(), &text(limit.name())).expect("the same kind and tenant")
}

/// A run with its times in order, whose parent knows how deep it is. Each field is named, so that nobody adds a text that
/// keeps its NUL characters.
pub(crate) fn run(run: &Run) -> Run {
    let started_at = not_before(run.started_at, Some(run.created_at));
    Run {
        id: run.id,
        tenant: run.tenant,
        workflow: text(&run.workflow).into_owned(),
        version: run.version,
        state: run.state,
        revision: run.revision,
        counts: run.counts,
        failures: run.failures,
        events: run.events,
        created_at: run.created_at,
        started_at,
        finished_at: not_before(run.finished_at, started_at.or(Some(run.created_at))),
        error: run.error.as_deref().map(|error| text(error).into_owned()),
        parent: run.parent.map(|parent| Parent { depth: run.depth, ..parent }),
        depth: run.depth,
        concurrency_group: run.concurrency_group.as_deref().map(|group| label(group).into_owned()),
        waiting: run.waiting,
        priority: run.priority,
    }
}

/// A task with its times in order.
pub(crate) fn task(task: &Task) -> Task {
    let began = task.started_at.max(task.begun_at);
    Task { finished_at: not_before(task.finished_at, began), ..task.clone() }
}

/// An attempt with its times in order.
pub(crate) fn attempt(attempt: &AttemptRecord) -> AttemptRecord {
    AttemptRecord {
        finished_at: attempt.started_at.map_or(attempt.finished_at, |start| attempt.finished_at.max(start)),
        decision: text(&attempt.decision).into_owned(),
        ..attempt.clone()
    }
}

/// The facts that a run was created with, in storable form.
pub(crate) fn facts(facts: &Facts) -> Facts {
    Facts {
        trigger_kind: text(&facts.trigger_kind).into_owned(),
        trigger_by: text(&facts.trigger_by).into_owned(),
        ..facts.clone()
    }
}

/// The name under which the dates of a schedule are unique. A workflow's only schedule shares its dates with
/// people.
pub fn schedule_of_date(schedule: &str) -> Cow<'_, str> {
    if schedule == Schedule::ONLY { Cow::Borrowed("") } else { text(schedule) }
}

/// The same, of a run to be created.
pub(crate) fn schedule_of(facts: &Facts) -> Cow<'_, str> {
    facts.planned.as_ref().map_or(Cow::Borrowed(""), |planned| schedule_of_date(&planned.schedule))
}

/// A dead letter as it can be kept.
pub(crate) fn dead_letter(letter: &DeadLetter) -> DeadLetter {
    DeadLetter {
        id: dead_letter_id(&letter.id),
        source: text(&letter.source).into_owned(),
        reason: text(&letter.reason).into_owned(),
        body: text(&letter.body).into_owned(),
        at: letter.at,
    }
}

/// A heartbeat, as it can be stored.
pub(crate) fn heartbeat(sign: &Heartbeat) -> Heartbeat {
    let facts = sign.facts.as_ref().map(|facts| WorkerFacts {
        function: text(&facts.function).into_owned(),
        queue: facts.queue.as_deref().map(|queue| text(queue).into_owned()),
        host: text(&facts.host).into_owned(),
        version: text(&facts.version).into_owned(),
        since: facts.since,
        breakers: facts.breakers.clone(),
        remote: facts.remote.clone(),
    });
    Heartbeat { facts, ..*sign }
}

/// A worker command as it can be stored.
pub(crate) fn worker_command(command: &WorkerCommand) -> WorkerCommand {
    WorkerCommand {
        actor: text(&command.actor).into_owned(),
        reason: command.reason.as_deref().map(|reason| text(reason).into_owned()),
        ..*command
    }
}

/// The id of a dead letter as an index can hold it.
pub(crate) fn dead_letter_id(id: &str) -> String {
    text(id).chars().take(MAX_DEAD_LETTER_ID).collect()
}

/// When the run is rechecked next: never once it has ended, whatever the decision named.
pub(crate) fn recheck(changes: &Changes) -> Recheck {
    if changes.run.state.is_final() { Recheck::Never } else { changes.recheck }
}

/// The number of the first event among the changes.
pub(crate) fn first_event(changes: &Changes) -> i64 {
    changes.run.events - changes.events.len() as i64
}

/// When the decision was made, according to its rows: the age of its messages is counted from then.
pub(crate) fn decided_at(changes: &Changes) -> Instant {
    let events = changes.events.iter().map(|event| event.at);
    let tasks = changes.tasks.iter().map(|task| task.since);
    events.chain(tasks).max().unwrap_or(changes.run.created_at)
}

/// The shared tasks that ended: when, of those that succeeded.
pub(crate) fn shares_ended(changes: &Changes) -> Vec<(TaskIndex, Option<Instant>)> {
    let rows = rows_of(changes, changes.shares_ended.iter().map(|(task, _)| *task));
    let finished_at = |index| rows.get(&index).and_then(|row| task(row).finished_at);
    let ended = changes.shares_ended.iter();
    ended
        .map(|(index, succeeded)| {
            (*index, succeeded.then(|| finished_at(*index).unwrap_or_else(|| decided_at(changes))))
        })
        .collect()
}

/// The tasks whose wait for one of another run is over: one that sleeps again waits for what it asked for since.
pub(crate) fn waits_over(changes: &Changes) -> Vec<TaskIndex> {
    let rows = rows_of(changes, changes.waits_over.iter().copied());
    let sleeps = |index| rows.get(index).is_some_and(|row| row.state == TaskState::Sleeping);
    changes.waits_over.iter().filter(|index| !sleeps(*index)).copied().collect()
}

/// The rows of the named tasks, of those that are written.
fn rows_of(changes: &Changes, named: impl Iterator<Item = TaskIndex>) -> BTreeMap<TaskIndex, &Task> {
    let named: BTreeSet<TaskIndex> = named.collect();
    let rows = changes.tasks.iter().chain(&changes.new_tasks);
    rows.filter(|row| named.contains(&row.index)).map(|row| (row.index, row)).collect()
}

fn not_before(instant: Option<Instant>, earlier: Option<Instant>) -> Option<Instant> {
    instant.map(|instant| earlier.map_or(instant, |earlier| instant.max(earlier)))
}
