//! Logs, in chunks as they came.

use model::TaskKey;
use sqlx::types::Json;
use sqlx::{PgExecutor, PgPool, Row};

use super::rows;
use crate::{LogChunk, LogLine, Result, chunks};

pub(super) async fn append(pool: &PgPool, chunk: &LogChunk) -> Result<()> {
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
    .execute(pool)
    .await?;
    Ok(())
}

pub(super) async fn read(
    executor: impl PgExecutor<'_>,
    key: TaskKey,
    attempt: u32,
    from: u32,
    limit: u32,
) -> Result<Vec<(u32, LogLine)>> {
    let found = sqlx::query(include_str!("../../queries/read_log.sql"))
        .bind(key.run.0)
        .bind(rows::int(key.task.0))
        .bind(rows::int(attempt))
        .bind(i64::from(from))
        .bind(i64::from(limit))
        .fetch_all(executor)
        .await?;
    let chunks: Vec<(i64, Vec<LogLine>)> = found
        .iter()
        .map(|row| Ok((i64::from(rows::number(row, "first")?), row.try_get::<Json<_>, _>("lines")?.0)))
        .collect::<Result<_>>()?;
    let lines = chunks::numbered(chunks, from.into(), limit);
    Ok(lines.into_iter().map(|(number, line)| (number as u32, line)).collect())
}
