//! One unit: what it wrote, laid over what is committed.

use std::collections::BTreeSet;

use async_trait::async_trait;
use model::{Changes, Run, RunId, Task, TaskIndex, TaskKey, VersionId};
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use super::Shared;
use super::draft::Draft;
use crate::{Birth, Context, Created, Error, Result, Unit, Unsent, VersionRecord};

/// The one open unit. Dropped, it takes its draft with it.
pub(super) struct MemoryUnit {
    shared: Shared,
    draft: Draft,
    /// Set by the first error: half of what was asked may be written, so committing is refused.
    broken: bool,
    _turn: OwnedMutexGuard<()>,
}

impl MemoryUnit {
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
impl Unit for MemoryUnit {
    async fn lock(&mut self, runs: &[RunId]) -> Result<Vec<Run>> {
        let tables = self.shared.tables();
        let ids: BTreeSet<RunId> = runs.iter().copied().collect();
        Ok(ids.into_iter().filter_map(|id| self.draft.run(&tables, id).cloned()).collect())
    }

    async fn tasks(&mut self, keys: &[TaskKey]) -> Result<Vec<(RunId, Task)>> {
        let tables = self.shared.tables();
        let keys: BTreeSet<TaskKey> = keys.iter().copied().collect();
        let found = |key: TaskKey| self.draft.task(&tables, key).map(|task| (key.run, task.clone()));
        Ok(keys.into_iter().filter_map(found).collect())
    }

    async fn unfinished(&mut self, runs: &[RunId]) -> Result<Vec<(RunId, Task)>> {
        let tables = self.shared.tables();
        let ids: BTreeSet<RunId> = runs.iter().copied().collect();
        Ok(ids.into_iter().flat_map(|id| self.draft.unfinished(&tables, id)).collect())
    }

    async fn version(&mut self, id: VersionId) -> Result<Option<VersionRecord>> {
        Ok(self.shared.tables().versions.get(&id).cloned())
    }

    async fn context(&mut self, run: RunId, tasks: &[TaskIndex]) -> Result<Option<Context>> {
        Ok(self.draft.context(&self.shared.tables(), run, tasks))
    }

    async fn signal(&mut self, run: RunId, name: &str) -> Result<Option<Value>> {
        Ok(self.draft.signal(&self.shared.tables(), run, name))
    }

    async fn create(&mut self, birth: &Birth) -> Result<Created> {
        let created = self.draft.create(&self.shared.tables(), birth);
        self.note(created)
    }

    async fn save(&mut self, changes: &[Changes]) -> Result<()> {
        let saved = self.write(changes);
        self.note(saved)
    }

    async fn commit(self: Box<Self>) -> Result<Vec<Unsent>> {
        if self.broken {
            return Err(Error::Conflict);
        }
        Ok(self.draft.apply(&mut self.shared.tables()))
    }
}
