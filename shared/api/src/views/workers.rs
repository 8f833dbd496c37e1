//! Workers, and what they hold.

use model::{Instant, OpenBreaker, RunId, WorkerCommand, WorkerCommandKind, WorkerId};
use read::WorkerRecord;
use serde::{Deserialize, Serialize};

/// A worker without a heartbeat for this long is presumed dead.
const HEARTBEAT_TIMEOUT: chrono::TimeDelta = chrono::TimeDelta::seconds(60);

/// A worker that is known: one that holds attempts, or did until it went silent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// The attempts that it holds.
    pub attempts: Vec<ClaimedView>,
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
    /// It sends heartbeats and takes work.
    Alive,
    /// It takes no more work and finishes what it holds.
    Draining,
    /// It was killed: it stops its attempts at once.
    Killed,
    /// It has sent no heartbeat for a minute; its attempts are given to others.
    Silent,
}

impl WorkerState {
    /// The state of a worker at `now`. A silent worker does not execute commands.
    pub fn of(record: &WorkerRecord, now: Instant) -> Self {
        match record.command.as_ref().map(|command| command.kind) {
            _ if record.heartbeat_at + HEARTBEAT_TIMEOUT <= now => Self::Silent,
            Some(WorkerCommandKind::Kill) => Self::Killed,
            Some(WorkerCommandKind::Drain) => Self::Draining,
            None => Self::Alive,
        }
    }

    /// The name used in answers and pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Draining => "draining",
            Self::Killed => "killed",
            Self::Silent => "silent",
        }
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
