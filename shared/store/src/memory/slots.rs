//! Limits and their wait queues, outside a transaction.

use async_trait::async_trait;
use model::{Instant, Limit, TaskKey, TenantId};

use super::Memory;
use super::tables::{RunRow, Tables};
use crate::{Contender, Granted, InLine, LimitRecord, Result, SlotViews, Slots, StandingRecord};

#[async_trait]
impl Slots for Memory {
    async fn set_places(&self, limit: &Limit, places: Option<u32>) -> Result<()> {
        let _turn = self.turn.lock().await;
        self.shared.tables().places.set_places(limit, places);
        Ok(())
    }

    async fn set_weight(&self, tenant: TenantId, weight: u32) -> Result<()> {
        let _turn = self.turn.lock().await;
        self.shared.tables().places.set_weight(tenant, weight);
        Ok(())
    }

    async fn untaken(&self, before: Instant, limit: u32) -> Result<Vec<Granted>> {
        Ok(self.shared.tables().places.untaken(before, limit))
    }
}

#[async_trait]
impl SlotViews for Memory {
    async fn limits(&self, tenant: TenantId) -> Result<Vec<LimitRecord>> {
        Ok(self.shared.tables().places.list(tenant))
    }

    async fn standings(&self, limit: &Limit) -> Result<Vec<StandingRecord>> {
        Ok(self.shared.tables().places.standings(limit))
    }

    async fn holders(&self, tenant: TenantId, runs: u32) -> Result<Vec<Contender>> {
        let tables = self.shared.tables();
        let unfinished = |row: &&RunRow| row.run.tenant == tenant && row.run.finished_at.is_none();
        let tasks = |row: &RunRow| tables.tasks_of(row.run.id, None);
        let placed = tables.runs.values().filter(unfinished).take(runs as usize).flat_map(tasks);
        Ok(placed
            .filter(|(_, task)| task.state.is_placed())
            .filter_map(|(key, _)| tables.contender(*key))
            .collect())
    }

    async fn line(&self, limit: &Limit, tenant: TenantId, count: u32) -> Result<Vec<Contender>> {
        let tables = self.shared.tables();
        let line = tables.places.line(limit, tenant).into_iter();
        Ok(line.filter_map(|key| tables.contender(key)).take(count as usize).collect())
    }

    async fn in_line(&self, key: TaskKey) -> Result<Option<InLine>> {
        Ok(self.shared.tables().places.in_line(key))
    }
}

impl Tables {
    fn contender(&self, key: TaskKey) -> Option<Contender> {
        let (run, task) = (&self.runs.get(&key.run)?.run, self.tasks.get(&key)?.clone());
        Some(Contender { run: key.run, workflow: run.workflow.clone(), version: run.version, task })
    }
}
