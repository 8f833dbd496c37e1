//! Tenants: creating them, their weights and limits, and how much of its quotas each has used.

use model::{Limit, TenantId};
use store::Usage;

use crate::{Result, Runtime};

/// Creates tenants and changes their weights and limits.
#[derive(Clone, Copy)]
pub struct Tenants<'r> {
    runtime: &'r Runtime,
}

/// What to change about a tenant; fields that are none stay as they are.
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
