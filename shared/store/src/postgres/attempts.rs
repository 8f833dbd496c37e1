//! Attempts: those that are over, the logs they write and their checkpoints.

use async_trait::async_trait;
use model::{AttemptRecord, TaskKey};
use sqlx::types::Json;
use sqlx::{PgExecutor, Row};

use super::rows::{int, json, number};
use super::{Postgres, rows};
use crate::{Attempts, Checkpoint, LogChunk, LogLine, Result, chunks};

#[async_trait]
impl Attempts for Postgres {
    async fn attempts(&self, key: TaskKey) -> Result<Vec<AttemptRecord>> {
        attempts(&self.pool, key).await
    }

    async fn log(&self, key: TaskKey, attempt: u32, from: u32, limit: u32) -> Result<Vec<(u32, LogLine)>> {
        log(&self.pool, key, attempt, from, limit).await
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

/// Lines of an attempt's log with a number of `from` or higher, oldest first, with their numbers.
pub async fn log(
    executor: impl PgExecutor<'_>,
    key: TaskKey,
    attempt: u32,
    from: u32,
    limit: u32,
) -> Result<Vec<(u32, LogLine)>> {
    let found = sqlx::query(include_str!("../../queries/read_log.sql"))
        .bind(key.run.0)
        .bind(int(key.task.0))
        .bind(int(attempt))
        .bind(i64::from(from))
        .bind(i64::from(limit))
        .fetch_all(executor)
        .await?;
    let chunks: Vec<(i64, Vec<LogLine>)> = found
        .iter()
        .map(|row| Ok((i64::from(number(row, "first")?), row.try_get::<Json<_>, _>("lines")?.0)))
        .collect::<Result<_>>()?;
    let lines = chunks::numbered(chunks, from.into(), limit);
    Ok(lines.into_iter().map(|(number, line)| (number as u32, line)).collect())
}
