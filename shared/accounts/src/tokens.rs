//! Service tokens. Only their hashes are stored.

mod lookup;

use auth::{Grant, Identity, Role, service_token};
use chrono::TimeDelta;
use model::Instant;
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::{Accounts, CACHE_TTL, Error, IdentityFilter, Result, Scope};
pub(crate) use lookup::Lookup;

/// A service token, without the token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenRecord {
    /// The id of the token.
    pub id: Uuid,
    /// The hash of the token, which itself is not kept.
    pub hash: service_token::Hash,
    /// The purpose of the token.
    pub name: String,
    /// The permissions of its bearer.
    pub scope: Scope,
    /// When it was created.
    pub created_at: Instant,
    /// The account or service token that created it.
    pub created_by: String,
    /// When it expires by itself.
    pub expires_at: Instant,
    /// When and by whom it was revoked.
    pub revoked: Option<(Instant, String)>,
}

/// A token to create.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewToken {
    /// The purpose of the token.
    pub name: String,
    /// The permissions of its bearer.
    pub scope: Scope,
    /// The account or service token that creates it.
    pub created_by: String,
    /// When it expires by itself.
    pub expires_at: Instant,
}

/// The bearer of a service token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Bearer {
    /// The token is good.
    Known(Identity, Vec<Grant>),
    /// The token has expired.
    Expired,
    /// There is no such token, or it was revoked.
    Unknown,
}

fn read(row: &PgRow) -> Result<TokenRecord> {
    let unreadable =
        || Error::Unreadable { what: "service token", why: "its hash does not have 32 bytes".into() };
    let hash: Vec<u8> = row.try_get("hash")?;
    let revoked_at: Option<Instant> = row.try_get("revoked_at")?;
    let revoked_by: Option<String> = row.try_get("revoked_by")?;
    Ok(TokenRecord {
        id: row.try_get("id")?,
        hash: hash.try_into().map_err(|_| unreadable())?,
        name: row.try_get("name")?,
        scope: Scope::read(row)?,
        created_at: row.try_get("created_at")?,
        created_by: row.try_get("created_by")?,
        expires_at: row.try_get("expires_at")?,
        revoked: revoked_at.zip(revoked_by),
    })
}

impl Accounts {
    /// Creates a token. It is returned here and nowhere else.
    pub async fn create_token(&self, new: NewToken, now: Instant) -> Result<(String, TokenRecord)> {
        let (token, hash) = service_token::generate();
        let NewToken { name, scope, created_by, expires_at } = new;
        let (id, created_at) = (Uuid::now_v7(), now);
        let record = TokenRecord { id, hash, name, scope, created_at, created_by, expires_at, revoked: None };
        sqlx::query(
            "insert into service_tokens
                (id, hash, name, tenant, role, workflows, created_at, created_by, expires_at)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(record.id)
        .bind(record.hash.as_slice())
        .bind(store::storable(&record.name))
        .bind(record.scope.tenant.map(|tenant| tenant.0))
        .bind(store::storable(&record.scope.role))
        .bind(store::storable(&record.scope.workflows))
        .bind(record.created_at)
        .bind(store::storable(&record.created_by))
        .bind(record.expires_at)
        .execute(self.pool())
        .await?;
        Ok((token, record))
    }

    /// The bearer of a token, remembered for a few seconds.
    pub async fn bearer(&self, token: &str, now: Instant) -> Result<Bearer> {
        let Some(hash) = service_token::hash(token) else { return Ok(Bearer::Unknown) };
        if let Some((identity, grants)) = self.0.bearers.get(&hash, now) {
            return Ok(Bearer::Known(identity, grants));
        }
        if self.0.unknown.get(&hash, now).is_some() {
            return Ok(Bearer::Unknown);
        }
        let found = self.0.lookup.find(self.pool(), hash).await?;
        let Some(record) = found.filter(|record| record.revoked.is_none()) else {
            self.0.unknown.put(hash, (), now, CACHE_TTL);
            return Ok(Bearer::Unknown);
        };
        if record.expires_at <= now {
            return Ok(Bearer::Expired);
        }
        let Some(grant) = record.scope.grant() else { return Ok(Bearer::Unknown) };
        // Names are not unique, callers are.
        let name = format!("token:{}:{}", record.name, record.id);
        let known = (Identity { name, email: None, groups: Vec::new() }, vec![grant]);
        self.0.bearers.put(hash, known.clone(), now, CACHE_TTL.min(record.expires_at - now));
        Ok(Bearer::Known(known.0, known.1))
    }

    /// Tokens in the order in which they were created.
    pub async fn tokens(&self, filter: &IdentityFilter) -> Result<Vec<TokenRecord>> {
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
        .fetch_all(self.pool())
        .await?;
        found.iter().map(read).collect()
    }

    /// Tokens of the role `worker`, of all tenants, that expire within a time, the first ones first: their names and when.
    pub async fn expiring_worker_tokens(
        &self,
        now: Instant,
        within: TimeDelta,
        limit: u32,
    ) -> Result<Vec<(String, Instant)>> {
        let found = sqlx::query_as(
            "select name, expires_at from service_tokens
              where role = $1 and revoked_at is null and expires_at > $2 and expires_at <= $3
              order by expires_at limit $4",
        )
        .bind(Role::Worker.name())
        .bind(now)
        .bind(now + within)
        .bind(i64::from(limit))
        .fetch_all(self.pool())
        .await?;
        Ok(found)
    }

    /// Revokes a token that the filter covers. Revoking twice changes nothing. Returns the token, if there is one.
    pub async fn revoke_token(
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
        .bind(store::storable(by))
        .bind(at)
        .fetch_optional(self.pool())
        .await?;
        self.forget();
        found.as_ref().map(read).transpose()
    }
}
