//! The columns of tables that are written in more than one way or many at a time, each named once. Statements, select lists and binds follow from these lists, so nobody
//! counts parameters. A new column of runs is a line in the list and one in [`run`], beside the migration and the model.

use model::change::Recheck;
use model::{
    AttemptRecord, Changes, Instant, Parent, Run, RunId, Task, TaskIndex, TaskKey, TenantId, Timer, VersionId,
};
use sqlx::Row;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use uuid::Uuid;

use super::rows::{column, fan_numbers, int, json};
use super::{rows, timers};
use crate::{Facts, Result, normal};

/// A statement with its parameters.
pub(super) type Bound = Query<'static, sqlx::Postgres, PgArguments>;

/// A column, and the parameter that its values come from.
pub(super) struct Column<R: 'static> {
    name: &'static str,
    /// The type of a value as it is bound, and what it is cast to where the column has another one: the driver's own JSON
    /// parameters are `jsonb`, and arrays of arrays cannot be unnested by the row.
    kind: &'static str,
    cast: &'static str,
    update: Update,
    bind: fn(Bound, &[&R]) -> Bound,
}

/// The treatment of a column in an update.
#[derive(Clone, Copy, PartialEq)]
enum Update {
    /// It is never updated afterwards.
    Never,
    /// It is a parameter that the statement uses otherwise: a key, a revision.
    Given,
    /// It is set to the value given.
    Set,
    /// It is a parameter, and the table has no such column.
    Extra,
}

macro_rules! columns {
    ($($update:ident $name:literal $kind:literal $($cast:literal)? = $value:expr;)*) => {
        &[$(Column {
            name: $name,
            kind: $kind,
            cast: concat!($($cast)?),
            update: Update::$update,
            bind: |query, rows| query.bind(column(rows, $value)),
        }),*]
    };
}

mod scheduling;

pub(super) use scheduling::{BACKFILLS, SCHEDULES, SLOT_WAITERS};

/// A run as it is written.
pub(super) struct RunRow {
    pub(super) run: Run,
    recheck: Recheck,
    logical_date: Option<Instant>,
    schedule: String,
}

impl RunRow {
    /// The row of a new run.
    pub(super) fn new(changes: &Changes, facts: &Facts) -> Self {
        let schedule = normal::schedule_of(facts).into_owned();
        Self { logical_date: facts.logical_date, schedule, ..Self::changed(changes) }
    }

    /// The row of a run that changes, without the columns that never do.
    pub(super) fn changed(changes: &Changes) -> Self {
        let (run, recheck) = (normal::run(&changes.run), normal::recheck(changes));
        Self { run, recheck, logical_date: None, schedule: String::new() }
    }

    fn recheck_at(&self) -> Option<Instant> {
        match self.recheck {
            Recheck::At(instant) | Recheck::By(instant) => Some(instant),
            Recheck::Keep | Recheck::Never => None,
        }
    }
}

pub(super) const RUNS: &[Column<RunRow>] = columns! {
    Given "id" "uuid" = |row| row.run.id.0;
    Never "tenant" "int" = |row| row.run.tenant.0;
    Never "workflow" "text" = |row| row.run.workflow.clone();
    Never "version" "bigint" = |row| row.run.version.0;
    Set "state" "text" = |row| row.run.state.name();
    Given "revision" "int" = |row| row.run.revision;
    Set "counts" "text" "::int[]" = |row| array(&row.run.counts.to_array());
    Set "failures" "int" = |row| int(row.run.failures);
    Set "events" "bigint" = |row| row.run.events;
    Never "created_at" "timestamptz" = |row| row.run.created_at;
    Set "started_at" "timestamptz" = |row| row.run.started_at;
    Set "finished_at" "timestamptz" = |row| row.run.finished_at;
    Set "error" "text" = |row| row.run.error.clone();
    Given "recheck_at" "timestamptz" = |row| row.recheck_at();
    Extra "keep_recheck" "boolean" = |row| matches!(row.recheck, Recheck::Keep | Recheck::By(_));
    Never "logical_date" "timestamptz" = |row| row.logical_date;
    Never "schedule" "text" = |row| row.schedule.clone();
    Never "parent_run" "uuid" = |row| row.run.parent.map(|parent| parent.key.run.0);
    Never "parent_idx" "int" = |row| row.run.parent.map(|parent| int(parent.key.task.0));
    Never "parent_attempt" "int" = |row| row.run.parent.map(|parent| int(parent.attempt));
    Never "parent_waits" "boolean" = |row| row.run.parent.map(|parent| parent.waits);
    Never "depth" "int" = |row| int(row.run.depth);
    Never "concurrency_group" "text" = |row| row.run.concurrency_group.clone();
    Set "waiting" "boolean" = |row| row.run.waiting;
    Never "priority" "int" = |row| row.run.priority;
};

/// A run as it is read.
pub(super) fn run(row: &PgRow) -> Result<Run> {
    Ok(Run {
        id: RunId(row.try_get("id")?),
        tenant: TenantId(row.try_get("tenant")?),
        workflow: row.try_get("workflow")?,
        version: VersionId(row.try_get("version")?),
        state: rows::run_state(row)?,
        revision: row.try_get("revision")?,
        counts: rows::counts(row)?,
        failures: rows::number(row, "failures")?,
        events: row.try_get("events")?,
        created_at: row.try_get("created_at")?,
        started_at: row.try_get("started_at")?,
        finished_at: row.try_get("finished_at")?,
        error: row.try_get("error")?,
        parent: parent(row)?,
        depth: rows::number(row, "depth")?,
        concurrency_group: row.try_get("concurrency_group")?,
        waiting: row.try_get("waiting")?,
        priority: row.try_get("priority")?,
    })
}

/// The task that started a run. How deep the run is follows from it and is kept once.
fn parent(row: &PgRow) -> Result<Option<Parent>> {
    let Some(run) = row.try_get::<Option<Uuid>, _>("parent_run")? else { return Ok(None) };
    Ok(Some(Parent {
        key: TaskKey { run: RunId(run), task: TaskIndex(rows::number(row, "parent_idx")?) },
        attempt: rows::number(row, "parent_attempt")?,
        waits: row.try_get("parent_waits")?,
        depth: rows::number(row, "depth")?,
    }))
}

pub(super) const FACTS: &[Column<(RunId, Facts)>] = columns! {
    Never "run" "uuid" = |(run, _)| run.0;
    Never "inputs" "text" "::json" = |(_, facts)| json(&facts.inputs);
    Never "labels" "text" "::json" = |(_, facts)| json(&facts.labels);
    Never "trigger_kind" "text" = |(_, facts)| facts.trigger_kind.clone();
    Never "trigger_by" "text" = |(_, facts)| facts.trigger_by.clone();
    Never "schedule" "text" =
        |(_, facts)| facts.planned.as_ref().map(|planned| normal::text(&planned.schedule).into_owned());
    Never "interval_start" "timestamptz" = |(_, facts)| facts.planned.as_ref().map(|planned| planned.interval.start);
    Never "interval_end" "timestamptz" = |(_, facts)| facts.planned.as_ref().map(|planned| planned.interval.end);
};

/// A task as it is written.
pub(super) struct TaskRow {
    pub(super) run: RunId,
    pub(super) tenant: i32,
    pub(super) task: Task,
}

pub(super) const TASKS: &[Column<TaskRow>] = columns! {
    Given "run" "uuid" = |row| row.run.0;
    Given "idx" "int" = |row| int(row.task.index.0);
    Never "tenant" "int" = |row| row.tenant;
    Set "state" "text" = |row| row.task.state.name();
    Set "attempt" "int" = |row| int(row.task.attempt);
    Given "revision" "int" = |row| row.task.revision;
    Set "parents_done" "int" = |row| int(row.task.parents.done);
    Set "parents_succeeded" "int" = |row| int(row.task.parents.succeeded);
    Set "parents_failed" "int" = |row| int(row.task.parents.failed);
    Set "parents_skipped" "int" = |row| int(row.task.parents.skipped);
    Set "worker" "uuid" = |row| row.task.worker.map(|worker| worker.0);
    Set "since" "timestamptz" = |row| row.task.since;
    Set "started_at" "timestamptz" = |row| row.task.started_at;
    Set "finished_at" "timestamptz" = |row| row.task.finished_at;
    Set "failure" "text" "::json" = |row| row.task.failure.as_ref().map(json);
    Set "child_of" "int" = |row| row.task.child.map(|child| int(child.of.0));
    Set "item" "int" = |row| row.task.child.map(|child| int(child.item));
    Set "fan" "text" "::int[]" = |row| row.task.fan.map(|fan| array(&fan_numbers(fan)));
    Set "begun_at" "timestamptz" = |row| row.task.begun_at;
    Set "handed_back" "int" = |row| int(row.task.handed_back);
    Set "voided" "int" = |row| int(row.task.voided);
};

/// One row per run and write, however many events it has.
pub(super) const EVENTS: &[Column<Changes>] = columns! {
    Never "run" "uuid" = |each| each.run.id.0;
    Never "run_at" "timestamptz" = |each| each.run.created_at;
    Never "seq" "bigint" = |each| normal::first_event(each);
    Never "count" "int" = |each| each.events.len() as i32;
    Never "events" "text" "::json" = |each| json(&each.events);
};

pub(super) const ATTEMPTS: &[Column<(RunId, AttemptRecord)>] = columns! {
    Given "run" "uuid" = |(run, _)| run.0;
    Given "idx" "int" = |(_, over)| int(over.task.0);
    Given "attempt" "int" = |(_, over)| int(over.attempt);
    Set "state" "text" = |(_, over)| over.state.name();
    Set "worker" "uuid" = |(_, over)| over.worker.map(|worker| worker.0);
    Set "started_at" "timestamptz" = |(_, over)| over.started_at;
    Set "finished_at" "timestamptz" = |(_, over)| over.finished_at;
    Set "failure" "text" "::json" = |(_, over)| over.failure.as_ref().map(json);
    Set "decision" "text" = |(_, over)| over.decision.clone();
    Set "next_attempt_at" "timestamptz" = |(_, over)| over.next_attempt_at;
};

pub(super) const TIMERS: &[Column<(RunId, Timer)>] = columns! {
    Given "run" "uuid" = |(run, _)| run.0;
    Given "idx" "int" = |(_, timer)| timers::index(timer.task);
    Given "kind" "text" = |(_, timer)| timer.kind.name();
    Set "attempt" "int" = |(_, timer)| int(timer.attempt);
    Set "wake_at" "timestamptz" = |(_, timer)| timer.wake_at;
};

/// An array as Postgres writes it in text.
pub(super) fn array(numbers: &[impl ToString]) -> String {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    format!("{{{}}}", numbers.join(","))
}

/// The parameters of a statement, numbered in the order in which they are bound.
#[derive(Default)]
pub(super) struct Parameters(usize);

impl Parameters {
    /// The rows of an insert, with the columns that they fill.
    pub(super) fn rows<R>(&mut self, columns: &[Column<R>]) -> String {
        let values = list(stored(columns), |column| format!("given.{}{}", column.name, column.cast));
        format!("({}) select {values} from {}", names(columns), self.given(stored(columns)))
    }

    /// The rows that an update is given.
    pub(super) fn changes<R>(&mut self, columns: &[Column<R>]) -> String {
        self.given(given(columns))
    }

    fn given<'a, R: 'static>(&mut self, columns: impl Iterator<Item = &'a Column<R>> + Clone) -> String {
        let first = self.0 + 1;
        self.0 += columns.clone().count();
        let parameter = |(number, column): (usize, &Column<R>)| format!("${number}::{}[]", column.kind);
        let parameters: Vec<String> = (first..).zip(columns.clone()).map(parameter).collect();
        format!("unnest({}) as given ({})", parameters.join(", "), list(columns, |column| column.name.into()))
    }
}

/// The columns of a select list.
pub(super) fn names<R>(columns: &[Column<R>]) -> String {
    list(stored(columns), |column| column.name.into())
}

/// The same, of a table that is joined with others.
pub(super) fn names_in<R>(table: &str, columns: &[Column<R>]) -> String {
    list(stored(columns), |column| format!("{table}.{}", column.name))
}

/// The assignments of an update, from the rows that it is given.
pub(super) fn assignments<R>(columns: &[Column<R>]) -> String {
    list(set(columns), |column| format!("{} = given.{}{}", column.name, column.name, column.cast))
}

/// The assignments of an insert where the row exists.
pub(super) fn replacements<R>(columns: &[Column<R>]) -> String {
    list(set(columns), |column| format!("{} = excluded.{}", column.name, column.name))
}

fn stored<R>(columns: &[Column<R>]) -> impl Iterator<Item = &Column<R>> + Clone {
    columns.iter().filter(|column| column.update != Update::Extra)
}

fn given<R>(columns: &[Column<R>]) -> impl Iterator<Item = &Column<R>> + Clone {
    columns.iter().filter(|column| column.update != Update::Never)
}

fn set<R>(columns: &[Column<R>]) -> impl Iterator<Item = &Column<R>> {
    columns.iter().filter(|column| column.update == Update::Set)
}

fn list<'a, R: 'static>(
    columns: impl IntoIterator<Item = &'a Column<R>>,
    part: impl Fn(&Column<R>) -> String,
) -> String {
    columns.into_iter().map(part).collect::<Vec<_>>().join(", ")
}

/// Binds the rows of an insert.
pub(super) fn bind_rows<'a, R>(
    query: Bound,
    columns: &[Column<R>],
    rows: impl IntoIterator<Item = &'a R>,
) -> Bound {
    let rows: Vec<&R> = rows.into_iter().collect();
    stored(columns).fold(query, |query, column| (column.bind)(query, &rows))
}

/// Binds the rows that an update is given.
pub(super) fn bind_changes<'a, R>(
    query: Bound,
    columns: &[Column<R>],
    rows: impl IntoIterator<Item = &'a R>,
) -> Bound {
    let rows: Vec<&R> = rows.into_iter().collect();
    given(columns).fold(query, |query, column| (column.bind)(query, &rows))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sqlx::{Connection, PgConnection};

    use super::*;
    use crate::Postgres;

    fn listed<R>(columns: &'static [Column<R>]) -> BTreeSet<String> {
        stored(columns).map(|column| column.name.to_owned()).collect()
    }

    /// A column that is missing in its list is neither written nor read, and its default may hide that.
    #[tokio::test]
    async fn every_column_of_a_table_is_in_its_list() {
        let database = testkit::migrated(Postgres::migrate).await;
        let mut connection = PgConnection::connect(&database.url).await.unwrap();
        let query = "select column_name::text from information_schema.columns \
                     where table_schema = 'public' and table_name = $1 and is_generated = 'NEVER'";
        for (table, listed) in [
            ("runs", listed(RUNS)),
            ("run_facts", listed(FACTS)),
            ("tasks", listed(TASKS)),
            ("attempts", listed(ATTEMPTS)),
            ("timers", listed(TIMERS)),
            ("schedules", listed(SCHEDULES)),
            ("backfills", listed(BACKFILLS)),
            ("slot_waiters", listed(SLOT_WAITERS)),
        ] {
            let stored: Vec<String> =
                sqlx::query_scalar(query).bind(table).fetch_all(&mut connection).await.unwrap();
            assert_eq!(BTreeSet::from_iter(stored), listed, "the columns of `{table}` and their list");
        }
    }
}
