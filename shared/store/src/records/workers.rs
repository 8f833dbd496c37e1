//! Heartbeats of workers, and the attempts that they hold.

use model::{Instant, TaskKey, WorkerCommand, WorkerFacts, WorkerId};

/// An attempt that a worker holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Claim {
    /// The task of the attempt.
    pub key: TaskKey,
    /// The number of the attempt.
    pub attempt: u32,
    /// The worker that holds it.
    pub worker: WorkerId,
}

/// A worker's sign of life.
#[derive(Clone, PartialEq, Debug)]
pub struct Heartbeat {
    /// The worker that is alive.
    pub worker: WorkerId,
    /// Its description of itself; none if it has not changed.
    pub facts: Option<WorkerFacts>,
    /// When it was sent, by the worker's clock.
    pub at: Instant,
}

/// The answer to a worker's heartbeat.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeartbeatReply {
    /// The attempts that it still holds. It must stop all others, and hand back those that it does not know.
    pub holds: Vec<Claim>,
    /// The command that it received, if any.
    pub command: Option<WorkerCommand>,
}

/// A worker that has sent no heartbeat for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Silence {
    /// The worker that is silent.
    pub worker: WorkerId,
    /// Its last heartbeat, by its own clock: another value is another sign of life.
    pub heartbeat_at: Instant,
}
