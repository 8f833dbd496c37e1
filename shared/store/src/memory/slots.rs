//! Limits and their wait queues, outside a transaction.

use async_trait::async_trait;
use model::{Granted, Instant, Limit, TaskKey, TenantId};

use super::Memory;
use super::breakers;
use crate::{LimitRecord, Result, SlotWait, Slots};

#[async_trait]
impl Slots for Memory {
    async fn set_slots(&self, limit: &Limit, slots: Option<u32>) -> Result<()> {
        let _turn = self.turn.lock().await;
        self.shared.tables().slots.set_slots(limit, slots);
        Ok(())
    }

    async fn set_weight(&self, tenant: TenantId, weight: u32) -> Result<()> {
        let _turn = self.turn.lock().await;
        self.shared.tables().slots.set_weight(tenant, weight);
        Ok(())
    }

    async fn untaken(&self, before: Instant, limit: u32) -> Result<Vec<Granted>> {
        Ok(self.shared.tables().slots.untaken(before, limit))
    }

    async fn limits(&self, tenant: TenantId) -> Result<Vec<LimitRecord>> {
        Ok(self.shared.tables().slots.list(tenant))
    }

    async fn slot_wait(&self, key: TaskKey) -> Result<Option<SlotWait>> {
        let tables = self.shared.tables();
        let wait = tables.slots.slot_wait(key);
        Ok(wait.map(|wait| SlotWait { until: breakers::pause_end(&tables.breakers, &wait.limit), ..wait }))
    }
}
