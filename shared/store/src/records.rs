//! What goes into the store and comes out of it, beside the rows of `model` that decisions are made on.

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

/// What a run was created with. It never changes.
#[derive(Clone, PartialEq, Debug)]
pub struct Facts {
    /// Its inputs, checked and complete.
    pub inputs: Map<String, Value>,
    /// Labels to find it by.
    pub labels: Map<String, Value>,
    /// What caused it: `api`, `message`, `schedule`, …
    pub trigger_kind: String,
    /// Who caused it.
    pub trigger_by: String,
    /// The date it is about, where one was given; unique per workflow and schedule.
    pub logical_date: Option<Instant>,
    /// The schedule whose date it is, if it is one's.
    pub planned: Option<Planned>,
}

/// What templates of a run are rendered from.
#[derive(Clone, PartialEq, Debug)]
pub struct Context {
    /// What the run was created with.
    pub facts: Facts,
    /// Outputs of the tasks asked for, of those that have one.
    pub outputs: BTreeMap<TaskIndex, Value>,
}

/// A run to be created: its facts, and its first rows as a decision left them.
#[derive(Clone, PartialEq, Debug)]
pub struct NewRunRecord {
    /// What it is created with.
    pub facts: Facts,
    /// All its rows; every task of the run is among them.
    pub changes: Changes,
}

/// What became of a run to be created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Created {
    /// It exists now.
    New,
    /// A run of that id exists already; nothing was written.
    Already,
    /// A run of that workflow and logical date exists already; nothing was written.
    DateTaken(RunId),
}

/// Someone who asks for a task that several runs share.
#[derive(Clone, PartialEq, Debug)]
pub struct ShareAsk {
    /// Within whom it is shared.
    pub tenant: TenantId,
    /// The name of the reusable task.
    pub name: String,
    /// What tells its executions apart: the same key, the same work.
    pub key: String,
    /// The task that asks.
    pub by: TaskKey,
    /// Its attempt.
    pub attempt: u32,
    /// A success at this instant or later serves, too.
    pub fresh_since: Instant,
}

/// What becomes of someone who asks for a shared task.
#[derive(Clone, PartialEq, Debug)]
pub enum Share {
    /// It carries the task out, for all who ask meanwhile.
    Own,
    /// It waits for this one, which carries it out.
    Wait(TaskKey),
    /// This one delivered a short while ago; null if it delivered nothing.
    Reuse(TaskKey, Value),
}

/// An unfinished run in a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConcurrencyMember {
    /// The run.
    pub run: RunId,
    /// Whether it waits for its turn.
    pub waiting: bool,
}

/// Outbox messages of one transaction that are not yet known to be published.
#[derive(Clone, PartialEq, Debug)]
pub struct Unsent {
    /// Their row.
    pub id: i64,
    /// What to publish.
    pub messages: Vec<Message>,
}

/// A run as readers see it.
#[derive(Clone, PartialEq, Debug)]
pub struct RunRecord {
    /// The run.
    pub run: Run,
    /// What it was created with.
    pub facts: Facts,
    /// Its version's number within the workflow.
    pub version_number: i32,
    /// The task that started it, as far as its name follows from it; none where no task did, or its run is gone.
    pub starter: Option<Starter>,
}

/// The beginning of a JSON value that is too long for a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Excerpt {
    /// The length of the whole value, in bytes of JSON.
    pub bytes: u64,
    /// How it begins.
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

/// A task that started a run, as far as its name follows from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Starter {
    /// The version of the run that the task is of.
    pub version: VersionId,
    /// The task's place, if it is a child of a fan-out.
    pub child: Option<Child>,
}

/// A task as readers see it.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskRecord {
    /// The task.
    pub task: Task,
    /// Its output, once it succeeded with one.
    pub output: Option<Value>,
    /// Its timer, while it waits for one.
    pub timer: Option<Timer>,
    /// The task of another run that it waits for, which does the same work.
    pub shared_with: Option<TaskKey>,
}

/// Lines for an attempt's log.
#[derive(Clone, PartialEq, Debug)]
pub struct LogChunk {
    /// The task.
    pub key: TaskKey,
    /// The attempt.
    pub attempt: u32,
    /// The first line's number.
    pub first: u32,
    /// The lines.
    pub lines: Vec<LogLine>,
}

/// One line of a log.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct LogLine {
    /// When it was written.
    pub at: Instant,
    /// `stdout`, `stderr`, or `system` for our own.
    pub stream: String,
    /// `debug`, `info`, `warning` or `error`.
    pub level: String,
    /// The text, without its end of line.
    pub line: String,
}

/// What is due and when the next thing will be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Agenda {
    /// When the first timer is due, or was.
    pub timer: Option<Instant>,
    /// When the first timer, schedule or backfill is due that is not due yet.
    pub next_timer: Option<Instant>,
    /// When the first schedule is due, or was.
    pub schedule: Option<Instant>,
    /// When the first backfill should be looked at.
    pub backfill: Option<Instant>,
    /// When the first run should be looked at.
    pub recheck: Option<Instant>,
    /// When the oldest outbox message that is not marked as sent was written.
    pub unsent: Option<Instant>,
    /// When the first of those was granted its slots who have not taken them over.
    pub granted: Option<Instant>,
    /// Whether someone waits for a place that is free.
    pub room: bool,
    /// When the most silent worker was last heard of; the epoch if one holds an attempt that is not
    /// registered, be it that it never was or that it has left.
    pub worker: Option<Instant>,
    /// When someone should look for what has been kept long enough.
    pub retention: Option<Instant>,
    /// When the first trigger is due, or was.
    pub trigger: Option<Instant>,
    /// Whether a run has not ended, does not only wait, and nobody is to look at it. Of very many that only wait, not
    /// all are looked through.
    pub neglected: bool,
}

/// A timer that is due.
#[derive(Clone, PartialEq, Debug)]
pub struct DueTimer {
    /// The run it belongs to.
    pub run: RunId,
    /// The timer.
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
    /// When it was given up on.
    pub at: Instant,
}

/// Which dead letters to list.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DeadLetterFilter {
    /// Only of this source.
    pub source: Option<String>,
    /// Only those with this text in their reason or body.
    pub text: Option<String>,
    /// Only those that come after this one in the list: given up on earlier, or at the same time with a lower id.
    pub after: Option<(Instant, String)>,
    /// At most so many.
    pub limit: u32,
}

impl DeadLetterFilter {
    /// The newest ones, at most so many.
    pub fn newest(limit: u32) -> Self {
        Self { limit, ..Self::default() }
    }
}
