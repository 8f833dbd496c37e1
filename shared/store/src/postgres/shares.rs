//! Tasks that several runs share: who carries one out, and who waits for that.

use model::{Changes, Instant, RunId, TaskIndex, TaskKey};
use serde_json::Value;
use sqlx::{PgConnection, Row};

use super::rows::{self, column, int};
use super::saves::gather;
use crate::{Result, Share, ShareAsk, normal};

pub(super) async fn ask(connection: &mut PgConnection, ask: &ShareAsk) -> Result<Share> {
    let row = sqlx::query(include_str!("../../queries/take_share.sql"))
        .bind(ask.tenant.0)
        .bind(normal::label(&ask.name))
        .bind(normal::label(&ask.key))
        .bind(ask.by.run.0)
        .bind(int(ask.by.task.0))
        .bind(ask.fresh_since)
        .fetch_one(&mut *connection)
        .await?;
    let owner =
        TaskKey { run: RunId(row.try_get("owner_run")?), task: TaskIndex(rows::number(&row, "owner_idx")?) };
    let under_way = row.try_get::<Option<Instant>, _>("finished_at")?.is_none();
    if !under_way {
        return Ok(Share::Reuse(owner, output(connection, owner).await?));
    }
    if owner == ask.by {
        return Ok(Share::Own);
    }
    wait(connection, ask, owner).await?;
    Ok(Share::Wait(owner))
}

async fn wait(connection: &mut PgConnection, ask: &ShareAsk, owner: TaskKey) -> Result<()> {
    sqlx::query(include_str!("../../queries/upsert_waiter.sql"))
        .bind(ask.by.run.0)
        .bind(int(ask.by.task.0))
        .bind(int(ask.attempt))
        .bind(owner.run.0)
        .bind(int(owner.task.0))
        .execute(connection)
        .await?;
    Ok(())
}

async fn output(connection: &mut PgConnection, owner: TaskKey) -> Result<Value> {
    let found = sqlx::query("select output from outputs where run = $1 and idx = $2")
        .bind(owner.run.0)
        .bind(int(owner.task.0))
        .fetch_optional(connection)
        .await?;
    Ok(found.as_ref().map(rows::output).transpose()?.flatten().unwrap_or_default())
}

/// Keeps the shared tasks that succeeded, deletes those that failed or that count no longer, and the
/// waits that are over.
pub(super) async fn write(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    let (kept, forgotten): (Vec<_>, Vec<_>) = gather(changes, |each| normal::shares_ended(each).into_iter())
        .into_iter()
        .partition(|(_, (_, succeeded))| succeeded.is_some());
    finish(connection, kept).await?;
    let forgotten = forgotten.into_iter().map(|(run, (task, _))| (run, task)).collect();
    delete(
        connection,
        "delete from shared_tasks using unnest($1::uuid[], $2::int[]) as given (run, idx)
          where owner_run = given.run and owner_idx = given.idx",
        forgotten,
    )
    .await?;
    delete(
        connection,
        "delete from shared_task_waiters using unnest($1::uuid[], $2::int[]) as given (run, idx)
          where shared_task_waiters.run = given.run and shared_task_waiters.idx = given.idx",
        gather(changes, |each| normal::waits_over(each).into_iter()),
    )
    .await
}

async fn finish(
    connection: &mut PgConnection,
    mut rows: Vec<(RunId, (TaskIndex, Option<Instant>))>,
) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_unstable();
    sqlx::query(
        "update shared_tasks set finished_at = given.finished_at
           from unnest($1::uuid[], $2::int[], $3::timestamptz[]) as given (run, idx, finished_at)
          where owner_run = given.run and owner_idx = given.idx and shared_tasks.finished_at is null",
    )
    .bind(column(&rows, |(run, _)| run.0))
    .bind(column(&rows, |(_, (task, _))| int(task.0)))
    .bind(column(&rows, |(_, (_, finished_at))| *finished_at))
    .execute(connection)
    .await?;
    Ok(())
}

async fn delete(
    connection: &mut PgConnection,
    statement: &'static str,
    mut rows: Vec<(RunId, TaskIndex)>,
) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_unstable();
    sqlx::query(statement)
        .bind(column(&rows, |(run, _)| run.0))
        .bind(column(&rows, |(_, task)| int(task.0)))
        .execute(connection)
        .await?;
    Ok(())
}
