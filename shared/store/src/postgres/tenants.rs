//! Tenants.

use async_trait::async_trait;
use model::{Instant, TenantId};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::Postgres;
use super::beginning::begin;
use super::rows::number;
use crate::{Result, TenantFilter, TenantRecord, Tenants, normal};

#[async_trait]
impl Tenants for Postgres {
    async fn tenant(&self, name: &str, now: Instant) -> Result<TenantId> {
        // Numbers are given one after the other: they are small, since a line's ids are made of them.
        let mut transaction = begin(&self.pool).await?;
        sqlx::query("lock table tenants in share row exclusive mode").execute(&mut *transaction).await?;
        sqlx::query(
            "insert into tenants (id, name, created_at)
             select max(id) + 1, $1, $2 from tenants having not bool_or(name = $1)",
        )
        .bind(name)
        .bind(now)
        .execute(&mut *transaction)
        .await?;
        let found = sqlx::query("select id from tenants where name = $1")
            .bind(name)
            .fetch_one(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(TenantId(found.try_get("id")?))
    }

    async fn tenant_named(&self, name: &str) -> Result<Option<TenantId>> {
        let found = sqlx::query_scalar("select id from tenants where name = $1").bind(normal::text(name));
        Ok(found.fetch_optional(&self.pool).await?.map(TenantId))
    }

    async fn tenants(&self, filter: &TenantFilter) -> Result<Vec<TenantRecord>> {
        let names = filter.names.as_ref();
        let names = names.map(|names| names.iter().map(|name| normal::text(name)).collect::<Vec<_>>());
        // Not behind the wall of one tenant: who may see which is for the caller to say.
        let found = sqlx::query(include_str!("../../queries/list_tenants.sql"))
            .bind(names)
            .bind(filter.after.map(|after| after.0))
            .bind(i64::from(filter.limit))
            .fetch_all(&self.pool)
            .await?;
        found.iter().map(record).collect()
    }
}

fn record(row: &PgRow) -> Result<TenantRecord> {
    Ok(TenantRecord {
        id: TenantId(row.try_get("id")?),
        name: row.try_get("name")?,
        created_at: row.try_get("created_at")?,
        weight: number(row, "weight")?,
        slots: row.try_get::<Option<i32>, _>("slots")?.map(i32::unsigned_abs),
        used: number(row, "used")?,
        waiting: number(row, "waiting")?,
    })
}
