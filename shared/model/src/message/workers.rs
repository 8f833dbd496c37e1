//! Messages to and about workers.

use serde::{Deserialize, Serialize};

use crate::{Instant, WorkerFacts, WorkerId};

/// A worker that cannot reach the database registers itself.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerRegistered {
    /// The worker that registers.
    pub worker: WorkerId,
    /// Its description of itself.
    #[serde(flatten)]
    pub facts: WorkerFacts,
    /// When it sent this.
    pub at: Instant,
}

/// A worker sends a sign of life, for itself and all the attempts that it holds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerHeartbeat {
    /// The worker that is alive.
    pub worker: WorkerId,
    /// When it sent this.
    pub at: Instant,
}

/// Someone wants a worker stopped at once; it hands back what it holds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerKill {
    /// The worker to stop.
    pub worker: WorkerId,
    /// Who asks for it.
    pub actor: String,
    /// Why, as the worker's page shows it.
    #[serde(default)]
    pub reason: Option<String>,
}
