//! Tenants.

use async_trait::async_trait;
use model::{Instant, TenantId};

use crate::Result;

/// The names of tenants and their ids.
#[async_trait]
pub trait Tenants: Send + Sync {
    /// The tenant of that name, created if there is none.
    async fn tenant(&self, name: &str, now: Instant) -> Result<TenantId>;

    /// The tenant of that name, if there is one.
    async fn tenant_named(&self, name: &str) -> Result<Option<TenantId>>;

    /// The name of a tenant, which never changes.
    async fn tenant_name(&self, tenant: TenantId) -> Result<Option<String>>;
}
