//! Service tokens and grants.

use async_trait::async_trait;
use model::{Instant, TenantId};
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::Postgres;
use crate::{Error, GrantRecord, Identities, IdentityFilter, Result, RoleRecord, TokenRecord, normal};

fn scope(row: &PgRow) -> Result<RoleRecord> {
    Ok(RoleRecord {
        role: row.try_get("role")?,
        tenant: row.try_get::<Option<i32>, _>("tenant")?.map(TenantId),
        tenant_name: row.try_get("tenant_name")?,
        workflows: row.try_get("workflows")?,
    })
}

fn unreadable() -> Error {
    Error::Unreadable { what: "service token", why: "its hash has not 32 bytes".into() }
}

fn token(row: &PgRow) -> Result<TokenRecord> {
    let hash: Vec<u8> = row.try_get("hash")?;
    let revoked_at: Option<Instant> = row.try_get("revoked_at")?;
    let revoked_by: Option<String> = row.try_get("revoked_by")?;
    Ok(TokenRecord {
        id: row.try_get("id")?,
        hash: hash.try_into().map_err(|_| unreadable())?,
        name: row.try_get("name")?,
        scope: scope(row)?,
        created_at: row.try_get("created_at")?,
        created_by: row.try_get("created_by")?,
        expires_at: row.try_get("expires_at")?,
        revoked: revoked_at.zip(revoked_by),
    })
}

fn grant(row: &PgRow) -> Result<GrantRecord> {
    Ok(GrantRecord {
        id: row.try_get("id")?,
        who: row.try_get("who")?,
        scope: scope(row)?,
        created_at: row.try_get("created_at")?,
        created_by: row.try_get("created_by")?,
    })
}

#[async_trait]
impl Identities for Postgres {
    async fn add_token(&self, token: &TokenRecord) -> Result<()> {
        sqlx::query(
            "insert into service_tokens
                (id, hash, name, tenant, role, workflows, created_at, created_by, expires_at)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(token.id)
        .bind(token.hash.as_slice())
        .bind(normal::text(&token.name))
        .bind(token.scope.tenant.map(|tenant| tenant.0))
        .bind(normal::text(&token.scope.role))
        .bind(normal::text(&token.scope.workflows))
        .bind(token.created_at)
        .bind(normal::text(&token.created_by))
        .bind(token.expires_at)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    async fn token_by_hash(&self, hash: &[u8; 32]) -> Result<Option<TokenRecord>> {
        let found = sqlx::query(
            "select service_tokens.*, tenants.name as tenant_name
               from service_tokens left join tenants on tenants.id = tenant where hash = $1",
        )
        .bind(hash.as_slice())
        .fetch_optional(&self.pool)
        .await?;
        found.as_ref().map(token).transpose()
    }

    async fn tokens(&self, filter: &IdentityFilter) -> Result<Vec<TokenRecord>> {
        let found = sqlx::query(
            "select service_tokens.*, tenants.name as tenant_name
               from service_tokens left join tenants on tenants.id = tenant
              where (tenant = $1 or $2 and tenant is null) and ($3::uuid is null or service_tokens.id > $3)
              order by service_tokens.id limit $4",
        )
        .bind(filter.tenant.0)
        .bind(filter.everywhere)
        .bind(filter.after)
        .bind(i64::from(filter.limit))
        .fetch_all(&self.pool)
        .await?;
        found.iter().map(token).collect()
    }

    async fn revoke_token(
        &self,
        filter: &IdentityFilter,
        id: Uuid,
        by: &str,
        at: Instant,
    ) -> Result<Option<TokenRecord>> {
        let found = sqlx::query(
            "update service_tokens
                set revoked_by = coalesce(revoked_by, $4), revoked_at = coalesce(revoked_at, $5)
              where id = $3 and (tenant = $1 or $2 and tenant is null)
             returning *, (select tenants.name from tenants where tenants.id = tenant) as tenant_name",
        )
        .bind(filter.tenant.0)
        .bind(filter.everywhere)
        .bind(id)
        .bind(normal::text(by))
        .bind(at)
        .fetch_optional(&self.pool)
        .await?;
        found.as_ref().map(token).transpose()
    }

    async fn add_grant(&self, new: &GrantRecord) -> Result<GrantRecord> {
        // An update that changes nothing, so that the row that is there comes back.
        let row = sqlx::query(
            "insert into grants (id, who, tenant, role, workflows, created_at, created_by)
             values ($1, $2, $3, $4, $5, $6, $7)
             on conflict (who, tenant, role, workflows) do update set who = excluded.who
             returning *, (select tenants.name from tenants where tenants.id = tenant) as tenant_name",
        )
        .bind(new.id)
        .bind(normal::text(&new.who))
        .bind(new.scope.tenant.map(|tenant| tenant.0))
        .bind(normal::text(&new.scope.role))
        .bind(normal::text(&new.scope.workflows))
        .bind(new.created_at)
        .bind(normal::text(&new.created_by))
        .fetch_one(&self.pool)
        .await?;
        grant(&row)
    }

    async fn grants_of(&self, who: &[String]) -> Result<Vec<GrantRecord>> {
        let found = sqlx::query(
            "select grants.*, tenants.name as tenant_name
               from grants left join tenants on tenants.id = tenant where who = any ($1) order by grants.id",
        )
        .bind(who.iter().map(|who| normal::text(who).into_owned()).collect::<Vec<_>>())
        .fetch_all(&self.pool)
        .await?;
        found.iter().map(grant).collect()
    }

    async fn grants(&self, filter: &IdentityFilter) -> Result<Vec<GrantRecord>> {
        let found = sqlx::query(
            "select grants.*, tenants.name as tenant_name
               from grants left join tenants on tenants.id = tenant
              where (tenant = $1 or $2 and tenant is null) and ($3::uuid is null or grants.id > $3)
              order by grants.id limit $4",
        )
        .bind(filter.tenant.0)
        .bind(filter.everywhere)
        .bind(filter.after)
        .bind(i64::from(filter.limit))
        .fetch_all(&self.pool)
        .await?;
        found.iter().map(grant).collect()
    }

    async fn remove_grant(&self, filter: &IdentityFilter, id: Uuid) -> Result<Option<GrantRecord>> {
        let gone = sqlx::query(
            "delete from grants where id = $3 and (tenant = $1 or $2 and tenant is null)
             returning *, (select tenants.name from tenants where tenants.id = tenant) as tenant_name",
        )
        .bind(filter.tenant.0)
        .bind(filter.everywhere)
        .bind(id)
        .fetch_optional(&self.pool)
        .await?;
        gone.as_ref().map(grant).transpose()
    }

    async fn end_session(&self, hash: &[u8; 32], until: Instant, now: Instant) -> Result<()> {
        sqlx::query("delete from ended_sessions where until <= $1").bind(now).execute(&self.pool).await?;
        sqlx::query(
            "insert into ended_sessions (hash, until) values ($1, $2)
             on conflict (hash) do update set until = greatest(ended_sessions.until, excluded.until)",
        )
        .bind(hash.as_slice())
        .bind(until)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    async fn session_ended(&self, hash: &[u8; 32]) -> Result<bool> {
        let ended = sqlx::query("select 1 from ended_sessions where hash = $1").bind(hash.as_slice());
        Ok(ended.fetch_optional(&self.pool).await?.is_some())
    }
}
