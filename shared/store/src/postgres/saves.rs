//! Writing what decisions changed: one statement for what nearly all of them change, and one for each other table that
//! anything is written to, since each costs a round trip. Rows are sorted by key, so that concurrent writers meet in the same order.

use std::collections::BTreeMap;

use model::change::Checkup;
use model::{Changes, Run, RunId, Task};
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgConnection, Row};

use super::rows::{column, fan_numbers, int, json};
use super::{items, shares, signals, timers};
use crate::{Error, Result, normal};

/// A statement with what is bound to it.
pub(super) type Bound = Query<'static, sqlx::Postgres, PgArguments>;

/// Writes changed runs and tasks over the revisions they were read at, and what comes with them.
pub(super) async fn save(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    update(connection, changes).await?;
    let children = rows_of(changes, |each| each.new_tasks.iter());
    if !children.is_empty() {
        let insert = sqlx::query(include_str!("../../queries/insert_tasks.sql"));
        bind_new_tasks(insert, changes, &children).execute(&mut *connection).await?;
    }
    append(connection, changes).await
}

/// Writes all that only some changes come with.
pub(super) async fn append(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    withdraw_outputs(connection, changes).await?;
    insert_outputs(connection, changes).await?;
    upsert_attempts(connection, changes).await?;
    items::insert(connection, changes).await?;
    timers::write(connection, changes).await?;
    signals::write(connection, changes).await?;
    shares::write(connection, changes).await
}

async fn update(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    let tasks = rows_of(changes, |each| each.tasks.iter());
    let update = sqlx::query(include_str!("../../queries/update_runs_and_tasks.sql"));
    let update = bind_events(bind_tasks(bind_runs(update, changes), &tasks), changes);
    let written = update.fetch_one(connection).await?;
    let count = |name| Ok::<_, Error>(written.try_get::<i64, _>(name)? as usize);
    let all = count("runs")? == changes.len() && count("tasks")? == tasks.len();
    if all { Ok(()) } else { Err(Error::Conflict) }
}

/// Binds the tasks of new runs, and the children that are born with them.
pub(super) fn bind_all_tasks(query: Bound, changes: &[Changes]) -> Bound {
    let rows = rows_of(changes, |each| each.tasks.iter().chain(&each.new_tasks));
    bind_new_tasks(query, changes, &rows)
}

fn bind_new_tasks(query: Bound, changes: &[Changes], rows: &[(RunId, Task)]) -> Bound {
    let tenants: BTreeMap<RunId, i32> = changes.iter().map(|each| (each.run.id, each.run.tenant.0)).collect();
    bind_tasks(query, rows).bind(column(rows, |(run, _)| tenants[run]))
}

fn rows_of<'a, I>(changes: &'a [Changes], tasks: impl Fn(&'a Changes) -> I) -> Vec<(RunId, Task)>
where
    I: Iterator<Item = &'a Task>,
{
    let mut rows = gather(changes, |each| tasks(each).map(normal::task));
    rows.sort_by_key(|(run, task)| (*run, task.index));
    rows
}

fn bind_tasks(query: Bound, rows: &[(RunId, Task)]) -> Bound {
    query
        .bind(column(rows, |(run, _)| run.0))
        .bind(column(rows, |(_, task)| int(task.index.0)))
        .bind(column(rows, |(_, task)| task.state.name()))
        .bind(column(rows, |(_, task)| int(task.attempt)))
        .bind(column(rows, |(_, task)| task.revision))
        .bind(column(rows, |(_, task)| int(task.parents.done)))
        .bind(column(rows, |(_, task)| int(task.parents.succeeded)))
        .bind(column(rows, |(_, task)| int(task.parents.failed)))
        .bind(column(rows, |(_, task)| int(task.parents.skipped)))
        .bind(column(rows, |(_, task)| task.worker.map(|worker| worker.0)))
        .bind(column(rows, |(_, task)| task.since))
        .bind(column(rows, |(_, task)| task.started_at))
        .bind(column(rows, |(_, task)| task.finished_at))
        .bind(column(rows, |(_, task)| task.failure.as_ref().map(json)))
        .bind(column(rows, |(_, task)| task.child.map(|child| int(child.of.0))))
        .bind(column(rows, |(_, task)| task.child.map(|child| int(child.item))))
        .bind(column(rows, |(_, task)| task.fan.map(|fan| array(&fan_numbers(fan)))))
        .bind(column(rows, |(_, task)| task.begun_at))
        .bind(column(rows, |(_, task)| int(task.handed_back)))
        .bind(column(rows, |(_, task)| int(task.voided)))
}

fn bind_runs(query: Bound, changes: &[Changes]) -> Bound {
    let mut rows: Vec<(Run, Checkup)> =
        changes.iter().map(|each| (normal::run(&each.run), normal::checkup(each))).collect();
    rows.sort_by_key(|(run, _)| run.id);
    query
        .bind(column(&rows, |(run, _)| run.id.0))
        .bind(column(&rows, |(run, _)| run.revision))
        .bind(column(&rows, |(run, _)| run.state.name()))
        .bind(column(&rows, |(run, _)| array(&run.counts.to_array())))
        .bind(column(&rows, |(run, _)| int(run.failures)))
        .bind(column(&rows, |(run, _)| run.events))
        .bind(column(&rows, |(run, _)| run.started_at))
        .bind(column(&rows, |(run, _)| run.finished_at))
        .bind(column(&rows, |(run, _)| run.error.clone()))
        .bind(column(&rows, |(_, checkup)| matches!(checkup, Checkup::Keep | Checkup::By(_))))
        .bind(column(&rows, |(_, checkup)| match checkup {
            Checkup::At(instant) | Checkup::By(instant) => Some(*instant),
            Checkup::Keep | Checkup::Never => None,
        }))
        .bind(column(&rows, |(run, _)| run.held))
}

/// An array as Postgres writes it in text: arrays of arrays cannot be unnested by the row.
pub(super) fn array(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    format!("{{{}}}", numbers.join(","))
}

async fn withdraw_outputs(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    let mut rows = gather(changes, |each| each.withdrawn.iter().copied());
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_unstable();
    sqlx::query(
        "delete from outputs using unnest($1::uuid[], $2::int[]) as given (run, idx)
          where outputs.run = given.run and outputs.idx = given.idx",
    )
    .bind(column(&rows, |(run, _)| run.0))
    .bind(column(&rows, |(_, task)| int(task.0)))
    .execute(connection)
    .await?;
    Ok(())
}

async fn insert_outputs(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    let mut rows = gather(changes, |each| each.outputs.iter());
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|(run, (task, _))| (*run, *task));
    sqlx::query(
        "insert into outputs (run, idx, output)
         select run, idx, output::json from unnest($1::uuid[], $2::int[], $3::text[]) as given (run, idx, output)",
    )
    .bind(column(&rows, |(run, _)| run.0))
    .bind(column(&rows, |(_, (task, _))| int(task.0)))
    .bind(column(&rows, |(_, (_, output))| json(output)))
    .execute(connection)
    .await?;
    Ok(())
}

async fn upsert_attempts(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    let mut rows = gather(changes, |each| each.attempts.iter().map(normal::attempt));
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|(run, over)| (*run, over.task, over.attempt));
    sqlx::query(include_str!("../../queries/upsert_attempts.sql"))
        .bind(column(&rows, |(run, _)| run.0))
        .bind(column(&rows, |(_, over)| int(over.task.0)))
        .bind(column(&rows, |(_, over)| int(over.attempt)))
        .bind(column(&rows, |(_, over)| over.state.name()))
        .bind(column(&rows, |(_, over)| over.worker.map(|worker| worker.0)))
        .bind(column(&rows, |(_, over)| over.started_at))
        .bind(column(&rows, |(_, over)| over.finished_at))
        .bind(column(&rows, |(_, over)| over.failure.as_ref().map(json)))
        .bind(column(&rows, |(_, over)| over.decision.clone()))
        .execute(connection)
        .await?;
    Ok(())
}

/// Binds what happened: one row per run, however many events it has.
pub(super) fn bind_events(query: Bound, changes: &[Changes]) -> Bound {
    let mut rows: Vec<&Changes> = changes.iter().filter(|each| !each.events.is_empty()).collect();
    rows.sort_by_key(|each| each.run.id);
    query
        .bind(column(&rows, |each| each.run.id.0))
        .bind(column(&rows, |each| each.run.created_at))
        .bind(column(&rows, |each| normal::first_event(each)))
        .bind(column(&rows, |each| each.events.len() as i32))
        .bind(column(&rows, |each| json(&each.events)))
}

/// The rows of one kind of all changes, each with its run.
pub(super) fn gather<'a, T, I>(changes: &'a [Changes], rows: impl Fn(&'a Changes) -> I) -> Vec<(RunId, T)>
where
    I: Iterator<Item = T>,
{
    changes.iter().flat_map(|each| rows(each).map(|row| (each.run.id, row))).collect()
}
