//! Writing what decisions changed: one statement for what nearly all of them change, and one for each other table that
//! anything is written to, since each costs a round trip. Rows are sorted by key, so that concurrent writers meet in the same order.

use model::{Changes, RunId, Task};
use sqlx::{PgConnection, Row};

use super::columns::{ATTEMPTS, EVENTS, RUNS, RunRow, TASKS, TaskRow, bind_changes, bind_rows};
use super::rows::{column, int, json};
use super::statements::{INSERT_TASKS, UPDATE_RUNS_AND_TASKS, UPSERT_ATTEMPTS};
use super::{items, offers, shares, signals, timers};
use crate::{Error, Result, normal};

/// Writes changed runs and tasks over the revisions they were read at, and what comes with them.
pub(super) async fn save(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    update(connection, changes).await?;
    let children = task_rows(changes, |each| each.new_tasks.iter());
    if !children.is_empty() {
        let insert = bind_rows(sqlx::query(INSERT_TASKS.as_str()), TASKS, &children);
        insert.execute(&mut *connection).await?;
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
    offers::write(connection, changes).await?;
    shares::write(connection, changes).await
}

async fn update(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    let mut runs: Vec<RunRow> = changes.iter().map(RunRow::changed).collect();
    runs.sort_by_key(|row| row.run.id);
    let tasks = task_rows(changes, |each| each.tasks.iter());
    let update = bind_changes(sqlx::query(UPDATE_RUNS_AND_TASKS.as_str()), RUNS, &runs);
    let update = bind_rows(bind_changes(update, TASKS, &tasks), EVENTS, event_rows(changes));
    let written = update.fetch_one(connection).await?;
    let count = |name| Ok::<_, Error>(written.try_get::<i64, _>(name)? as usize);
    let all = count("runs")? == runs.len() && count("tasks")? == tasks.len();
    if all { Ok(()) } else { Err(Error::Conflict) }
}

/// Tasks to write, by key.
pub(super) fn task_rows<'a, I>(changes: &'a [Changes], tasks: impl Fn(&'a Changes) -> I) -> Vec<TaskRow>
where
    I: Iterator<Item = &'a Task>,
{
    let row = |each: &Changes, task| TaskRow { run: each.run.id, tenant: each.run.tenant.0, task };
    let of_run = |each: &'a Changes| tasks(each).map(move |task| row(each, normal::task(task)));
    let mut rows: Vec<TaskRow> = changes.iter().flat_map(of_run).collect();
    rows.sort_by_key(|row| (row.run, row.task.index));
    rows
}

/// Events to write, by run.
pub(super) fn event_rows(changes: &[Changes]) -> Vec<&Changes> {
    let mut rows: Vec<&Changes> = changes.iter().filter(|each| !each.events.is_empty()).collect();
    rows.sort_by_key(|each| each.run.id);
    rows
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
    bind_rows(sqlx::query(UPSERT_ATTEMPTS.as_str()), ATTEMPTS, &rows).execute(connection).await?;
    Ok(())
}

/// The rows of one kind of all changes, each with its run.
pub(super) fn gather<'a, T, I>(changes: &'a [Changes], rows: impl Fn(&'a Changes) -> I) -> Vec<(RunId, T)>
where
    I: Iterator<Item = T>,
{
    changes.iter().flat_map(|each| rows(each).map(|row| (each.run.id, row))).collect()
}
