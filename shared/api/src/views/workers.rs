//! Workers, and what they hold.

use std::collections::BTreeMap;

use model::{Instant, Label, OpenBreaker, RunId, WorkerCommand, WorkerCommandKind, WorkerId};
use read::{QueueWorkers, WorkerRecord};
use runtime::Liveness;
use serde::{Deserialize, Serialize};

use crate::execution::UsageView;

/// A worker that is known: from its first heartbeat or lease until it leaves, or until a day after it died.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkerView {
    /// The id of the worker.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub id: WorkerId,
    /// The state, as its heartbeats and commands show.
    pub state: WorkerState,
    /// The function it is an instance of, if it has reported one.
    pub function: Option<String>,
    /// The queue that it serves; null if it accepts any task that is pushed to it.
    pub queue: Option<String>,
    /// The host it runs on.
    pub host: Option<String>,
    /// The version of the program.
    pub version: Option<String>,
    /// Since when it is up.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub since: Option<Instant>,
    /// When it last sent a heartbeat, by its own clock.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub heartbeat_at: Instant,
    /// The worker command it was given.
    #[schemars(with = "Option<crate::openapi::shapes::WorkerCommand>")]
    pub command: Option<WorkerCommand>,
    /// The attempts that it holds of the caller's tenant; at most 100.
    pub attempts: Vec<ClaimedView>,
    /// The number of attempts that it holds, of all tenants that the caller sees.
    pub holding: i64,
    /// The name that a remote worker chose.
    pub name: Option<String>,
    /// The number of attempts that a remote worker can execute at the same time.
    pub slots: Option<u32>,
    /// The labels of a remote worker.
    #[schemars(with = "BTreeMap<String, crate::openapi::shapes::LabelValue>")]
    pub labels: BTreeMap<String, Label>,
    /// The task types that a remote worker can run; null for any.
    pub types: Option<Vec<String>>,
    /// How much of a remote worker's machine is in use, as last reported.
    pub usage: Option<UsageView>,
    /// The number of attempts that a remote worker has ended.
    pub tasks_done: Option<u64>,
    /// When it was declared dead.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub dead_at: Option<Instant>,
    /// The hosts whose circuit breaker is open, as last reported.
    pub breakers: Vec<BreakerView>,
}

/// A host to which a worker makes no calls for a while, since they failed again and again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BreakerView {
    /// The name of the host.
    pub host: String,
    /// Since when the breaker is open.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub since: Instant,
    /// When the next call shows whether it is back.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub until: Instant,
}

impl From<&OpenBreaker> for BreakerView {
    fn from(open: &OpenBreaker) -> Self {
        Self { host: open.host.clone(), since: open.since, until: open.until }
    }
}

/// The state of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    /// It takes work, and holds none.
    Idle,
    /// It holds at least one attempt.
    Busy,
    /// It takes no more work and finishes what it holds.
    Draining,
    /// It was killed: it stops its attempts at once.
    Killed,
    /// It has sent no heartbeat for longer than the installation allows; its attempts are given to others.
    Dead,
}

impl WorkerState {
    /// The state of a worker at `now`. A dead worker does not execute commands.
    pub fn of(record: &WorkerRecord, liveness: Liveness, now: Instant) -> Self {
        let is_silent = record.heartbeat_at + liveness.dead_after <= now;
        match record.command.as_ref().map(|command| command.kind) {
            _ if record.dead_at.is_some() || is_silent => Self::Dead,
            Some(WorkerCommandKind::Kill) => Self::Killed,
            Some(WorkerCommandKind::Drain) => Self::Draining,
            None if record.holding > 0 => Self::Busy,
            None => Self::Idle,
        }
    }

    /// Whether it takes work.
    pub fn is_up(self) -> bool {
        matches!(self, Self::Idle | Self::Busy)
    }

    /// The name used in answers and pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Draining => "draining",
            Self::Killed => "killed",
            Self::Dead => "dead",
        }
    }
}

/// The workers of one queue, and what waits for them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QueueWorkersView {
    /// The name of the queue; null for workers that take whatever is pushed to them.
    pub queue: Option<String>,
    /// The number of workers that take work.
    pub workers: i64,
    /// The number of workers that were given a command to stop.
    pub draining: i64,
    /// The number of workers that died within the last day.
    pub dead: i64,
    /// The slots of remote workers that are alive.
    pub slots: i64,
    /// The number of attempts that workers hold.
    pub holding: i64,
    /// The number of attempts that remote workers have ended.
    pub tasks_done: i64,
    /// The number of tasks that wait for a remote worker.
    pub offered: i64,
}

impl From<QueueWorkers> for QueueWorkersView {
    fn from(counted: QueueWorkers) -> Self {
        let QueueWorkers { queue, workers, draining, dead, slots, holding, tasks_done, offered } = counted;
        Self { queue, workers, draining, dead, slots, holding, tasks_done, offered }
    }
}

/// An attempt that a worker holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClaimedView {
    /// The id of the run.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub run: RunId,
    /// The name of the task.
    pub task: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// When it was taken.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub started_at: Option<Instant>,
    /// The task, in the API.
    pub link: String,
}
