//! Workers.

use async_trait::async_trait;
use model::{Instant, TenantId, WorkerCommand, WorkerId};

use crate::{Claim, Heartbeat, HeartbeatReply, Result, Silence, WorkerRecord};

/// Workers: which are alive, what they hold, what they are commanded to do.
#[async_trait]
pub trait Workers: Send + Sync {
    /// Records a heartbeat. Returns the attempts that the worker holds and its pending command.
    async fn beat(&self, sign: &Heartbeat) -> Result<HeartbeatReply>;

    /// Removes a worker that holds nothing and stops. Returns a command that it may not have received.
    async fn farewell(&self, worker: WorkerId) -> Result<Option<WorkerCommand>>;

    /// Gives a worker a command, which it receives with its next heartbeat. The first of several commands stands, except
    /// that a draining worker can still be killed. Returns the one that stands; none if the worker is unknown.
    async fn command_worker(&self, worker: WorkerId, order: &WorkerCommand) -> Result<Option<WorkerCommand>>;

    /// Workers that have not been heard of since `since`, the most silent first.
    async fn silent(&self, since: Instant, limit: u32) -> Result<Vec<Silence>>;

    /// Running attempts of these workers, if they are still silent, and of workers that never registered or have left.
    async fn lost(&self, silent: &[Silence], limit: u32) -> Result<Vec<Claim>>;

    /// Forgets these workers, if they are still silent: what they held has been taken from them.
    async fn forget_workers(&self, silent: &[Silence]) -> Result<u64>;
}

/// Workers as people see them.
#[async_trait]
pub trait WorkerViews: Send + Sync {
    /// Workers that are known, by id, after the given one, with what they hold of a tenant.
    async fn workers(
        &self,
        tenant: TenantId,
        after: Option<WorkerId>,
        limit: u32,
    ) -> Result<Vec<WorkerRecord>>;

    /// One worker, if it is known.
    async fn worker(&self, tenant: TenantId, id: WorkerId) -> Result<Option<WorkerRecord>> {
        let before = id.0.as_u128().checked_sub(1).map(|before| WorkerId(uuid::Uuid::from_u128(before)));
        let found = self.workers(tenant, before, 1).await?.pop();
        Ok(found.filter(|found| found.id == id))
    }
}
