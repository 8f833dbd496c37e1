//! Attempts: those that are over, the logs they write and their checkpoints.

use async_trait::async_trait;
use futures::TryStreamExt;
use model::{AttemptRecord, TaskKey};
use sqlx::types::Json;
use sqlx::{PgExecutor, Row};

use super::rows::{int, json, number};
use super::{Postgres, bounded, rows};
use crate::chunks::Numbered;
use crate::{Attempts, Bounded, Checkpoint, LogChunk, LogLine, Result};

#[async_trait]
impl Attempts for Postgres {
    async fn attempts(&self, key: TaskKey) -> Result<Vec<AttemptRecord>> {
        attempts(&self.pool, key).await
    }

    async fn log(&self, key: TaskKey, attempt: u32, from: u32, limit: u32) -> Result<Vec<(u32, LogLine)>> {
        Ok(log(&self.pool, key, attempt, from, limit, usize::MAX).await?.items)
    }

    async fn append_log(&self, chunk: &LogChunk) -> Result<()> {
        if chunk.lines.is_empty() {
            return Ok(());
        }
        sqlx::query(
            "insert into logs (run, run_at, idx, attempt, first, count, lines)
             select id, created_at, $2::int, $3::int, $4::int, $5::int, $6::text::json from runs where id = $1
             on conflict do nothing",
        )
        .bind(chunk.key.run.0)
        .bind(rows::int(chunk.key.task.0))
        .bind(rows::int(chunk.attempt))
        .bind(rows::int(chunk.first))
        .bind(chunk.lines.len() as i32)
        .bind(rows::json(&chunk.lines))
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    async fn keep_checkpoint(&self, key: TaskKey, checkpoint: &Checkpoint) -> Result<bool> {
        let written = sqlx::query(
            "insert into checkpoints (run, idx, attempt, at, data) values ($1, $2, $3, $4, $5::text::json)
                 on conflict (run, idx) do update
                 set attempt = excluded.attempt, at = excluded.at, data = excluded.data
               where checkpoints.attempt <= excluded.attempt",
        )
        .bind(key.run.0)
        .bind(int(key.task.0))
        .bind(int(checkpoint.attempt))
        .bind(checkpoint.at)
        .bind(json(&checkpoint.data))
        .execute(&self.pool)
        .await?;
        Ok(written.rows_affected() == 1)
    }

    async fn checkpoint(&self, key: TaskKey) -> Result<Option<Checkpoint>> {
        let found = sqlx::query("select attempt, at, data from checkpoints where run = $1 and idx = $2")
            .bind(key.run.0)
            .bind(int(key.task.0))
            .fetch_optional(&self.pool)
            .await?;
        let Some(row) = found else { return Ok(None) };
        let Json(data) = row.try_get("data")?;
        Ok(Some(Checkpoint { attempt: number(&row, "attempt")?, at: row.try_get("at")?, data }))
    }
}

/// The attempts of a task that are over, oldest first.
pub async fn attempts(executor: impl PgExecutor<'_>, key: TaskKey) -> Result<Vec<AttemptRecord>> {
    let found = sqlx::query(
        "select idx, attempt, state, worker, started_at, finished_at, failure, decision
           from attempts where run = $1 and idx = $2 order by attempt",
    )
    .bind(key.run.0)
    .bind(int(key.task.0))
    .fetch_all(executor)
    .await?;
    found.iter().map(rows::attempt).collect()
}

/// Lines of an attempt's log with a number of `from` or higher, oldest first, with their numbers: at most `limit`, and none
/// after the chunk that exceeds `max_bytes`.
pub async fn log(
    executor: impl PgExecutor<'_>,
    key: TaskKey,
    attempt: u32,
    from: u32,
    limit: u32,
    max_bytes: usize,
) -> Result<Bounded<(u32, LogLine)>> {
    let mut found = sqlx::query(include_str!("../../queries/read_log.sql"))
        .bind(key.run.0)
        .bind(int(key.task.0))
        .bind(int(attempt))
        .bind(i64::from(from))
        .bind(i64::from(limit))
        .fetch(executor);
    let mut lines = Numbered::new(from.into(), limit, max_bytes);
    let mut cut = false;
    while let Some(row) = found.try_next().await? {
        if lines.is_full() {
            cut = true;
            break;
        }
        let chunk: Vec<LogLine> = row.try_get::<Json<_>, _>("lines")?.0;
        lines.add(number(&row, "first")?.into(), chunk, bounded::size(&row));
    }
    lines.into_bounded(cut).try_map(|(number, line)| Ok((number as u32, line)))
}
