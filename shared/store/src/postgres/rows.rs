//! Rows to model and back: the only place where states and numbers change their form.

use model::task::Tally;
use model::{
    AttemptRecord, BackfillId, Child, Counts, Done, Failure, Fan, Interval, Planned, Progress, RunId,
    RunState, Task, TaskIndex, TaskKey, TaskState, TenantId, Timer, TimerKind, VersionId, WorkerCommand,
    WorkerCommandKind, WorkerId,
};
use serde::Serialize;
use serde_json::Value;
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use uuid::Uuid;

use super::{columns, timers};

pub use super::timers::index as timer_index;
use crate::{
    Claim, DeadLetter, DueTimer, Error, Excerpt, Facts, Pause, Result, RunRecord, Starter, TaskRecord,
    VersionRecord, WorkflowRecord,
};

/// One column of many rows, to be unnested.
pub(super) fn column<R, C>(rows: &[R], value: impl Fn(&R) -> C) -> Vec<C> {
    rows.iter().map(value).collect()
}

/// A number as a column holds it. One that is too big turns negative, which the schema refuses.
pub fn int(number: u32) -> i32 {
    number as i32
}

/// A backfill as wait queues hold it: nil for live tasks, since it is part of keys.
pub(super) fn backfill_or_nil(backfill: Option<BackfillId>) -> Uuid {
    backfill.map_or(Uuid::nil(), |backfill| backfill.0)
}

/// JSON as text. It is bound as text and cast: the driver's own JSON parameters are `jsonb`, which cannot
/// hold all that JSON can say.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("what is stored as JSON has string keys only")
}

pub(super) fn run_record(row: &PgRow) -> Result<RunRecord> {
    Ok(RunRecord {
        run: columns::run(row)?,
        facts: facts(row)?,
        version_number: row.try_get("number")?,
        starter: starter(row)?,
    })
}

/// The beginning of a value that is too long for a list; none for a value that is listed whole. The columns `head` and
/// `bytes` say what the statement left out.
pub(super) fn excerpt(row: &PgRow, bytes: &str, head: &str) -> Result<Option<Excerpt>> {
    let Some(bytes) = row.try_get::<Option<i32>, _>(bytes)? else { return Ok(None) };
    Ok(Some(Excerpt { bytes: u64::try_from(bytes).unwrap_or_default(), text: row.try_get(head)? }))
}

fn starter(row: &PgRow) -> Result<Option<Starter>> {
    let Some(version) = row.try_get("parent_version")? else { return Ok(None) };
    let of = maybe(row, "starter_child_of")?.map(TaskIndex);
    let child = of.zip(maybe(row, "starter_item")?).map(|(of, item)| Child { of, item });
    Ok(Some(Starter { version: VersionId(version), child }))
}

pub(super) fn facts(row: &PgRow) -> Result<Facts> {
    Ok(Facts {
        inputs: row.try_get::<Json<_>, _>("inputs")?.0,
        labels: row.try_get::<Json<_>, _>("labels")?.0,
        trigger_kind: row.try_get("trigger_kind")?,
        trigger_by: row.try_get("trigger_by")?,
        logical_date: row.try_get("logical_date")?,
        planned: planned(row)?,
    })
}

fn planned(row: &PgRow) -> Result<Option<Planned>> {
    let Some(schedule) = row.try_get("planned_schedule")? else { return Ok(None) };
    let interval = Interval { start: row.try_get("interval_start")?, end: row.try_get("interval_end")? };
    Ok(Some(Planned { schedule, interval }))
}

/// The progress that an attempt reported.
pub fn progress(row: &PgRow) -> Result<Progress> {
    let done = match row.try_get("fraction")? {
        Some(fraction) => Some(Done { fraction, message: row.try_get("message")? }),
        None => None,
    };
    Ok(Progress {
        attempt: number(row, "attempt")?,
        at: row.try_get("at")?,
        done,
        phase: row.try_get("phase")?,
        metrics: row.try_get::<Json<_>, _>("metrics")?.0,
    })
}

/// A task and the run that it is of.
pub fn task(row: &PgRow) -> Result<(RunId, Task)> {
    let parents = Tally {
        done: number(row, "parents_done")?,
        succeeded: number(row, "parents_succeeded")?,
        failed: number(row, "parents_failed")?,
        skipped: number(row, "parents_skipped")?,
    };
    let task = Task {
        index: TaskIndex(number(row, "idx")?),
        state: task_state(row)?,
        attempt: number(row, "attempt")?,
        handed_back: number(row, "handed_back")?,
        voided: number(row, "voided")?,
        revision: row.try_get("revision")?,
        parents,
        child: child(row)?,
        fan: fan(row)?,
        worker: worker(row)?,
        since: row.try_get("since")?,
        begun_at: row.try_get("begun_at")?,
        started_at: row.try_get("started_at")?,
        finished_at: row.try_get("finished_at")?,
        failure: failure(row)?,
    };
    Ok((RunId(row.try_get("run")?), task))
}

pub(super) fn task_record(row: &PgRow) -> Result<TaskRecord> {
    let (_, task) = task(row)?;
    let timer = match row.try_get::<Option<String>, _>("timer_kind")? {
        Some(kind) => Some(Timer {
            task: Some(task.index),
            attempt: number(row, "timer_attempt")?,
            kind: timer_kind(&kind)?,
            wake_at: row.try_get("wake_at")?,
        }),
        None => None,
    };
    let owner = row.try_get::<Option<Uuid>, _>("owner_run")?.map(RunId);
    let shared_with =
        owner.zip(maybe(row, "owner_idx")?).map(|(run, task)| TaskKey { run, task: TaskIndex(task) });
    Ok(TaskRecord { task, output: output(row)?, timer, shared_with })
}

pub(super) fn output(row: &PgRow) -> Result<Option<Value>> {
    Ok(row.try_get::<Option<Json<_>>, _>("output")?.map(|output| output.0))
}

pub(super) fn attempt(row: &PgRow) -> Result<AttemptRecord> {
    Ok(AttemptRecord {
        task: TaskIndex(number(row, "idx")?),
        attempt: number(row, "attempt")?,
        state: task_state(row)?,
        worker: worker(row)?,
        started_at: row.try_get("started_at")?,
        finished_at: row.try_get("finished_at")?,
        failure: failure(row)?,
        decision: row.try_get("decision")?,
        next_attempt_at: row.try_get("next_attempt_at")?,
    })
}

/// A timer and the run that it belongs to.
pub fn due_timer(row: &PgRow) -> Result<DueTimer> {
    let timer = Timer {
        task: timers::owner(row.try_get("idx")?),
        attempt: number(row, "attempt")?,
        kind: timer_kind(row.try_get("kind")?)?,
        wake_at: row.try_get("wake_at")?,
    };
    Ok(DueTimer { run: RunId(row.try_get("run")?), timer })
}

pub(super) fn key(row: &PgRow) -> Result<TaskKey> {
    Ok(TaskKey { run: RunId(row.try_get("run")?), task: TaskIndex(number(row, "idx")?) })
}

/// An attempt that a worker holds.
pub fn held(row: &PgRow) -> Result<Claim> {
    Ok(Claim { key: key(row)?, attempt: number(row, "attempt")?, worker: WorkerId(row.try_get("worker")?) })
}

/// A version of a workflow.
pub fn version(row: &PgRow) -> Result<VersionRecord> {
    Ok(VersionRecord {
        id: VersionId(row.try_get("id")?),
        tenant: TenantId(row.try_get("tenant")?),
        number: row.try_get("number")?,
        hash: row.try_get("hash")?,
        workflow: row.try_get::<Json<_>, _>("definition").map_err(not_a_definition)?.0,
        source: row.try_get("source")?,
        created_at: row.try_get("created_at")?,
        created_by: row.try_get("created_by")?,
    })
}

/// The error for a value that another version of the program wrote and this one does not understand.
fn not_a_definition(error: sqlx::Error) -> Error {
    match error {
        sqlx::Error::ColumnDecode { source, .. } => {
            Error::Unreadable { what: "definition", why: source.to_string() }
        }
        other => other.into(),
    }
}

/// A workflow with its active version.
pub fn workflow(row: &PgRow) -> Result<WorkflowRecord> {
    Ok(WorkflowRecord {
        tenant: TenantId(row.try_get("tenant")?),
        name: row.try_get("name")?,
        archived: row.try_get("archived")?,
        created_at: row.try_get("workflow_created_at")?,
        updated_at: row.try_get("updated_at")?,
        pause: pause(row)?,
        version: version(row)?,
    })
}

/// Who paused a workflow or a schedule, if somebody did.
pub(super) fn pause(row: &PgRow) -> Result<Option<Pause>> {
    Ok(match row.try_get("paused_at")? {
        Some(at) => Some(Pause { at, by: row.try_get("paused_by")?, reason: row.try_get("pause_reason")? }),
        None => None,
    })
}

pub(super) fn dead_letter(row: &PgRow) -> Result<DeadLetter> {
    Ok(DeadLetter {
        id: row.try_get("id")?,
        source: row.try_get("source")?,
        reason: row.try_get("reason")?,
        body: row.try_get("body")?,
        at: row.try_get("at")?,
    })
}

/// A number that is never negative.
pub fn number(row: &PgRow, column: &'static str) -> Result<u32> {
    unsigned(row.try_get(column)?, column)
}

fn maybe(row: &PgRow, column: &'static str) -> Result<Option<u32>> {
    row.try_get::<Option<i32>, _>(column)?.map(|number| unsigned(number, column)).transpose()
}

fn unsigned(number: i32, what: &'static str) -> Result<u32> {
    u32::try_from(number).map_err(|error| Error::Unreadable { what, why: error.to_string() })
}

pub(super) fn counts(row: &PgRow) -> Result<Counts> {
    numbers(row.try_get("counts")?, "counts").map(Counts::from_array)
}

/// The place of a task in its fan-out, if it is a child of one.
pub fn child(row: &PgRow) -> Result<Option<Child>> {
    let Some(of) = row.try_get::<Option<i32>, _>("child_of")? else { return Ok(None) };
    Ok(Some(Child { of: TaskIndex(unsigned(of, "child_of")?), item: number(row, "item")? }))
}

fn fan(row: &PgRow) -> Result<Option<Fan>> {
    let Some(stored) = row.try_get("fan")? else { return Ok(None) };
    let [first, total, released, done, succeeded, failed, skipped] = numbers(stored, "fan")?;
    let ended = Tally { done, succeeded, failed, skipped };
    Ok(Some(Fan { first: TaskIndex(first), total, released, ended }))
}

/// How far a fan-out has come, in the order in which the column holds it.
pub(super) fn fan_numbers(fan: Fan) -> [u32; 7] {
    let Tally { done, succeeded, failed, skipped } = fan.ended;
    [fan.first.0, fan.total, fan.released, done, succeeded, failed, skipped]
}

/// As many numbers as are wanted.
pub(super) fn numbers<const N: usize>(stored: Vec<i32>, what: &'static str) -> Result<[u32; N]> {
    let numbers: Vec<u32> = stored.into_iter().map(|number| unsigned(number, what)).collect::<Result<_>>()?;
    numbers.try_into().map_err(|numbers: Vec<u32>| Error::Unreadable {
        what,
        why: format!("{} numbers instead of {N}", numbers.len()),
    })
}

fn worker(row: &PgRow) -> Result<Option<WorkerId>> {
    Ok(row.try_get::<Option<Uuid>, _>("worker")?.map(WorkerId))
}

fn failure(row: &PgRow) -> Result<Option<Failure>> {
    Ok(row.try_get::<Option<Json<_>>, _>("failure")?.map(|failure| failure.0))
}

/// The state of a run.
pub fn run_state(row: &PgRow) -> Result<RunState> {
    let name = row.try_get("state")?;
    RunState::named(name).ok_or_else(|| unknown("run state", name))
}

/// The state of a task.
pub fn task_state(row: &PgRow) -> Result<TaskState> {
    let name = row.try_get("state")?;
    TaskState::named(name).ok_or_else(|| unknown("task state", name))
}

fn timer_kind(name: &str) -> Result<TimerKind> {
    TimerKind::named(name).ok_or_else(|| unknown("kind of timer", name))
}

fn unknown(what: &'static str, name: &str) -> Error {
    Error::Unreadable { what, why: format!("`{name}` is not known to this version; a newer one wrote it") }
}

/// The attempt that a worker holds, in a row that may have none.
pub fn held_if_any(row: &PgRow) -> Result<Option<Claim>> {
    row.try_get::<Option<Uuid>, _>("run")?.map(|_| held(row)).transpose()
}

/// The command that a worker was given, if it was given one.
pub fn worker_command(row: &PgRow) -> Result<Option<WorkerCommand>> {
    let Some(kind) = row.try_get::<Option<&str>, _>("command")? else { return Ok(None) };
    Ok(Some(WorkerCommand {
        kind: WorkerCommandKind::named(kind).ok_or_else(|| unknown("worker command", kind))?,
        actor: row.try_get("commanded_by")?,
        reason: row.try_get("command_reason")?,
        at: row.try_get("commanded_at")?,
    }))
}
