//! Tenants: a role sees its own only, so this list is read outside it, with the names that the caller's grants cover.

use auth::{Denied, Permission, TenantScope};
use model::{Instant, TenantId};
use sqlx::Row;
use sqlx::postgres::PgRow;
use store::{rows, storable};

use crate::{Listing, Reader, Result, listing};

/// A tenant with its weight and limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TenantRecord {
    /// The number that rows carry.
    pub id: TenantId,
    /// The name of the tenant, which is unique.
    pub name: String,
    /// When it was created.
    pub created_at: Instant,
    /// The turns it takes in each round of a wait queue.
    pub weight: u32,
    /// The maximum number of its active tasks; none for no limit.
    pub slots: Option<u32>,
    /// How many of its tasks are active.
    pub used: u32,
    /// How many of its tasks wait because of that limit.
    pub waiting: u32,
}

/// The tenants in which a caller may read something.
#[derive(Clone, Copy, Debug)]
pub struct Tenants<'a> {
    pub(crate) reader: &'a Reader,
}

impl Tenants<'_> {
    /// The tenants in which the caller may read something, in the order of their creation, after the given one.
    pub async fn list(&self, after: Option<TenantId>, limit: u32) -> Result<Listing<TenantRecord, TenantId>> {
        let found = self.rows(self.readable(), after, limit).await?;
        Ok(Listing::new(found, limit, |tenant: &TenantRecord| tenant.id))
    }

    /// The tenant of that name.
    pub async fn named(&self, name: &str) -> Result<TenantRecord> {
        let readable = self.readable();
        let missing = || Denied::NotFound(format!("tenant `{name}`"));
        if readable.is_some_and(|names| names.iter().all(|readable| readable != name)) {
            return Err(missing().into());
        }
        let found = self.rows(Some(vec![name.to_owned()]), None, 1).await?.into_iter().next();
        Ok(found.ok_or_else(missing)?)
    }

    /// The names of the tenants in which the caller may read something; none for all of them.
    fn readable(&self) -> Option<Vec<String>> {
        let mut names = Vec::new();
        for grant in self.reader.caller.grants.iter().filter(|grant| grant.role.has(Permission::Read)) {
            match &grant.tenant {
                TenantScope::All => return None,
                TenantScope::One(name) => names.push(name.clone()),
            }
        }
        Some(names)
    }

    async fn rows(
        &self,
        names: Option<Vec<String>>,
        after: Option<TenantId>,
        limit: u32,
    ) -> Result<Vec<TenantRecord>> {
        let names =
            names.map(|names| names.iter().map(|name| storable(name).into_owned()).collect::<Vec<_>>());
        let found = sqlx::query(include_str!("../queries/list_tenants.sql"))
            .bind(names)
            .bind(after.map(|after| after.0))
            .bind(listing::rows(limit))
            .fetch_all(self.reader.all_tenants())
            .await?;
        found.iter().map(record).collect()
    }
}

fn record(row: &PgRow) -> Result<TenantRecord> {
    Ok(TenantRecord {
        id: TenantId(row.try_get("id")?),
        name: row.try_get("name")?,
        created_at: row.try_get("created_at")?,
        weight: rows::number(row, "weight")?,
        slots: row.try_get::<Option<i32>, _>("slots")?.map(i32::unsigned_abs),
        used: rows::number(row, "used")?,
        waiting: rows::number(row, "waiting")?,
    })
}
