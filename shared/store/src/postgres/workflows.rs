//! Workflows as people list them, and let them pause.

use async_trait::async_trait;
use model::{Instant, TenantId};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::beginning::begin;
use super::{Postgres, rows};
use crate::workflows::WORKFLOW_PAUSES;
use crate::{Pause, Paused, Result, WorkflowPlace, WorkflowRecord, WorkflowSort, Workflows, normal};

#[async_trait]
impl Workflows for Postgres {
    async fn sorted_workflows(
        &self,
        tenant: TenantId,
        sort: WorkflowSort,
        after: Option<&WorkflowPlace>,
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

    async fn pause_workflow(
        &self,
        tenant: TenantId,
        workflow: &str,
        pause: Option<&Pause>,
        at: Instant,
    ) -> Result<Paused> {
        let mut transaction = begin(&self.pool).await?;
        let found = sqlx::query(
            "select paused_at is not null as paused from workflows
              where tenant = $1 and name = $2 and active_version is not null and not archived for update",
        )
        .bind(tenant.0)
        .bind(normal::text(workflow))
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = found else { return Ok(Paused::Unknown) };
        if row.try_get::<bool, _>("paused")? == pause.is_some() {
            return Ok(Paused::Already);
        }
        sqlx::query(
            "update workflows set paused_at = $3, paused_by = $4, pause_reason = $5 where tenant = $1 and name = $2",
        )
        .bind(tenant.0)
        .bind(normal::text(workflow))
        .bind(pause.map(|pause| pause.at))
        .bind(pause.map(|pause| normal::text(&pause.by)))
        .bind(pause.and_then(|pause| pause.reason.as_deref()).map(normal::text))
        .execute(&mut *transaction)
        .await?;
        match pause {
            Some(_) => hold_triggers(&mut transaction, tenant, workflow).await?,
            None => release_triggers(&mut transaction, tenant, workflow, at).await?,
        }
        transaction.commit().await?;
        Ok(Paused::Changed)
    }
}

/// Lets the triggers of a workflow pause, if it does.
pub(super) async fn hold_triggers(
    connection: &mut PgConnection,
    tenant: TenantId,
    workflow: &str,
) -> Result<()> {
    sqlx::query(
        "update triggers set paused_at = workflows.paused_at, paused_reason = $3
           from workflows
          where triggers.tenant = $1 and triggers.workflow = $2 and triggers.paused_at is null
            and workflows.tenant = $1 and workflows.name = $2 and workflows.paused_at is not null",
    )
    .bind(tenant.0)
    .bind(normal::text(workflow))
    .bind(WORKFLOW_PAUSES)
    .execute(connection)
    .await?;
    Ok(())
}

/// Lets those triggers go on that paused with their workflow; a sensor looks at once.
async fn release_triggers(
    connection: &mut PgConnection,
    tenant: TenantId,
    workflow: &str,
    at: Instant,
) -> Result<()> {
    sqlx::query(
        "update triggers set paused_at = null, paused_reason = null,
                due_at = case when kind = 'sensor' then $4 else due_at end
          where tenant = $1 and workflow = $2 and paused_reason = $3",
    )
    .bind(tenant.0)
    .bind(normal::text(workflow))
    .bind(WORKFLOW_PAUSES)
    .bind(at)
    .execute(connection)
    .await?;
    Ok(())
}

/// Who pauses a row, if somebody does.
pub(super) fn pause(row: &PgRow) -> Result<Option<Pause>> {
    Ok(match row.try_get("paused_at")? {
        Some(at) => Some(Pause { at, by: row.try_get("paused_by")?, reason: row.try_get("pause_reason")? }),
        None => None,
    })
}
