//! One transaction: what it wrote, laid over what is committed.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use model::wait_queue::{SlotChanges, SlotRead, SlotRows};
use model::{Audit, Changes, Instant, Run, RunId, Task, TaskIndex, TaskKey, TenantId, VersionId};
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use super::draft::Draft;
use super::inspection;
use super::retention;
use super::{Memory, Shared};
use crate::{
    ConcurrencyMember, Context, Created, DueTimer, Error, NewRunRecord, Part, Result, Share, ShareAsk,
    Transaction, TransactionSlots, Transactions, Unsent, VersionRecord,
};

/// The one open transaction. Dropped, it takes its draft with it.
pub(super) struct MemoryTransaction {
    pub(super) shared: Shared,
    pub(super) draft: Draft,
    /// Set by the first error: half of what was asked may be written, so committing is refused.
    broken: bool,
    _turn: OwnedMutexGuard<()>,
}

impl MemoryTransaction {
    pub(super) fn new(shared: Shared, turn: OwnedMutexGuard<()>) -> Self {
        Self { shared, draft: Draft::default(), broken: false, _turn: turn }
    }

    fn note<T>(&mut self, result: Result<T>) -> Result<T> {
        self.broken |= result.is_err();
        result
    }

    fn write(&mut self, changes: &[Changes]) -> Result<()> {
        let tables = self.shared.tables();
        changes.iter().try_for_each(|each| self.draft.save(&tables, each))
    }
}

#[async_trait]
impl Transaction for MemoryTransaction {
    async fn lock(&mut self, runs: &[RunId]) -> Result<Vec<Run>> {
        let tables = self.shared.tables();
        let ids: BTreeSet<RunId> = runs.iter().copied().collect();
        Ok(ids.into_iter().filter_map(|id| self.draft.run(&tables, id).cloned()).collect())
    }

    async fn tasks(&mut self, keys: &[TaskKey]) -> Result<Vec<(RunId, Task)>> {
        let tables = self.shared.tables();
        let mut keys: BTreeSet<TaskKey> = keys.iter().copied().collect();
        let fan_out = |key: &TaskKey| {
            let child = self.draft.task(&tables, *key)?.child?;
            Some(TaskKey { run: key.run, task: child.of })
        };
        let fan_outs: Vec<TaskKey> = keys.iter().filter_map(fan_out).collect();
        keys.extend(fan_outs);
        let found = |key: TaskKey| self.draft.task(&tables, key).map(|task| (key.run, task.clone()));
        Ok(keys.into_iter().filter_map(found).collect())
    }

    async fn unfinished(&mut self, runs: &[RunId]) -> Result<Vec<(RunId, Task)>> {
        let tables = self.shared.tables();
        let ids: BTreeSet<RunId> = runs.iter().copied().collect();
        let open = |(_, task): &(RunId, Task)| task.finished_at.is_none();
        Ok(ids.into_iter().flat_map(|id| self.draft.tasks_of(&tables, id)).filter(open).collect())
    }

    async fn all_tasks(&mut self, runs: &[RunId]) -> Result<Vec<(RunId, Task)>> {
        let tables = self.shared.tables();
        let ids: BTreeSet<RunId> = runs.iter().copied().collect();
        Ok(ids.into_iter().flat_map(|id| self.draft.tasks_of(&tables, id)).collect())
    }

    async fn version(&mut self, id: VersionId) -> Result<Option<VersionRecord>> {
        Ok(self.shared.tables().versions.get(&id).cloned())
    }

    async fn context(&mut self, run: RunId, tasks: &[TaskIndex]) -> Result<Option<Context>> {
        self.draft.context(&self.shared.tables(), run, tasks)
    }

    async fn items(&mut self, run: RunId, children: &[TaskIndex]) -> Result<BTreeMap<TaskIndex, Value>> {
        Ok(self.draft.items(&self.shared.tables(), run, children))
    }

    async fn delivered(
        &mut self,
        run: RunId,
        first: TaskIndex,
        count: u32,
        field: Option<&str>,
    ) -> Result<BTreeMap<TaskIndex, Value>> {
        self.draft.delivered(&self.shared.tables(), run, first, count, field)
    }

    async fn share(&mut self, ask: &ShareAsk) -> Result<Share> {
        let share = self.draft.share(&self.shared.tables(), ask);
        self.note(share)
    }

    async fn concurrency_group(
        &mut self,
        tenant: TenantId,
        workflow: &str,
        group: &str,
    ) -> Result<Vec<ConcurrencyMember>> {
        Ok(self.draft.concurrency_group(&self.shared.tables(), tenant, workflow, group))
    }

    async fn ancestors(&mut self, run: RunId) -> Result<BTreeSet<RunId>> {
        let tables = self.shared.tables();
        let parent = |run: &RunId| self.draft.run(&tables, *run)?.parent.filter(|parent| parent.waits);
        Ok(std::iter::successors(Some(run), |run| Some(parent(run)?.key.run)).collect())
    }

    async fn has_forgotten_outputs(&mut self, run: &Run) -> Result<bool> {
        Ok(retention::has_forgotten(&self.shared.tables(), Part::Outputs, run))
    }

    async fn audit(&mut self, run: RunId) -> Result<Audit> {
        Ok(inspection::audit(&self.shared.tables(), run))
    }

    async fn signal(&mut self, run: RunId, name: &str) -> Result<Option<Value>> {
        Ok(self.draft.signal(&self.shared.tables(), run, name))
    }

    async fn due_timers(&mut self, now: Instant, limit: u32) -> Result<Vec<DueTimer>> {
        Ok(self.shared.tables().due_timers(now, limit))
    }

    async fn create(&mut self, new_runs: &[NewRunRecord]) -> Result<Vec<Created>> {
        let tables = self.shared.tables();
        let created = new_runs.iter().map(|new_run| self.draft.create(&tables, new_run)).collect();
        drop(tables);
        self.note(created)
    }

    async fn save(&mut self, changes: &[Changes]) -> Result<()> {
        let saved = self.write(changes);
        self.note(saved)
    }

    async fn commit(self: Box<Self>) -> Result<Option<Unsent>> {
        if self.broken {
            return Err(Error::Conflict);
        }
        Ok(self.draft.apply(&mut self.shared.tables()))
    }
}

#[async_trait]
impl TransactionSlots for MemoryTransaction {
    async fn read_slots(&mut self, read: &SlotRead) -> Result<SlotRows> {
        Ok(self.draft.read_slots(&self.shared.tables(), read))
    }

    async fn save_slots(&mut self, changes: &SlotChanges) -> Result<()> {
        self.draft.save_slots(&self.shared.tables(), changes);
        Ok(())
    }

    async fn count_slots(&mut self) -> Result<Option<SlotRows>> {
        Ok(self.draft.count_slots())
    }
}

#[async_trait]
impl Transactions for Memory {
    async fn begin(&self) -> Result<Box<dyn Transaction>> {
        let turn = self.turn.clone().lock_owned().await;
        Ok(Box::new(MemoryTransaction::new(self.shared.clone(), turn)))
    }

    async fn ping(&self) -> Result<()> {
        Ok(())
    }
}
