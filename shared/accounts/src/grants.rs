//! Grants made over the API.

use auth::{Grant, Identity};
use model::Instant;
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::{Accounts, CACHE_TTL, IdentityFilter, Result, Scope};

/// A role granted to someone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GrantRecord {
    /// The id of the grant.
    pub id: Uuid,
    /// The grantee: an email address, a domain or a group.
    pub who: String,
    /// The permission that they have.
    pub scope: Scope,
    /// When it was granted.
    pub created_at: Instant,
    /// The account or service token that granted it.
    pub created_by: String,
}

fn read(row: &PgRow) -> Result<GrantRecord> {
    Ok(GrantRecord {
        id: row.try_get("id")?,
        who: row.try_get("who")?,
        scope: Scope::read(row)?,
        created_at: row.try_get("created_at")?,
        created_by: row.try_get("created_by")?,
    })
}

impl Accounts {
    /// The grants of an identity, remembered for a few seconds.
    pub async fn grants_of(&self, identity: &Identity, now: Instant) -> Result<Vec<Grant>> {
        let names = identity.principals();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(known) = self.0.grants.get(&names, now) {
            return Ok(known);
        }
        let found = sqlx::query(
            "select grants.*, tenants.name as tenant_name
               from grants left join tenants on tenants.id = tenant where who = any ($1) order by grants.id",
        )
        .bind(names.iter().map(|name| store::storable(name).into_owned()).collect::<Vec<_>>())
        .fetch_all(self.pool())
        .await?;
        let found = found.iter().map(read).collect::<Result<Vec<_>>>()?;
        let grants: Vec<Grant> = found.iter().filter_map(|record| record.scope.grant()).collect();
        self.0.grants.put(names, grants.clone(), now, CACHE_TTL);
        Ok(grants)
    }

    /// Grants in the order in which they were made.
    pub async fn grants(&self, filter: &IdentityFilter) -> Result<Vec<GrantRecord>> {
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
        .fetch_all(self.pool())
        .await?;
        found.iter().map(read).collect()
    }

    /// Adds a grant, unless the same one exists. Returns the existing one.
    pub async fn add_grant(&self, new: &GrantRecord) -> Result<GrantRecord> {
        // The update changes nothing; it makes the statement return an existing row.
        let row = sqlx::query(
            "insert into grants (id, who, tenant, role, workflows, created_at, created_by)
             values ($1, $2, $3, $4, $5, $6, $7)
             on conflict (who, tenant, role, workflows) do update set who = excluded.who
             returning *, (select tenants.name from tenants where tenants.id = tenant) as tenant_name",
        )
        .bind(new.id)
        .bind(store::storable(&new.who))
        .bind(new.scope.tenant.map(|tenant| tenant.0))
        .bind(store::storable(&new.scope.role))
        .bind(store::storable(&new.scope.workflows))
        .bind(new.created_at)
        .bind(store::storable(&new.created_by))
        .fetch_one(self.pool())
        .await?;
        self.forget();
        read(&row)
    }

    /// Removes a grant that the filter covers. Returns it, if there was one.
    pub async fn remove_grant(&self, filter: &IdentityFilter, id: Uuid) -> Result<Option<GrantRecord>> {
        let gone = sqlx::query(
            "delete from grants where id = $3 and (tenant = $1 or $2 and tenant is null)
             returning *, (select tenants.name from tenants where tenants.id = tenant) as tenant_name",
        )
        .bind(filter.tenant.0)
        .bind(filter.everywhere)
        .bind(id)
        .fetch_optional(self.pool())
        .await?;
        self.forget();
        gone.as_ref().map(read).transpose()
    }
}
