//! The registry of workers.

use async_trait::async_trait;
use chrono::TimeDelta;
use model::{Instant, ResourceUsage, ServedQueues, WorkerCommand, WorkerId};

use crate::{Claim, Heartbeat, HeartbeatReply, Result, Silence};

/// How long a dead worker is listed.
pub const DEAD_WORKER_TTL: TimeDelta = TimeDelta::days(1);

/// Workers: which are alive, what they hold, what they are commanded to do.
#[async_trait]
pub trait Workers: Send + Sync {
    /// Records a heartbeat. Returns the attempts that the worker holds and its pending command.
    async fn beat(&self, sign: &Heartbeat) -> Result<HeartbeatReply>;

    /// Records that a remote worker asked for work, as a sign of life, unless one was recorded within `every` before. Returns
    /// its pending command.
    async fn check_in(&self, sign: &Heartbeat, every: TimeDelta) -> Result<Option<WorkerCommand>>;

    /// Records how much of its machine a remote worker uses. One that is not known is left out.
    async fn report_usage(&self, worker: WorkerId, usage: &ResourceUsage) -> Result<()>;

    /// Adds to the numbers of attempts that workers have ended.
    async fn count_done(&self, done: &[(WorkerId, u32)]) -> Result<()>;

    /// Removes a worker that holds nothing and stops. Returns a command that it may not have received.
    async fn farewell(&self, worker: WorkerId) -> Result<Option<WorkerCommand>>;

    /// Gives a worker a command, which it receives with its next heartbeat. The first of several commands is in force, except
    /// that a draining worker can still be killed. Returns the one in force; none if the worker is unknown.
    async fn command_worker(
        &self,
        worker: WorkerId,
        command: &WorkerCommand,
    ) -> Result<Option<WorkerCommand>>;

    /// The queues that remote workers serve, and what these can run, of those that are not dead.
    async fn served_queues(&self) -> Result<ServedQueues>;

    /// Workers that have sent no heartbeat since `since` and are not known to be dead, the most silent first.
    async fn silent(&self, since: Instant, limit: u32) -> Result<Vec<Silence>>;

    /// The workers of our own processes, however recent their heartbeats. After a restart of everything they are dead;
    /// remote workers are not.
    async fn own_workers(&self) -> Result<Vec<Silence>>;

    /// Running attempts of these workers, if they are still silent, and of workers that never registered, have left or are
    /// dead.
    async fn lost(&self, silent: &[Silence], limit: u32) -> Result<Vec<Claim>>;

    /// Marks these workers as dead, if they are still silent: they no longer hold attempts. Deletes those that have been dead
    /// for a day. Returns how many died.
    async fn mark_dead(&self, silent: &[Silence], now: Instant) -> Result<u64>;
}
