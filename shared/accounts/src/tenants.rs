//! Tenants by name.

use auth::DEFAULT_TENANT;
use chrono::TimeDelta;
use model::{Instant, TenantId};
use store::Tenants;

use crate::{Accounts, Result};

impl Accounts {
    /// The id of a tenant. A tenant that does not exist is created if `create` says so.
    pub async fn tenant(&self, name: &str, create: bool, now: Instant) -> Result<Option<TenantId>> {
        if name == DEFAULT_TENANT {
            return Ok(Some(TenantId::DEFAULT));
        }
        let key = name.to_owned();
        if let Some(known) = self.0.tenants.get(&key, now) {
            return Ok(Some(known));
        }
        let database = &self.0.database;
        let tenant = match database.tenant_named(name).await? {
            None if create => Some(database.tenant(name, now).await?),
            found => found,
        };
        if let Some(tenant) = tenant {
            self.0.tenants.put(key, tenant, now, TimeDelta::hours(1));
        }
        Ok(tenant)
    }
}
