//! Limits and their wait queues, outside a transaction.

use async_trait::async_trait;
use model::{Granted, Instant, Limit, TaskKey, TenantId};

use super::Memory;
use super::tables::{RunRow, Tables};
use crate::{Contender, FairnessGroupRecord, LimitRecord, Result, SlotViews, SlotWait, Slots};

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
}

#[async_trait]
impl SlotViews for Memory {
    async fn limits(&self, tenant: TenantId) -> Result<Vec<LimitRecord>> {
        Ok(self.shared.tables().slots.list(tenant))
    }

    async fn groups(&self, limit: &Limit) -> Result<Vec<FairnessGroupRecord>> {
        Ok(self.shared.tables().slots.groups(limit))
    }

    async fn holders(&self, tenant: TenantId, runs: u32) -> Result<Vec<Contender>> {
        let tables = self.shared.tables();
        let unfinished = |row: &&RunRow| row.run.tenant == tenant && row.run.finished_at.is_none();
        let tasks = |row: &RunRow| tables.tasks_of(row.run.id, None);
        let holds_slots = tables.runs.values().filter(unfinished).take(runs as usize).flat_map(tasks);
        Ok(holds_slots
            .filter(|(_, task)| task.state.holds_slots())
            .filter_map(|(key, _)| tables.contender(*key))
            .collect())
    }

    async fn line(&self, limit: &Limit, tenant: TenantId, count: u32) -> Result<Vec<Contender>> {
        let tables = self.shared.tables();
        let line = tables.slots.line(limit, tenant).into_iter();
        Ok(line.filter_map(|key| tables.contender(key)).take(count as usize).collect())
    }

    async fn slot_wait(&self, key: TaskKey) -> Result<Option<SlotWait>> {
        Ok(self.shared.tables().slots.slot_wait(key))
    }
}

impl Tables {
    fn contender(&self, key: TaskKey) -> Option<Contender> {
        let (run, task) = (&self.runs.get(&key.run)?.run, self.tasks.get(&key)?.clone());
        Some(Contender { run: key.run, workflow: run.workflow.clone(), version: run.version, task })
    }
}
