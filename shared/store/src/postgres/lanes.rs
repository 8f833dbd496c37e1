//! Lanes: runs of one workflow that share a limit.

use model::{RunId, TenantId};
use sqlx::{PgConnection, Row};

use crate::{LaneMember, Result, normal};

/// The lock comes first and by itself, so that what is read is what was true when it was had.
pub(super) async fn lock(
    connection: &mut PgConnection,
    tenant: TenantId,
    workflow: &str,
    lane: &str,
) -> Result<Vec<LaneMember>> {
    let (workflow, lane) = (normal::text(workflow), normal::label(lane));
    sqlx::query("select pg_advisory_xact_lock(hashtextextended($2 || E'\\n' || $3, $1))")
        .bind(i64::from(tenant.0))
        .bind(&*workflow)
        .bind(&*lane)
        .execute(&mut *connection)
        .await?;
    let found = sqlx::query(
        "select id, held from runs
          where tenant = $1 and workflow = $2 and lane = $3 and finished_at is null order by created_at, id",
    )
    .bind(tenant.0)
    .bind(&*workflow)
    .bind(&*lane)
    .fetch_all(connection)
    .await?;
    found
        .iter()
        .map(|row| Ok(LaneMember { run: RunId(row.try_get("id")?), held: row.try_get("held")? }))
        .collect()
}
