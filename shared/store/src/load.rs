//! How much of everything there is, for whoever watches.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{Instant, RunState, TaskState, TenantId};

use crate::Result;

/// So many dead letters are counted at most.
pub(crate) const MAX_DEAD_LETTERS_COUNTED: u32 = 1_000;

/// Stands for the queue of workers that take whatever is sent to them.
pub(crate) const ANY_QUEUE: &str = "any";

/// How much of everything there is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Load {
    /// How many unfinished runs are in each state in which a run can be unfinished.
    pub runs: Vec<(RunState, u32)>,
    /// What there is of each tenant that is known, by name.
    pub tenants: Vec<TenantLoad>,
    /// When the oldest message was decided on that was not published.
    pub unsent: Option<Instant>,
    /// When the first timer is due, or was.
    pub timer: Option<Instant>,
    /// How many dead letters are kept, a thousand at most.
    pub dead_letters: u32,
    /// How many workers serve each queue; those that take whatever is sent to them are under `any`. A worker is known from
    /// its first heartbeat until it leaves or is found dead.
    pub workers: BTreeMap<String, u32>,
}

/// How much there is of one tenant.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TenantLoad {
    /// Its name.
    pub name: String,
    /// How many tasks of its unfinished runs are in each state in which a task can be unfinished.
    pub tasks: Vec<(TaskState, u32)>,
    /// Since when the longest of them has been waiting for a slot.
    pub waits_since: Option<Instant>,
}

impl TenantLoad {
    /// How many tasks could be carried out, and nobody has taken them.
    pub fn depth(&self) -> u32 {
        let waits = |state: &TaskState| matches!(state, TaskState::Queued | TaskState::Dispatched);
        self.tasks.iter().filter(|(state, _)| waits(state)).map(|(_, tasks)| tasks).sum()
    }
}

/// How much of what a quota bounds a tenant has, as far as it was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Unfinished runs.
    pub runs: u32,
    /// Workflows that are registered.
    pub workflows: u32,
}

/// How many connections to a database there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pool {
    /// Open ones, idle ones among them.
    pub open: u32,
    /// Those that nobody uses at the moment.
    pub idle: u32,
    /// The most there may be.
    pub most: u32,
}

/// What a store says of itself to whoever watches.
#[async_trait]
pub trait Measured: Send + Sync {
    /// How much of everything there is, in one statement that reads nothing that has ended.
    async fn load(&self) -> Result<Load>;

    /// How much a tenant has of what quotas bound; of each, no more than `most` are counted.
    async fn usage(&self, tenant: TenantId, most: u32) -> Result<Usage>;

    /// How many connections there are; none for a store without.
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
