//! Workflows and their versions.

use async_trait::async_trait;
use model::{Instant, TenantId, VersionId};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgExecutor, Row};

use super::beginning::begin;
use super::{Postgres, rows, schedules, triggers};
use crate::{
    Activated, Active, Definitions, NewVersion, Pause, Paused, Registered, Result, VersionRecord,
    WorkflowRecord, normal,
};

#[async_trait]
impl Definitions for Postgres {
    async fn register_all(&self, new: &[NewVersion]) -> Result<Vec<Registered>> {
        // Registers definitions in one transaction, each while its workflow's row is locked, so that numbers are given one
        // at a time; in name order, so that two such transactions cannot wait for each other.
        let mut order: Vec<usize> = (0..new.len()).collect();
        order.sort_by_key(|index| (new[*index].tenant, &new[*index].workflow.name));
        let mut transaction = begin(&self.pool).await?;
        let mut done = Vec::with_capacity(new.len());
        for index in order {
            done.push((index, register(&mut transaction, &new[index]).await?));
        }
        transaction.commit().await?;
        done.sort_by_key(|(index, _)| *index);
        Ok(done.into_iter().map(|(_, registered)| registered).collect())
    }

    async fn archive(&self, tenant: TenantId, workflow: &str, at: Instant) -> Result<bool> {
        let mut transaction = begin(&self.pool).await?;
        let written = sqlx::query(
            "update workflows set archived = true, updated_at = greatest(updated_at, $3)
              where tenant = $1 and name = $2 and not archived",
        )
        .bind(tenant.0)
        .bind(normal::text(workflow))
        .bind(at)
        .execute(&mut *transaction)
        .await?;
        schedules::forget(&mut transaction, tenant, workflow).await?;
        triggers::remove(&mut *transaction, tenant, workflow).await?;
        transaction.commit().await?;
        Ok(written.rows_affected() == 1)
    }

    async fn active(&self, tenant: TenantId, name: &str) -> Result<Option<Active>> {
        let found = sqlx::query(
            "select active_version, number, archived, paused_at is not null as paused
               from workflows join versions on versions.id = active_version
              where workflows.tenant = $1 and name = $2",
        )
        .bind(tenant.0)
        .bind(normal::text(name))
        .fetch_optional(&self.pool)
        .await?;
        let active = |row: PgRow| {
            Ok(Active {
                version: VersionId(row.try_get("active_version")?),
                number: row.try_get("number")?,
                archived: row.try_get("archived")?,
                paused: row.try_get("paused")?,
            })
        };
        found.map(active).transpose()
    }

    async fn workflow(&self, tenant: TenantId, name: &str) -> Result<Option<WorkflowRecord>> {
        workflow(&self.pool, tenant, name).await
    }

    async fn version(&self, id: VersionId) -> Result<Option<VersionRecord>> {
        version(&self.pool, id).await
    }

    async fn numbered_version(
        &self,
        tenant: TenantId,
        workflow: &str,
        number: i32,
    ) -> Result<Option<VersionRecord>> {
        numbered_version(&self.pool, tenant, workflow, number).await
    }

    async fn activate(
        &self,
        tenant: TenantId,
        workflow: &str,
        number: i32,
        at: Instant,
    ) -> Result<Activated> {
        let mut transaction = begin(&self.pool).await?;
        let row = sqlx::query(include_str!("../../queries/activate_version.sql"))
            .bind(tenant.0)
            .bind(normal::text(workflow))
            .bind(number)
            .bind(at)
            .fetch_one(&mut *transaction)
            .await?;
        let activated = match (row.try_get("known")?, row.try_get("changed")?) {
            (false, _) => Activated::Unknown,
            (true, false) => Activated::Already,
            (true, true) => Activated::Changed,
        };
        if activated == Activated::Changed
            && let Some(version) = numbered_version(&mut *transaction, tenant, workflow, number).await?
        {
            schedules::follow(&mut transaction, tenant, &version.workflow, at).await?;
            triggers::replace(&mut transaction, tenant, &version.workflow, at).await?;
        }
        transaction.commit().await?;
        Ok(activated)
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
            Some(_) => triggers::hold_triggers(&mut transaction, tenant, workflow).await?,
            None => triggers::release_triggers(&mut transaction, tenant, workflow, at).await?,
        }
        transaction.commit().await?;
        Ok(Paused::Changed)
    }
}

async fn register(connection: &mut PgConnection, new: &NewVersion) -> Result<Registered> {
    lock_workflow(connection, new).await?;
    let (row, is_new) = match known_version(connection, new).await? {
        Some(row) => (row, false),
        None => (insert_version(connection, new).await?, true),
    };
    let version = VersionId(row.try_get("id")?);
    let changed = make_active(connection, new, version).await?;
    if changed {
        schedules::follow(connection, new.tenant, &new.workflow, new.at).await?;
        triggers::replace(connection, new.tenant, &new.workflow, new.at).await?;
    }
    Ok(Registered { version, number: row.try_get("number")?, new: is_new, changed })
}

async fn lock_workflow(connection: &mut PgConnection, new: &NewVersion) -> Result<()> {
    sqlx::query(
        "insert into workflows (tenant, name, created_at, updated_at) values ($1, $2, $3, $3)
         on conflict do nothing",
    )
    .bind(new.tenant.0)
    .bind(normal::text(&new.workflow.name))
    .bind(new.at)
    .execute(&mut *connection)
    .await?;
    sqlx::query("select from workflows where tenant = $1 and name = $2 for update")
        .bind(new.tenant.0)
        .bind(normal::text(&new.workflow.name))
        .execute(connection)
        .await?;
    Ok(())
}

async fn known_version(connection: &mut PgConnection, new: &NewVersion) -> Result<Option<PgRow>> {
    let found =
        sqlx::query("select id, number from versions where tenant = $1 and workflow = $2 and hash = $3")
            .bind(new.tenant.0)
            .bind(normal::text(&new.workflow.name))
            .bind(normal::text(&new.hash))
            .fetch_optional(connection)
            .await?;
    Ok(found)
}

async fn insert_version(connection: &mut PgConnection, new: &NewVersion) -> Result<PgRow> {
    let inserted = sqlx::query(include_str!("../../queries/insert_version.sql"))
        .bind(new.tenant.0)
        .bind(normal::text(&new.workflow.name))
        .bind(normal::text(&new.hash))
        .bind(rows::json(&new.workflow))
        .bind(normal::text(&new.source))
        .bind(new.at)
        .bind(normal::text(&new.by))
        .fetch_one(connection)
        .await?;
    Ok(inserted)
}

/// Makes the version the active one. Where it is already, nothing is written.
async fn make_active(connection: &mut PgConnection, new: &NewVersion, version: VersionId) -> Result<bool> {
    let written = sqlx::query(
        "update workflows set active_version = $3, archived = false, updated_at = greatest(updated_at, $4)
          where tenant = $1 and name = $2 and (archived or active_version is distinct from $3)",
    )
    .bind(new.tenant.0)
    .bind(normal::text(&new.workflow.name))
    .bind(version.0)
    .bind(new.at)
    .execute(connection)
    .await?;
    Ok(written.rows_affected() == 1)
}

pub(super) async fn version(executor: impl PgExecutor<'_>, id: VersionId) -> Result<Option<VersionRecord>> {
    let found = sqlx::query(
        "select id, tenant, number, hash, definition, source, created_at, created_by from versions where id = $1",
    )
    .bind(id.0)
    .fetch_optional(executor)
    .await?;
    found.as_ref().map(rows::version).transpose()
}

/// One workflow of a tenant with its active version.
pub async fn workflow(
    executor: impl PgExecutor<'_>,
    tenant: TenantId,
    name: &str,
) -> Result<Option<WorkflowRecord>> {
    let found = sqlx::query(include_str!("../../queries/find_workflow.sql"))
        .bind(tenant.0)
        .bind(normal::text(name))
        .fetch_optional(executor)
        .await?;
    found.as_ref().map(rows::workflow).transpose()
}

/// The version of a workflow with that number.
pub async fn numbered_version(
    executor: impl PgExecutor<'_>,
    tenant: TenantId,
    workflow: &str,
    number: i32,
) -> Result<Option<VersionRecord>> {
    let found = sqlx::query(
        "select id, tenant, number, hash, definition, source, created_at, created_by
           from versions where tenant = $1 and workflow = $2 and number = $3",
    )
    .bind(tenant.0)
    .bind(normal::text(workflow))
    .bind(number)
    .fetch_optional(executor)
    .await?;
    found.as_ref().map(rows::version).transpose()
}
