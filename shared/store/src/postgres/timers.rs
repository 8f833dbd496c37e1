//! Timers to set, and those that are no longer wanted.

use async_trait::async_trait;
use model::{Changes, Instant, TaskIndex};
use sqlx::PgConnection;
use uuid::Uuid;

use super::Postgres;
use super::columns::{TIMERS, bind_rows};
use super::rows::{self, column, int};
use super::saves::gather;
use super::statements::UPSERT_TIMERS;
use crate::{DueTimer, Result, Timers};

#[async_trait]
impl Timers for Postgres {
    async fn due_timers(&self, now: Instant, limit: u32) -> Result<Vec<DueTimer>> {
        let found = sqlx::query(
            "select run, idx, attempt, kind, wake_at from timers where wake_at <= $1
              order by wake_at, run, idx, kind limit $2",
        )
        .bind(now)
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await?;
        found.iter().map(rows::due_timer).collect()
    }
}

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
    let mut rows = gather(changes, |each| each.timers.iter().cloned());
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|(run, timer)| (*run, timer.task, timer.kind));
    bind_rows(sqlx::query(UPSERT_TIMERS.as_str()), TIMERS, &rows).execute(connection).await?;
    Ok(())
}

/// The column that says whose timer it is: a task's, or the run's own.
pub fn index(task: Option<TaskIndex>) -> i32 {
    task.map_or(OF_THE_RUN, |task| int(task.0))
}

/// The task that a timer belongs to; none for the run's own.
pub(super) fn owner(index: i32) -> Option<TaskIndex> {
    u32::try_from(index).ok().map(TaskIndex)
}

pub(super) async fn take_due(
    connection: &mut PgConnection,
    now: Instant,
    limit: u32,
) -> Result<Vec<DueTimer>> {
    let locked: Vec<Uuid> = sqlx::query_scalar(include_str!("../../queries/lock_due_runs.sql"))
        .bind(now)
        .bind(i64::from(limit))
        .fetch_all(&mut *connection)
        .await?;
    // The last transaction that had a run locked may have fired its timers: those that are left count.
    let found = sqlx::query(include_str!("../../queries/take_due_timers.sql"))
        .bind(now)
        .bind(i64::from(limit))
        .bind(locked)
        .fetch_all(connection)
        .await?;
    found.iter().map(rows::due_timer).collect()
}
