//! Tenants.

use async_trait::async_trait;
use model::{Instant, Limit, TenantId};

use super::Memory;
use super::tables::Tables;
use crate::{Result, TenantFilter, TenantRecord, Tenants, normal};

#[async_trait]
impl Tenants for Memory {
    async fn tenant(&self, name: &str, now: Instant) -> Result<TenantId> {
        Ok(self.shared.tables().tenant(name, now))
    }

    async fn tenant_named(&self, name: &str) -> Result<Option<TenantId>> {
        Ok(self.shared.tables().tenant_named(name))
    }

    async fn tenants(&self, filter: &TenantFilter) -> Result<Vec<TenantRecord>> {
        let tables = self.shared.tables();
        let named = |name: &str| {
            let names = filter.names.as_ref();
            names.is_none_or(|names| names.iter().any(|wanted| normal::text(wanted) == name))
        };
        let wanted = tables
            .all_tenants()
            .filter(|(id, name, _)| named(name) && filter.after.is_none_or(|after| *id > after));
        let records = wanted.map(|(id, name, created_at)| tenant_record(&tables, id, name, created_at));
        Ok(records.take(filter.limit as usize).collect())
    }
}

/// A tenant that came into being after the default one.
pub(super) struct TenantRow {
    pub(super) name: String,
    pub(super) created_at: Instant,
}

impl Tables {
    /// Every tenant by its number, with its name and when it came into being.
    pub(super) fn all_tenants(&self) -> impl Iterator<Item = (TenantId, &str, Instant)> {
        let first = std::iter::once(("default", Instant::UNIX_EPOCH));
        let others = self.tenants.iter().map(|row| (row.name.as_str(), row.created_at));
        let numbers = (TenantId::DEFAULT.0..).map(TenantId);
        numbers.zip(first.chain(others)).map(|(id, (name, created_at))| (id, name, created_at))
    }
}

fn tenant_record(tables: &Tables, id: TenantId, name: &str, created_at: Instant) -> TenantRecord {
    let limit = tables.slots.list(id).into_iter().find(|row| row.limit == Limit::Tenant(id));
    TenantRecord {
        id,
        name: name.to_owned(),
        created_at,
        weight: tables.slots.weight(id),
        slots: limit.as_ref().and_then(|limit| limit.slots),
        used: limit.as_ref().map_or(0, |limit| limit.used),
        waiting: limit.as_ref().map_or(0, |limit| limit.waiting),
    }
}
