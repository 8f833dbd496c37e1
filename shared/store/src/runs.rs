//! Runs outside a transaction.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{Event, RunId, TaskIndex, TaskKey, TenantId};

use crate::{Result, RunFilter, RunRecord, TaskRecord};

/// Runs outside a transaction. Nothing here locks, and no decision rests on it alone.
#[async_trait]
pub trait Runs: Send + Sync {
    /// One run of a tenant.
    async fn run(&self, tenant: TenantId, id: RunId) -> Result<Option<RunRecord>>;

    /// The newest runs of a tenant that pass a filter.
    async fn runs(&self, tenant: TenantId, filter: &RunFilter) -> Result<Vec<RunRecord>>;

    /// Tasks of a run in index order, after the given one: those of its definition, or the children of one of them.
    async fn run_tasks(
        &self,
        run: RunId,
        children_of: Option<TaskIndex>,
        after: Option<TaskIndex>,
        limit: u32,
    ) -> Result<Vec<TaskRecord>>;

    /// The item that a child of a fan-out is about.
    async fn item(&self, child: TaskKey) -> Result<Option<serde_json::Value>>;

    /// Outputs of the named tasks, of those that have one.
    async fn outputs(
        &self,
        run: RunId,
        tasks: &[TaskIndex],
    ) -> Result<BTreeMap<TaskIndex, serde_json::Value>>;

    /// Events of a run with a number of `from` or higher, oldest first, with their numbers.
    async fn events(&self, run: RunId, from: i64, limit: u32) -> Result<Vec<(i64, Event)>>;

    /// The tasks that wait for a shared task, with their attempts, in key order.
    async fn waiters(&self, owner: TaskKey, limit: u32) -> Result<Vec<(TaskKey, u32)>>;

    /// Releases the logical date of a run that has ended, so that another run can take it. Idempotent.
    async fn give_up_date(&self, run: RunId) -> Result<()>;
}
