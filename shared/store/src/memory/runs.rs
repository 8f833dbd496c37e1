//! Runs outside a transaction.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{Event, RunId, Task, TaskIndex, TaskKey, TaskState, TenantId, Timer, TimerKind};
use serde_json::Value;

use super::Memory;
use super::tables::{RunRow, Tables};
use crate::outputs::Outputs;
use crate::{Result, RunFilter, RunRecord, Runs, Starter, TaskRecord, chunks};

#[async_trait]
impl Runs for Memory {
    async fn run(&self, tenant: TenantId, id: RunId) -> Result<Option<RunRecord>> {
        Ok(self.shared.tables().run(tenant, id))
    }

    async fn runs(&self, tenant: TenantId, filter: &RunFilter) -> Result<Vec<RunRecord>> {
        Ok(self.shared.tables().runs(tenant, filter))
    }

    async fn run_tasks(
        &self,
        run: RunId,
        children_of: Option<TaskIndex>,
        after: Option<TaskIndex>,
        limit: u32,
    ) -> Result<Vec<TaskRecord>> {
        let tables = self.shared.tables();
        let record = |(key, task): (&TaskKey, &Task)| TaskRecord {
            task: task.clone(),
            output: tables.outputs.get(key).cloned(),
            timer: tables.first_timer(*key).cloned(),
            shared_with: tables.waiters.get(key).map(|(owner, _)| *owner),
        };
        let of = |task: &Task| task.child.map(|child| child.of) == children_of;
        let wanted =
            tables.tasks_of(run, after).filter(|(_, task)| of(task) && task.state != TaskState::Removed);
        Ok(wanted.take(limit as usize).map(record).collect())
    }

    async fn item(&self, child: TaskKey) -> Result<Option<Value>> {
        Ok(self.shared.tables().items.get(&child).cloned())
    }

    async fn outputs(&self, run: RunId, tasks: &[TaskIndex]) -> Result<BTreeMap<TaskIndex, Value>> {
        Outputs::gather(self.shared.tables().outputs(run, tasks))
    }

    async fn events(&self, run: RunId, from: i64, limit: u32) -> Result<Vec<(i64, Event)>> {
        Ok(self.shared.tables().events(run, from, limit))
    }

    async fn waiters(&self, owner: TaskKey, limit: u32) -> Result<Vec<(TaskKey, u32)>> {
        let tables = self.shared.tables();
        let waiting = tables.waiters.iter().filter(|(_, (waited_for, _))| *waited_for == owner);
        Ok(waiting.map(|(key, (_, attempt))| (*key, *attempt)).take(limit as usize).collect())
    }

    async fn give_up_date(&self, run: RunId) -> Result<()> {
        let mut tables = self.shared.tables();
        if tables.runs.get(&run).is_some_and(|row| row.run.state.is_final()) {
            tables.dates.retain(|_, of| *of != run);
        }
        Ok(())
    }
}

impl Tables {
    fn run(&self, tenant: TenantId, id: RunId) -> Option<RunRecord> {
        self.runs.get(&id).filter(|row| row.run.tenant == tenant).map(|row| self.run_record(row))
    }

    fn runs(&self, tenant: TenantId, filter: &RunFilter) -> Vec<RunRecord> {
        let wanted = |row: &&RunRow| {
            let run = &row.run;
            run.tenant == tenant
                && filter.workflow.as_ref().is_none_or(|workflow| *workflow == run.workflow)
                && filter.state.is_none_or(|state| state == run.state)
                && filter.parent.is_none_or(|parent| run.parent.is_some_and(|of| of.key.run == parent))
        };
        let mut found: Vec<&RunRow> = self.runs.values().filter(wanted).collect();
        found.sort_by_key(|row| Reverse((row.run.created_at, row.run.id)));
        found.into_iter().take(filter.limit as usize).map(|row| self.run_record(row)).collect()
    }

    fn run_record(&self, row: &RunRow) -> RunRecord {
        RunRecord {
            run: row.run.clone(),
            facts: row.facts.clone(),
            version_number: self.versions[&row.run.version].number,
            starter: row.run.parent.and_then(|parent| self.starter(parent.key)),
        }
    }

    fn starter(&self, key: TaskKey) -> Option<Starter> {
        let version = self.runs.get(&key.run)?.run.version;
        Some(Starter { version, child: self.tasks.get(&key).and_then(|task| task.child) })
    }

    /// The timer of a task that is due first.
    fn first_timer(&self, key: TaskKey) -> Option<&Timer> {
        let timers = TimerKind::ALL.map(|kind| self.timers.get(&(key.run, Some(key.task), kind)));
        timers.into_iter().flatten().min_by_key(|timer| (timer.wake_at, timer.kind.name()))
    }

    pub(super) fn events(&self, run: RunId, from: i64, limit: u32) -> Vec<(i64, Event)> {
        let rows = self.events.range((run, 0)..=(run, i64::MAX));
        chunks::numbered(rows.map(|((_, first), events)| (*first, events.clone())), from, limit)
    }

    pub(super) fn outputs(&self, run: RunId, tasks: &[TaskIndex]) -> BTreeMap<TaskIndex, Value> {
        let output =
            |task: &TaskIndex| Some((*task, self.outputs.get(&TaskKey { run, task: *task })?.clone()));
        tasks.iter().filter_map(output).collect()
    }
}
