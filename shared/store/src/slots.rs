//! Limits, and the tasks that have or wait for their slots.

use async_trait::async_trait;
use model::{Granted, Instant, Limit, TaskKey, TenantId};

use crate::{LimitRecord, Result, SlotWait};

/// Limits and their wait queues, outside a transaction.
#[async_trait]
pub trait Slots: Send + Sync {
    /// Sets the number of slots of a limit; none for no bound. Tasks that have a slot keep it.
    async fn set_slots(&self, limit: &Limit, slots: Option<u32>) -> Result<()>;

    /// Sets a tenant's weight: how often it comes in each round of a wait queue, from 1 to 1,000.
    async fn set_weight(&self, tenant: TenantId, weight: u32) -> Result<()>;

    /// Tasks that were granted slots by `before` and have not claimed them, the longest ago first.
    async fn untaken(&self, before: Instant, limit: u32) -> Result<Vec<Granted>>;

    /// Every limit that tasks of a tenant have needed a slot of, by kind and name.
    async fn limits(&self, tenant: TenantId) -> Result<Vec<LimitRecord>>;

    /// The place of a task in a wait queue, if it is in one.
    async fn slot_wait(&self, key: TaskKey) -> Result<Option<SlotWait>>;
}
