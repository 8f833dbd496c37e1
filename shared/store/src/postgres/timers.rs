//! Timers to set, and those that are no longer wanted.

use model::{Changes, TaskIndex};
use sqlx::PgConnection;

use super::rows::{column, int};
use super::saves::gather;
use crate::Result;

/// The index of a run's own timers.
const OF_THE_RUN: i32 = -1;

/// Drops the timers that are no longer wanted, then sets the new ones: one that is both dropped and set is set.
pub(super) async fn write(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    delete(connection, changes).await?;
    upsert(connection, changes).await
}

async fn delete(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    let mut rows = gather(changes, |each| each.unset_timers.iter().copied());
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_unstable();
    sqlx::query(
        "delete from timers using unnest($1::uuid[], $2::int[]) as given (run, idx)
          where timers.run = given.run and timers.idx = given.idx",
    )
    .bind(column(&rows, |(run, _)| run.0))
    .bind(column(&rows, |(_, task)| index(*task)))
    .execute(connection)
    .await?;
    Ok(())
}

async fn upsert(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    let mut rows = gather(changes, |each| each.timers.iter());
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|(run, timer)| (*run, timer.task, timer.kind));
    sqlx::query(include_str!("../../queries/upsert_timers.sql"))
        .bind(column(&rows, |(run, _)| run.0))
        .bind(column(&rows, |(_, timer)| index(timer.task)))
        .bind(column(&rows, |(_, timer)| int(timer.attempt)))
        .bind(column(&rows, |(_, timer)| timer.kind.name()))
        .bind(column(&rows, |(_, timer)| timer.wake_at))
        .execute(connection)
        .await?;
    Ok(())
}

/// Whose timer it is, as the column holds it.
fn index(task: Option<TaskIndex>) -> i32 {
    task.map_or(OF_THE_RUN, |task| int(task.0))
}

/// Whose timer it is, as the column told.
pub(super) fn owner(index: i32) -> Option<TaskIndex> {
    u32::try_from(index).ok().map(TaskIndex)
}
