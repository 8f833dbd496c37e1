//! The audit log.

use async_trait::async_trait;
use model::{Instant, TenantId};
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::types::Json;

use super::Postgres;
use super::beginning::begin;
use crate::deeds::FORGOTTEN_AT_ONCE;
use crate::{Deed, DeedFilter, DeedStore, Result, normal};

#[async_trait]
impl DeedStore for Postgres {
    async fn note_deed(&self, deed: &Deed) -> Result<()> {
        self.scribe.note(&self.pool, normal::deed(deed)).await
    }

    async fn deeds(&self, tenant: TenantId, filter: &DeedFilter) -> Result<Vec<(i64, Deed)>> {
        let found = sqlx::query(include_str!("../../queries/list_deeds.sql"))
            // Planned anew each time: which index serves depends on which filters are there.
            .persistent(false)
            .bind(tenant.0)
            .bind(filter.actor.as_deref().map(normal::text))
            .bind(filter.action.as_deref().map(normal::text))
            .bind(filter.text.as_deref().map(normal::text))
            .bind(filter.from)
            .bind(filter.to)
            .bind(filter.after)
            .bind(i64::from(filter.limit))
            .fetch_all(&self.pool)
            .await?;
        found.iter().map(deed).collect()
    }

    async fn forget_deeds(&self, before: Instant) -> Result<u64> {
        let mut transaction = begin(&self.pool).await?;
        sqlx::query("set local ebbflow.retention = 'on'").execute(&mut *transaction).await?;
        let gone = sqlx::query(
            "delete from deeds where id = any(array(select id from deeds where at < $1 order by at limit $2))",
        )
        .bind(before)
        .bind(i64::from(FORGOTTEN_AT_ONCE))
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(gone.rows_affected())
    }
}

fn deed(row: &PgRow) -> Result<(i64, Deed)> {
    let status: i32 = row.try_get("status")?;
    let deed = Deed {
        tenant: TenantId(row.try_get("tenant")?),
        at: row.try_get("at")?,
        actor: row.try_get("actor")?,
        origin: row.try_get("origin")?,
        forwarded: row.try_get("forwarded")?,
        agent: row.try_get("agent")?,
        action: row.try_get("action")?,
        target: row.try_get("target")?,
        key: row.try_get("key")?,
        status: status as u16,
        before: row.try_get::<Option<Json<_>>, _>("before")?.map(|Json(value)| value),
        after: row.try_get::<Option<Json<_>>, _>("after")?.map(|Json(value)| value),
    };
    Ok((row.try_get("id")?, deed))
}
