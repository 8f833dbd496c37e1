//! To and about workers.

use serde::{Deserialize, Serialize};

use crate::{Instant, WorkerFacts, WorkerId};

/// A worker says who it is: for one that cannot reach the database itself.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerRegistered {
    /// The worker.
    pub worker: WorkerId,
    /// What it says of itself.
    #[serde(flatten)]
    pub facts: WorkerFacts,
    /// When it said so.
    pub at: Instant,
}

/// A worker says that it lives, and with it all the attempts that it holds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerHeartbeat {
    /// The worker.
    pub worker: WorkerId,
    /// When it said so.
    pub at: Instant,
}

/// Someone wants a worker ended at once; what it holds is handed back.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerKill {
    /// The worker.
    pub worker: WorkerId,
    /// Who wants it.
    pub actor: String,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}
