//! Records that the store reads and writes, besides the rows of `model` on which decisions are based.

mod definitions;
mod runs;
mod slots;
mod workers;

use std::collections::BTreeMap;

use model::{
    Changes, Child, Instant, Message, Planned, Run, RunId, Task, TaskIndex, TaskKey, TenantId, Timer,
    VersionId,
};
use serde_json::{Map, Value};

pub use definitions::*;
pub use runs::*;
pub use slots::*;
pub use workers::*;

/// The facts that a run was created with. They never change.
#[derive(Clone, PartialEq, Debug)]
pub struct Facts {
    /// Its inputs, checked and complete.
    pub inputs: Map<String, Value>,
    /// Labels to find it by.
    pub labels: Map<String, Value>,
    /// The origin of the run: `api`, `message`, `schedule`, …
    pub trigger_kind: String,
    /// Who or what started it.
    pub trigger_by: String,
    /// The date it is about, if one was given; unique per workflow and schedule.
    pub logical_date: Option<Instant>,
    /// The schedule whose date it is, if any.
    pub planned: Option<Planned>,
}

/// The values that templates of a run are rendered from.
#[derive(Clone, PartialEq, Debug)]
pub struct Context {
    /// The facts that the run was created with.
    pub facts: Facts,
    /// The outputs of the requested tasks, of those that have one.
    pub outputs: BTreeMap<TaskIndex, Value>,
}

/// A run to be created: its facts, and its first rows as a decision left them.
#[derive(Clone, PartialEq, Debug)]
pub struct NewRunRecord {
    /// The facts that it is created with.
    pub facts: Facts,
    /// All its rows; every task of the run is among them.
    pub changes: Changes,
}

/// The outcome of the creation of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Created {
    /// The run exists now.
    New,
    /// A run of that id exists already; nothing was written.
    Already,
    /// A run of that workflow and logical date exists already; nothing was written.
    DateTaken(RunId),
}

/// A task that asks for a shared task.
#[derive(Clone, PartialEq, Debug)]
pub struct ShareAsk {
    /// The tenant within which it is shared.
    pub tenant: TenantId,
    /// The name of the reusable task.
    pub name: String,
    /// The key that identifies its executions: the same key, the same work.
    pub key: String,
    /// The task that asks.
    pub by: TaskKey,
    /// The attempt that asks.
    pub attempt: u32,
    /// A success at this instant or later is reused.
    pub fresh_since: Instant,
}

/// The answer to a task that asks for a shared task.
#[derive(Clone, PartialEq, Debug)]
pub enum Share {
    /// It executes the task, for all who ask meanwhile.
    Own,
    /// It waits for this task, which executes it.
    Wait(TaskKey),
    /// This task succeeded a short while ago; null if it had no output.
    Reuse(TaskKey, Value),
}

/// An unfinished run of a concurrency group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConcurrencyMember {
    /// The id of the run.
    pub run: RunId,
    /// Whether it waits for its turn.
    pub waiting: bool,
}

/// Outbox messages of one transaction that are not yet known to be published.
#[derive(Clone, PartialEq, Debug)]
pub struct Unsent {
    /// The id of the row that holds them.
    pub id: i64,
    /// The messages to publish.
    pub messages: Vec<Message>,
}

/// A run as readers see it.
#[derive(Clone, PartialEq, Debug)]
pub struct RunRecord {
    /// The run's own row.
    pub run: Run,
    /// The facts that it was created with.
    pub facts: Facts,
    /// Its version's number within the workflow.
    pub version_number: i32,
    /// The task that started it; none if no task did, or if its run was deleted.
    pub starter: Option<Starter>,
}

/// The beginning of a JSON value that is too long for a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Excerpt {
    /// The length of the whole value, in bytes of JSON.
    pub bytes: u64,
    /// The first bytes of its JSON.
    pub text: String,
}

/// A run in a list. Long inputs are left out of its facts.
#[derive(Clone, PartialEq, Debug)]
pub struct ListedRun {
    /// The run, with its inputs only if they are short.
    pub record: RunRecord,
    /// The beginning of its inputs, if they are long.
    pub inputs: Option<Excerpt>,
}

/// A task in a list. A long output is left out of its record.
#[derive(Clone, PartialEq, Debug)]
pub struct ListedTask {
    /// The task, with its output only if that is short.
    pub record: TaskRecord,
    /// The beginning of its output, if that is long.
    pub output: Option<Excerpt>,
}

/// A task that started a run, with what its name follows from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Starter {
    /// The version of the run that the task is of.
    pub version: VersionId,
    /// Which child the task is, if it is one of a fan-out.
    pub child: Option<Child>,
}

/// A task as readers see it.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskRecord {
    /// The task's own row.
    pub task: Task,
    /// Its output, if it succeeded with one.
    pub output: Option<Value>,
    /// Its timer, while it waits for one.
    pub timer: Option<Timer>,
    /// The shared task of another run that it waits for.
    pub shared_with: Option<TaskKey>,
}

/// Lines for an attempt's log.
#[derive(Clone, PartialEq, Debug)]
pub struct LogChunk {
    /// The task that writes the log.
    pub key: TaskKey,
    /// The attempt that writes the log.
    pub attempt: u32,
    /// The number of the first line.
    pub first: u32,
    /// The lines, in order.
    pub lines: Vec<LogLine>,
}

/// One line of a log.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct LogLine {
    /// When it was written.
    pub at: Instant,
    /// `stdout`, `stderr`, or `system` for Ebbflow's own lines.
    pub stream: String,
    /// `debug`, `info`, `warning` or `error`.
    pub level: String,
    /// The text, without its end of line.
    pub line: String,
}

/// Everything that is due, and the next due instants.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Agenda {
    /// When the first timer is due, or was.
    pub timer: Option<Instant>,
    /// When the next timer, schedule or backfill is due that is not due yet.
    pub next_timer: Option<Instant>,
    /// When the first schedule is due, or was.
    pub schedule: Option<Instant>,
    /// When the first backfill is due, or was.
    pub backfill: Option<Instant>,
    /// When the first recheck of a run is due, or was.
    pub recheck: Option<Instant>,
    /// When the oldest outbox message that is not marked as sent was written.
    pub unsent: Option<Instant>,
    /// When the first task was granted slots that it has not taken.
    pub granted: Option<Instant>,
    /// When the first pause of a circuit breaker ends, or did.
    pub breaker: Option<Instant>,
    /// Whether a task waits for a slot that is free.
    pub room: bool,
    /// The oldest last heartbeat of a worker; the epoch if a worker that never registered or has left holds an attempt.
    pub worker: Option<Instant>,
    /// When retention is due.
    pub retention: Option<Instant>,
    /// When the first trigger is due, or was.
    pub trigger: Option<Instant>,
    /// Whether a run has not ended, does not only wait, and will not be rechecked. If very many runs only wait, not all are
    /// searched.
    pub neglected: bool,
    /// The log filter that is set for the sweep: an idle tick reads nothing else.
    pub log_filter: Option<String>,
}

/// A timer that is due.
#[derive(Clone, PartialEq, Debug)]
pub struct DueTimer {
    /// The run it belongs to.
    pub run: RunId,
    /// The timer that is due.
    pub timer: Timer,
}

/// A message that can never succeed, kept with the reason.
#[derive(Clone, PartialEq, Debug)]
pub struct DeadLetter {
    /// The bus's id of the message, or one made from its content.
    pub id: String,
    /// The subscription or endpoint at which it arrived.
    pub source: String,
    /// Why it can never succeed.
    pub reason: String,
    /// The body as it came.
    pub body: String,
    /// When it was dead-lettered.
    pub at: Instant,
}

/// Which dead letters to list.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DeadLetterFilter {
    /// Only those of this source.
    pub source: Option<String>,
    /// Only those with this text in their reason or body.
    pub text: Option<String>,
    /// Only those after this one in the list: dead-lettered earlier, or at the same time with a lower id.
    pub after: Option<(Instant, String)>,
    /// The maximum number of them.
    pub limit: u32,
}

impl DeadLetterFilter {
    /// The newest dead letters, at most `limit`.
    pub fn newest(limit: u32) -> Self {
        Self { limit, ..Self::default() }
    }
}
