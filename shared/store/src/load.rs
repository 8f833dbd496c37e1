//! How much there is of everything, for metrics and health checks.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{Instant, RunState, TaskState, TenantId};

use crate::Result;

/// The maximum number of dead letters that are counted.
pub(crate) const MAX_DEAD_LETTERS_COUNTED: u32 = 1_000;

/// Stands for the queue of workers that take whatever is sent to them.
pub const ANY_QUEUE: &str = "any";

/// How much there is of everything.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Load {
    /// How many unfinished runs are in each state.
    pub runs: Vec<(RunState, u32)>,
    /// The active runs and tasks of each known tenant, by name.
    pub tenants: Vec<TenantLoad>,
    /// When the oldest message that is not published was committed.
    pub unsent: Option<Instant>,
    /// When the first timer is due, or was.
    pub timer: Option<Instant>,
    /// How many dead letters are kept, a thousand at most.
    pub dead_letters: u32,
    /// How many circuit breakers let nothing through.
    pub breakers: u32,
    /// How many workers serve each queue; those that take whatever is sent to them are under `any`. A worker is known from
    /// its first heartbeat until it leaves or is found dead.
    pub workers: BTreeMap<String, u32>,
}

/// How much a tenant has under way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TenantLoad {
    /// The name of the tenant.
    pub name: String,
    /// How many tasks of its unfinished runs are in each state.
    pub tasks: Vec<(TaskState, u32)>,
    /// When the one that has waited longest for a slot began to wait.
    pub waits_since: Option<Instant>,
}

impl TenantLoad {
    /// How many tasks are dispatched and not claimed.
    pub fn depth(&self) -> u32 {
        let waits = |state: &TaskState| matches!(state, TaskState::Queued | TaskState::Dispatched);
        self.tasks.iter().filter(|(state, _)| waits(state)).map(|(_, tasks)| tasks).sum()
    }
}

/// How much a tenant uses of its quotas, as far as it was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Runs that have not ended.
    pub runs: u32,
    /// Workflows that are registered.
    pub workflows: u32,
}

/// How many connections to a database are open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pool {
    /// The open connections, including idle ones.
    pub open: u32,
    /// The connections that are not in use.
    pub idle: u32,
    /// The maximum number of connections.
    pub most: u32,
}

/// The values that a store reports for metrics.
#[async_trait]
pub trait Measured: Send + Sync {
    /// How much there is of everything, in one statement that reads nothing that has ended.
    async fn load(&self) -> Result<Load>;

    /// How much a tenant uses of its quotas; of each, no more than `most` are counted.
    async fn usage(&self, tenant: TenantId, most: u32) -> Result<Usage>;

    /// How many connections are open; none for a store without.
    fn pool(&self) -> Option<Pool> {
        None
    }
}

/// The states in which a run is unfinished.
pub(crate) fn unfinished_runs() -> impl Iterator<Item = RunState> {
    RunState::ALL.into_iter().filter(|state| !state.is_final())
}

/// The states in which a task is unfinished.
pub(crate) fn unfinished_tasks() -> impl Iterator<Item = TaskState> {
    TaskState::ALL.into_iter().filter(|state| !state.is_final())
}
