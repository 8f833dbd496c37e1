//! Workflows as people list them, and let them pause.

use async_trait::async_trait;
use model::TenantId;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::{Postgres, rows};
use crate::{
    DefinitionViews, Pause, Result, VersionRecord, WorkflowCursor, WorkflowRecord, WorkflowSort, normal,
};

#[async_trait]
impl DefinitionViews for Postgres {
    async fn workflow(&self, tenant: TenantId, name: &str) -> Result<Option<WorkflowRecord>> {
        let found = sqlx::query(include_str!("../../queries/find_workflow.sql"))
            .bind(tenant.0)
            .bind(normal::text(name))
            .fetch_optional(&mut *self.reading().await?)
            .await?;
        found.as_ref().map(rows::workflow).transpose()
    }

    async fn workflows(
        &self,
        tenant: TenantId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<WorkflowRecord>> {
        let found = sqlx::query(include_str!("../../queries/list_workflows.sql"))
            .bind(tenant.0)
            .bind(after.map(normal::text))
            .bind(i64::from(limit))
            .fetch_all(&mut *self.reading().await?)
            .await?;
        found.iter().map(rows::workflow).collect()
    }

    async fn sorted_workflows(
        &self,
        tenant: TenantId,
        sort: WorkflowSort,
        after: Option<&WorkflowCursor>,
        limit: u32,
    ) -> Result<Vec<WorkflowRecord>> {
        let (statement, by_change) = match sort {
            WorkflowSort::Name => (include_str!("../../queries/list_workflows.sql"), false),
            WorkflowSort::NameDown => (include_str!("../../queries/list_workflows_from_z.sql"), false),
            WorkflowSort::LastChanged => (include_str!("../../queries/list_changed_workflows.sql"), true),
            WorkflowSort::FirstChanged => (include_str!("../../queries/list_unchanged_workflows.sql"), true),
        };
        let mut query = sqlx::query(statement).bind(tenant.0).bind(after.map(|(_, name)| normal::text(name)));
        if by_change {
            query = query.bind(after.map(|(updated_at, _)| *updated_at));
        }
        let found = query.bind(i64::from(limit)).fetch_all(&mut *self.reading().await?).await?;
        found.iter().map(rows::workflow).collect()
    }

    async fn versions(
        &self,
        tenant: TenantId,
        workflow: &str,
        before: Option<i32>,
        limit: u32,
    ) -> Result<Vec<VersionRecord>> {
        let found = sqlx::query(include_str!("../../queries/list_versions.sql"))
            .bind(tenant.0)
            .bind(normal::text(workflow))
            .bind(before)
            .bind(i64::from(limit))
            .fetch_all(&mut *self.reading().await?)
            .await?;
        found.iter().map(rows::version).collect()
    }
}

/// Who pauses a row, if somebody does.
pub(super) fn pause(row: &PgRow) -> Result<Option<Pause>> {
    Ok(match row.try_get("paused_at")? {
        Some(at) => Some(Pause { at, by: row.try_get("paused_by")?, reason: row.try_get("pause_reason")? }),
        None => None,
    })
}
