//! Messages that are committed and not yet published.

use async_trait::async_trait;
use model::Instant;

use crate::{Result, Unsent};

/// Messages that are committed and not yet published.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Outbox rows written at `before` or earlier and not yet marked as sent, oldest first.
    async fn unsent(&self, before: Instant, limit: u32) -> Result<Vec<Unsent>>;

    /// Marks outbox rows as sent. Marking twice changes nothing.
    async fn sent(&self, ids: &[i64]) -> Result<()>;
}
