//! Timers.

use async_trait::async_trait;
use model::Instant;

use crate::{DueTimer, Result};

/// Timers outside a transaction.
#[async_trait]
pub trait Timers: Send + Sync {
    /// Timers that are due, the longest overdue first.
    async fn due_timers(&self, now: Instant, limit: u32) -> Result<Vec<DueTimer>>;
}
