//! Many runs at a glance.

use async_trait::async_trait;
use model::{Instant, RunId, RunState, Task, TenantId};
use sqlx::Row;

use super::{Postgres, picking, rows};
use crate::{Outlines, Result, RunFilter, RunPlace};

#[async_trait]
impl Outlines for Postgres {
    async fn outline(&self, runs: &[RunId]) -> Result<Vec<(RunId, Task)>> {
        let found = sqlx::query(include_str!("../../queries/read_outline.sql"))
            .bind(rows::column(runs, |run| run.0))
            .fetch_all(&self.pool)
            .await?;
        found.iter().map(rows::task).collect()
    }

    async fn pulse(&self, tenant: TenantId, since: Instant, limit: u32) -> Result<Vec<(Instant, RunState)>> {
        let found = sqlx::query(
            "select created_at, state from runs where tenant = $1 and created_at >= $2
              order by created_at desc, id desc limit $3",
        )
        .bind(tenant.0)
        .bind(since)
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await?;
        found.iter().map(|row| Ok((row.try_get("created_at")?, rows::run_state(row)?))).collect()
    }

    async fn horizon(&self, tenant: TenantId, filter: &RunFilter, rows: u32) -> Result<Option<RunPlace>> {
        picking::horizon(&mut *self.reading().await?, tenant, filter, rows).await
    }
}
