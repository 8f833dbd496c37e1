//! Many runs at a glance.

use async_trait::async_trait;
use model::{Instant, RunId, RunState, Task, TenantId, VersionId};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::{Postgres, picking, rows};
use crate::{Glance, Outlines, Result, RunFilter, RunPlace, normal};

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

    async fn last_runs(&self, tenant: TenantId, workflows: &[String], each: u32) -> Result<Vec<Glance>> {
        let found = sqlx::query(include_str!("../../queries/list_last_runs.sql"))
            .bind(tenant.0)
            .bind(rows::column(workflows, |workflow| normal::text(workflow).into_owned()))
            .bind(i64::from(each))
            .fetch_all(&mut *self.reading().await?)
            .await?;
        found.iter().map(glance).collect()
    }
}

fn glance(row: &PgRow) -> Result<Glance> {
    Ok(Glance {
        id: RunId(row.try_get("id")?),
        workflow: row.try_get("workflow")?,
        version: VersionId(row.try_get("version")?),
        state: rows::run_state(row)?,
        created_at: row.try_get("created_at")?,
        started_at: row.try_get("started_at")?,
        finished_at: row.try_get("finished_at")?,
    })
}
