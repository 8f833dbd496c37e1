//! Timers.

use async_trait::async_trait;
use model::{Instant, TenantId};

use crate::{DueTimer, Result, TimerFilter, TimerRecord};

/// Timers outside a transaction.
#[async_trait]
pub trait Timers: Send + Sync {
    /// Timers that are due, the longest overdue first.
    async fn due_timers(&self, now: Instant, limit: u32) -> Result<Vec<DueTimer>>;
}

/// Timers as people see them.
#[async_trait]
pub trait TimerViews: Send + Sync {
    /// Pending timers of a tenant, the next one first.
    async fn timers(&self, tenant: TenantId, filter: &TimerFilter) -> Result<Vec<TimerRecord>>;
}
