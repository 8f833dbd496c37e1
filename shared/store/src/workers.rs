//! The registry of workers.

use async_trait::async_trait;
use model::{Instant, WorkerCommand, WorkerId};

use crate::{Claim, Heartbeat, HeartbeatReply, Result, Silence};

/// Workers: which are alive, what they hold, what they are commanded to do.
#[async_trait]
pub trait Workers: Send + Sync {
    /// Records a heartbeat. Returns the attempts that the worker holds and its pending command.
    async fn beat(&self, sign: &Heartbeat) -> Result<HeartbeatReply>;

    /// Removes a worker that holds nothing and stops. Returns a command that it may not have received.
    async fn farewell(&self, worker: WorkerId) -> Result<Option<WorkerCommand>>;

    /// Gives a worker a command, which it receives with its next heartbeat. The first of several commands stands, except
    /// that a draining worker can still be killed. Returns the one that stands; none if the worker is unknown.
    async fn command_worker(
        &self,
        worker: WorkerId,
        command: &WorkerCommand,
    ) -> Result<Option<WorkerCommand>>;

    /// Workers that have sent no heartbeat since `since`, the most silent first.
    async fn silent(&self, since: Instant, limit: u32) -> Result<Vec<Silence>>;

    /// Running attempts of these workers, if they are still silent, and of workers that never registered or have left.
    async fn lost(&self, silent: &[Silence], limit: u32) -> Result<Vec<Claim>>;

    /// Deletes these workers, if they are still silent: they no longer hold attempts.
    async fn forget_workers(&self, silent: &[Silence]) -> Result<u64>;
}
