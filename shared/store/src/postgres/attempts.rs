//! Attempts: those that are over, the logs they write and their checkpoints.

use async_trait::async_trait;
use futures::TryStreamExt;
use model::{AttemptRecord, Progress, ProgressReport, TaskKey};
use sqlx::types::Json;
use sqlx::{PgExecutor, Row};

use super::beginning::begin;
use super::rows::{int, json, number};
use super::{Postgres, bounded, rows};
use crate::chunks::{LogEnd, Numbered, kept};
use crate::{Attempts, Bounded, Checkpoint, LogChunk, LogLine, Result};

#[async_trait]
impl Attempts for Postgres {
    async fn attempts(&self, key: TaskKey) -> Result<Vec<AttemptRecord>> {
        Ok(attempts(&self.pool, key, 0, i32::MAX as u32, usize::MAX).await?.items)
    }

    async fn log(&self, key: TaskKey, attempt: u32, from: u32, limit: u32) -> Result<Vec<(u32, LogLine)>> {
        Ok(log(&self.pool, key, attempt, from, limit, usize::MAX).await?.items)
    }

    async fn append_log(&self, chunk: &LogChunk) -> Result<()> {
        if chunk.first == 0 {
            return insert_chunk(&self.pool, chunk, None).await;
        }
        let mut unit = begin(&self.pool).await?;
        let (run, task, attempt) = (chunk.key.run.0, int(chunk.key.task.0), int(chunk.attempt));
        // One after the other, so that each sees what those before have written.
        sqlx::query(
            "select pg_advisory_xact_lock(hashtextextended(concat_ws(' ', $1::uuid, $2::int, $3::int), 0))",
        )
        .bind(run)
        .bind(task)
        .bind(attempt)
        .execute(&mut *unit)
        .await?;
        let last = sqlx::query(
            "select first, bytes from logs
              where run = $1 and idx = $2 and attempt = $3 and run_at = (select created_at from runs where id = $1)
              order by first desc limit 1",
        )
        .bind(run)
        .bind(task)
        .bind(attempt)
        .fetch_optional(&mut *unit)
        .await?;
        let last = match last {
            Some(row) => Some(LogEnd { first: number(&row, "first")?, bytes: row.try_get("bytes")? }),
            None => None,
        };
        insert_chunk(&mut *unit, chunk, last).await?;
        Ok(unit.commit().await?)
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
        let kept = written.rows_affected() == 1;
        if let Some(report) = checkpoint.phase().filter(|_| kept) {
            self.report_progress(key, &report).await?;
        }
        Ok(kept)
    }

    async fn checkpoint(&self, key: TaskKey) -> Result<Option<Checkpoint>> {
        let found = sqlx::query(
            "select attempt, at, data from checkpoints
              where run = $1 and idx = $2
                and attempt > coalesce((select voided from tasks where run = $1 and idx = $2), 0)",
        )
        .bind(key.run.0)
        .bind(int(key.task.0))
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = found else { return Ok(None) };
        let Json(data) = row.try_get("data")?;
        Ok(Some(Checkpoint { attempt: number(&row, "attempt")?, at: row.try_get("at")?, data }))
    }

    async fn report_progress(&self, key: TaskKey, report: &ProgressReport) -> Result<()> {
        let mut unit = begin(&self.pool).await?;
        // An attempt that has a row already gets it locked and returned.
        let found = sqlx::query(
            "insert into progress as known (run, idx, attempt, at, metrics)
             select id, $2::int, $3::int, $4::timestamptz, '{}' from runs where id = $1
                 on conflict (run, idx, attempt) do update set at = known.at
             returning attempt, at, fraction, message, phase, metrics",
        )
        .bind(key.run.0)
        .bind(int(key.task.0))
        .bind(int(report.attempt))
        .bind(report.at)
        .fetch_optional(&mut *unit)
        .await?;
        let Some(row) = found else { return Ok(()) };
        let mut progress = rows::progress(&row)?;
        progress.apply(report);
        let Progress { attempt, at, done, phase, metrics } = progress;
        sqlx::query(
            "update progress
                set at = $4, fraction = $5, message = $6, phase = $7, metrics = $8::text::json,
                    tx = pg_current_xact_id()
              where run = $1 and idx = $2 and attempt = $3",
        )
        .bind(key.run.0)
        .bind(int(key.task.0))
        .bind(int(attempt))
        .bind(at)
        .bind(done.as_ref().map(|done| done.fraction))
        .bind(done.and_then(|done| done.message))
        .bind(phase)
        .bind(json(&metrics))
        .execute(&mut *unit)
        .await?;
        Ok(unit.commit().await?)
    }

    async fn progress(&self, key: TaskKey) -> Result<Vec<Progress>> {
        let found = sqlx::query(
            "select attempt, at, fraction, message, phase, metrics from progress
              where run = $1 and idx = $2 order by attempt",
        )
        .bind(key.run.0)
        .bind(int(key.task.0))
        .fetch_all(&self.pool)
        .await?;
        found.iter().map(rows::progress).collect()
    }
}

/// Writes what is kept of a chunk.
async fn insert_chunk(executor: impl PgExecutor<'_>, chunk: &LogChunk, last: Option<LogEnd>) -> Result<()> {
    let Some((lines, bytes)) = kept(chunk, last) else { return Ok(()) };
    sqlx::query(
        "insert into logs (run, run_at, idx, attempt, first, count, lines, bytes)
         select id, created_at, $2::int, $3::int, $4::int, $5::int, $6::text::json, $7::bigint from runs where id = $1
         on conflict do nothing",
    )
    .bind(chunk.key.run.0)
    .bind(int(chunk.key.task.0))
    .bind(int(chunk.attempt))
    .bind(int(chunk.first))
    .bind(lines.len() as i32)
    .bind(json(&lines))
    .bind(bytes)
    .execute(executor)
    .await?;
    Ok(())
}

/// The attempts of a task that are over and come after one, oldest first: at most `limit`, and none after the one that exceeds
/// `max_bytes`.
pub async fn attempts(
    executor: impl PgExecutor<'_>,
    key: TaskKey,
    after: u32,
    limit: u32,
    max_bytes: usize,
) -> Result<Bounded<AttemptRecord>> {
    let found = sqlx::query(
        "select idx, attempt, state, worker, started_at, finished_at, failure, decision, next_attempt_at
           from attempts where run = $1 and idx = $2 and attempt > $3 order by attempt limit $4",
    )
    .bind(key.run.0)
    .bind(int(key.task.0))
    .bind(int(after))
    .bind(i64::from(limit))
    .fetch(executor);
    bounded::rows(found, max_bytes).await?.try_map(|row| rows::attempt(&row))
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
