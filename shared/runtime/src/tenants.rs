//! Tenants: creating them, their weights and limits, and how much of its quotas each has used.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use model::{Limit, TenantId, TenantName};
use store::Usage;

use crate::{Error, Result, Runtime};

/// How many names are cached; beyond that the oldest tenant's goes first.
const MAX_NAMES: usize = 10_000;

/// The names of tenants, which never change.
#[derive(Default)]
pub(crate) struct Names(Mutex<BTreeMap<TenantId, TenantName>>);

/// Creates tenants and changes their weights and limits.
#[derive(Clone, Copy)]
pub struct Tenants<'r> {
    runtime: &'r Runtime,
}

/// Changes to a tenant; fields that are none stay as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TenantChange {
    /// The turns it takes in each round of a wait queue, from 1 to 1,000.
    pub weight: Option<u32>,
    /// The maximum number of its active tasks; `Some(None)` for no limit.
    pub max_active_tasks: Option<Option<u32>>,
}

impl Runtime {
    /// Tenants: their weights, limits and quotas.
    pub fn tenants(&self) -> Tenants<'_> {
        Tenants { runtime: self }
    }
}

impl Tenants<'_> {
    /// Changes a tenant, which is created if there is none of that name. Tasks for which there is room now begin.
    pub async fn change(self, name: &str, change: TenantChange) -> Result<()> {
        let tenant = self.runtime.store.tenant(name, self.runtime.clock.now()).await?;
        if let Some(weight) = change.weight {
            self.runtime.store.set_weight(tenant, weight).await?;
        }
        if let Some(slots) = change.max_active_tasks {
            self.runtime.slots().resize(&Limit::Tenant(tenant), slots).await?;
        }
        Ok(())
    }

    /// The name of a tenant, from the cache or the store.
    pub async fn name(self, tenant: TenantId) -> Result<TenantName> {
        if tenant == TenantId::DEFAULT {
            return Ok(TenantName::default_tenant());
        }
        let names = || self.runtime.tenant_names.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = names().get(&tenant).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = self.runtime.store.tenant_name(tenant).await?;
        let found = found.ok_or_else(|| Error::NoSuchTenant(tenant.0.to_string()))?;
        let name = TenantName::new(&found).map_err(|_| Error::NoSuchTenant(found))?;
        let mut names = names();
        names.insert(tenant, name.clone());
        if names.len() > MAX_NAMES {
            names.pop_first();
        }
        Ok(name)
    }

    /// How many unfinished runs and workflows a tenant has, of each at most `max`.
    pub async fn usage(self, tenant: TenantId, max: u32) -> Result<Usage> {
        Ok(self.runtime.store.usage(tenant, max).await?)
    }

    /// How many of these workflows a tenant does not have yet.
    pub async fn count_new_workflows(self, tenant: TenantId, names: &[String]) -> Result<usize> {
        let mut new = 0;
        for name in names {
            new += usize::from(self.runtime.store.active(tenant, name).await?.is_none());
        }
        Ok(new)
    }
}
