//! Tenants, as whoever runs the whole instance sees them.

use async_trait::async_trait;
use model::{Instant, TenantId};

use crate::Result;

/// A tenant as readers see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TenantRecord {
    /// Its number.
    pub id: TenantId,
    /// Its name.
    pub name: String,
    /// When it came into being.
    pub created_at: Instant,
    /// How often it comes in each round of a line.
    pub weight: u32,
    /// How many of its tasks may be under way at the same time; none if there is no bound.
    pub slots: Option<u32>,
    /// How many are.
    pub used: u32,
    /// How many wait because of that bound.
    pub waiting: u32,
}

/// Which tenants to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TenantFilter {
    /// Only those of these names.
    pub names: Option<Vec<String>>,
    /// Only those that came into being after this one.
    pub after: Option<TenantId>,
    /// At most so many.
    pub limit: u32,
}

/// Tenants.
#[async_trait]
pub trait Tenants: Send + Sync {
    /// The tenant of that name, which comes into being if there is none.
    async fn tenant(&self, name: &str, now: Instant) -> Result<TenantId>;

    /// The tenant of that name, if there is one.
    async fn tenant_named(&self, name: &str) -> Result<Option<TenantId>>;

    /// Tenants in the order in which they came into being.
    async fn tenants(&self, filter: &TenantFilter) -> Result<Vec<TenantRecord>>;
}
