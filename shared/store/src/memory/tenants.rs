//! Tenants.

use async_trait::async_trait;
use model::{Instant, TenantId};

use super::Memory;
use super::tables::Tables;
use crate::{Result, Tenants};

#[async_trait]
impl Tenants for Memory {
    async fn tenant(&self, name: &str, now: Instant) -> Result<TenantId> {
        Ok(self.shared.tables().tenant(name, now))
    }

    async fn tenant_named(&self, name: &str) -> Result<Option<TenantId>> {
        Ok(self.shared.tables().tenant_named(name))
    }

    async fn tenant_name(&self, tenant: TenantId) -> Result<Option<String>> {
        let tables = self.shared.tables();
        let found = tables.all_tenants().find(|(id, ..)| *id == tenant);
        Ok(found.map(|(_, name, _)| name.to_owned()))
    }
}

/// A tenant besides the default one.
pub(super) struct TenantRow {
    pub(super) name: String,
    pub(super) created_at: Instant,
}

impl Tables {
    /// Every tenant by its number, with its name and when it was created.
    pub(super) fn all_tenants(&self) -> impl Iterator<Item = (TenantId, &str, Instant)> {
        let first = std::iter::once(("default", Instant::UNIX_EPOCH));
        let others = self.tenants.iter().map(|row| (row.name.as_str(), row.created_at));
        let numbers = (TenantId::DEFAULT.0..).map(TenantId);
        numbers.zip(first.chain(others)).map(|(id, (name, created_at))| (id, name, created_at))
    }
}
