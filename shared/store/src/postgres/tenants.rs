//! Tenants.

use async_trait::async_trait;
use model::TenantId;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::Postgres;
use super::rows::number;
use crate::{Result, TenantFilter, TenantRecord, Tenants, normal};

#[async_trait]
impl Tenants for Postgres {
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
        places: row.try_get::<Option<i32>, _>("places")?.map(i32::unsigned_abs),
        used: number(row, "used")?,
        waiting: number(row, "waiting")?,
    })
}
