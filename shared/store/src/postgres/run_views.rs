//! Summaries of many runs.

use async_trait::async_trait;
use model::{AttemptRecord, Event, RunId, TaskIndex, TaskKey, TenantId};
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::types::Json;

use super::{Postgres, concurrency, picking, rows};
use crate::{ConcurrencyMember, LogLine, Result, RunCursor, RunFilter, RunViews, chunks, normal};

#[async_trait]
impl RunViews for Postgres {
    async fn in_concurrency_group(
        &self,
        tenant: TenantId,
        workflow: &str,
        group: &str,
        limit: u32,
    ) -> Result<Vec<ConcurrencyMember>> {
        concurrency::members(&self.pool, tenant, &normal::text(workflow), &normal::label(group), Some(limit))
            .await
    }

    async fn attempts(&self, key: TaskKey) -> Result<Vec<AttemptRecord>> {
        let found = sqlx::query(
            "select idx, attempt, state, worker, started_at, finished_at, failure, decision
               from attempts where run = $1 and idx = $2 order by attempt",
        )
        .bind(key.run.0)
        .bind(rows::int(key.task.0))
        .fetch_all(&mut *self.reading().await?)
        .await?;
        found.iter().map(rows::attempt).collect()
    }

    async fn own_events(
        &self,
        run: RunId,
        with: Option<TaskIndex>,
        from: i64,
        limit: u32,
    ) -> Result<Vec<(i64, Event)>> {
        let found = sqlx::query(include_str!("../../queries/read_own_events.sql"))
            .bind(run.0)
            .bind(from)
            .bind(with.map(|task| rows::int(task.0)))
            .bind(i64::from(limit))
            .fetch_all(&mut *self.reading().await?)
            .await?;
        let event = |row: &PgRow| Ok((row.try_get("number")?, row.try_get::<Json<_>, _>("content")?.0));
        found.iter().map(event).collect()
    }

    async fn log(&self, key: TaskKey, attempt: u32, from: u32, limit: u32) -> Result<Vec<(u32, LogLine)>> {
        let found = sqlx::query(include_str!("../../queries/read_log.sql"))
            .bind(key.run.0)
            .bind(rows::int(key.task.0))
            .bind(rows::int(attempt))
            .bind(i64::from(from))
            .bind(i64::from(limit))
            .fetch_all(&mut *self.reading().await?)
            .await?;
        let chunks: Vec<(i64, Vec<LogLine>)> = found
            .iter()
            .map(|row| Ok((i64::from(rows::number(row, "first")?), row.try_get::<Json<_>, _>("lines")?.0)))
            .collect::<Result<_>>()?;
        let lines = chunks::numbered(chunks, from.into(), limit);
        Ok(lines.into_iter().map(|(number, line)| (number as u32, line)).collect())
    }

    async fn horizon(&self, tenant: TenantId, filter: &RunFilter, rows: u32) -> Result<Option<RunCursor>> {
        picking::horizon(&mut *self.reading().await?, tenant, filter, rows).await
    }
}
