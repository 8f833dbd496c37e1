//! Heartbeats of workers, and the attempts that they hold.

use model::{Instant, TaskKey, WorkerCommand, WorkerFacts, WorkerId};

/// An attempt that a worker holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Claim {
    /// The task.
    pub key: TaskKey,
    /// The attempt.
    pub attempt: u32,
    /// The worker.
    pub worker: WorkerId,
}

/// A worker's sign of life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heartbeat {
    /// The worker.
    pub worker: WorkerId,
    /// What it says of itself; none leaves what is known.
    pub facts: Option<WorkerFacts>,
    /// When, by its own clock.
    pub at: Instant,
}

/// What a worker hears in return for a sign of life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeartbeatReply {
    /// The attempts that are its own: others it must stop, and those it does not know of it must give back.
    pub holds: Vec<Claim>,
    /// What it has been told to do.
    pub order: Option<WorkerCommand>,
}

/// A worker that has said nothing for long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Silence {
    /// The worker.
    pub worker: WorkerId,
    /// When it was last heard of, by its own clock: another value is another sign of life.
    pub heard_at: Instant,
}
