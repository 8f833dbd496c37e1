//! Tenants.

use async_trait::async_trait;
use model::{Instant, TenantId};
use sqlx::Row;

use super::Postgres;
use super::beginning::begin;
use crate::{Result, Tenants, normal};

#[async_trait]
impl Tenants for Postgres {
    async fn tenant(&self, name: &str, now: Instant) -> Result<TenantId> {
        // Numbers are given one after the other: ids in wait queues are made of them, and have room for small ones only.
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

    async fn tenant_name(&self, tenant: TenantId) -> Result<Option<String>> {
        let found = sqlx::query_scalar("select name from tenants where id = $1").bind(tenant.0);
        Ok(found.fetch_optional(&self.pool).await?)
    }
}
