//! Concurrency groups: runs of one workflow that share a limit.

use std::collections::BTreeSet;

use model::{RunId, TenantId};
use sqlx::{PgConnection, PgExecutor, Row};

use crate::{ConcurrencyMember, Result, normal};

/// The lock comes first, in a statement of its own: a statement reads what was committed before it began.
pub(super) async fn lock(
    connection: &mut PgConnection,
    tenant: TenantId,
    workflow: &str,
    group: &str,
) -> Result<Vec<ConcurrencyMember>> {
    let (workflow, group) = (normal::text(workflow), normal::label(group));
    sqlx::query("select pg_advisory_xact_lock(hashtextextended($2 || E'\\n' || $3, $1))")
        .bind(i64::from(tenant.0))
        .bind(&*workflow)
        .bind(&*group)
        .execute(&mut *connection)
        .await?;
    members(connection, tenant, &workflow, &group, None).await
}

pub(super) async fn ancestors(connection: &mut PgConnection, run: RunId) -> Result<BTreeSet<RunId>> {
    let found = sqlx::query_scalar(include_str!("../../queries/select_ancestors.sql"))
        .bind(run.0)
        .fetch_all(connection)
        .await?;
    Ok(found.into_iter().map(RunId).collect())
}

/// The unfinished runs of a concurrency group, oldest first.
pub async fn members(
    executor: impl PgExecutor<'_>,
    tenant: TenantId,
    workflow: &str,
    group: &str,
    limit: Option<u32>,
) -> Result<Vec<ConcurrencyMember>> {
    let found = sqlx::query(
        "select id, waiting from runs
          where tenant = $1 and workflow = $2 and concurrency_group = $3 and finished_at is null
          order by created_at, id limit $4",
    )
    .bind(tenant.0)
    .bind(normal::text(workflow))
    .bind(normal::label(group))
    .bind(limit.map(i64::from))
    .fetch_all(executor)
    .await?;
    found
        .iter()
        .map(|row| Ok(ConcurrencyMember { run: RunId(row.try_get("id")?), waiting: row.try_get("waiting")? }))
        .collect()
}
