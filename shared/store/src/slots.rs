//! Limits, and who has or waits for their slots.

use async_trait::async_trait;
use model::{Granted, Instant, Limit, TaskKey, TenantId};

use crate::{Contender, FairnessGroupRecord, LimitRecord, Result, SlotWait};

/// Limits, and who was granted a slot.
#[async_trait]
pub trait Slots: Send + Sync {
    /// Sets the number of slots of a limit; none for no bound. Tasks that have a slot keep it.
    async fn set_slots(&self, limit: &Limit, slots: Option<u32>) -> Result<()>;

    /// Sets a tenant's weight: how often it comes in each round of a wait queue, from 1 to 1,000.
    async fn set_weight(&self, tenant: TenantId, weight: u32) -> Result<()>;

    /// Tasks that were granted slots by `before` and have not claimed them, the longest ago first.
    async fn untaken(&self, before: Instant, limit: u32) -> Result<Vec<Granted>>;
}

/// Limits and their wait queues as people see them.
#[async_trait]
pub trait SlotViews: Send + Sync {
    /// Every limit that a tenant's tasks need a place of, by kind and name.
    async fn limits(&self, tenant: TenantId) -> Result<Vec<LimitRecord>>;

    /// What each tenant in the line of a limit has coming and was given.
    async fn groups(&self, limit: &Limit) -> Result<Vec<FairnessGroupRecord>>;

    /// The tasks of a tenant that hold their slots, those of its oldest runs first, in at most `runs` unfinished runs.
    async fn holders(&self, tenant: TenantId, runs: u32) -> Result<Vec<Contender>>;

    /// The tasks of a tenant that wait for a slot of a limit, in the order in which they get one.
    async fn line(&self, limit: &Limit, tenant: TenantId, count: u32) -> Result<Vec<Contender>>;

    /// Where a task stands in line, if it does.
    async fn slot_wait(&self, key: TaskKey) -> Result<Option<SlotWait>>;
}
