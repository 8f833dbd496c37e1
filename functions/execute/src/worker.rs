//! This instance as a worker. It registers before it claims, sends heartbeats while it holds attempts, stops attempts that
//! were taken from it, and hands back those that it cannot finish. While it holds no attempts, it sends nothing.

mod claims;
mod shutdown;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use chrono::TimeDelta;
use engine::Command;
use model::{Instant, WorkerFacts, WorkerId};
use runtime::Runtime;
use store::{Claim, Heartbeat, HeartbeatReply};
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use uuid::Uuid;

use crate::task_runners::Breakers;

pub(crate) use claims::ClaimedAttempts;

/// A heartbeat that takes longer is abandoned, so that the next one is sent in time.
const HEARTBEAT_TIMEOUT: TimeDelta = TimeDelta::seconds(5);

/// This instance as a worker.
pub struct Worker {
    id: WorkerId,
    facts: WorkerFacts,
    runtime: Arc<Runtime>,
    heartbeat_interval: TimeDelta,
    pub(crate) claims: ClaimedAttempts,
    /// The circuit breakers of the hosts that it calls.
    pub(crate) breakers: Arc<Breakers>,
    activity: AsyncMutex<Activity>,
    /// Why it takes no more work, once it shuts down.
    shutdown_reason: OnceLock<String>,
    ended: CancellationToken,
}

#[derive(Default)]
struct Activity {
    /// The number of attempts that are registered and not released. The first one starts the heartbeats, the last one stops
    /// them.
    attempts: u32,
    heartbeat_at: Option<Instant>,
    /// Cancelled to stop the heartbeats; none while no attempt is held.
    heartbeats: Option<CancellationToken>,
}

impl Worker {
    /// A worker of any queue.
    pub fn new(runtime: Arc<Runtime>) -> Arc<Self> {
        Self::of_queue(None, runtime)
    }

    /// A worker of one queue.
    pub fn of_queue(queue: Option<String>, runtime: Arc<Runtime>) -> Arc<Self> {
        Self::serving(queue, runtime.workers().liveness().heartbeat_interval, runtime)
    }

    /// A worker with another heartbeat interval. A cancelled attempt stops at the next heartbeat.
    pub fn with_heartbeat_interval(interval: TimeDelta, runtime: Arc<Runtime>) -> Arc<Self> {
        Self::serving(None, interval, runtime)
    }

    fn serving(queue: Option<String>, heartbeat_interval: TimeDelta, runtime: Arc<Runtime>) -> Arc<Self> {
        let facts = WorkerFacts {
            function: "execute".into(),
            queue,
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            version: env!("CARGO_PKG_VERSION").into(),
            since: runtime.clock().now(),
            breakers: Vec::new(),
            remote: None,
        };
        Arc::new(Self {
            id: WorkerId(Uuid::now_v7()),
            facts,
            breakers: Arc::new(Breakers::shared(runtime.clone())),
            runtime,
            heartbeat_interval,
            claims: ClaimedAttempts::default(),
            activity: AsyncMutex::default(),
            shutdown_reason: OnceLock::new(),
            ended: CancellationToken::new(),
        })
    }

    /// The id under which it claims attempts.
    pub fn id(&self) -> WorkerId {
        self.id
    }

    /// Registers the worker, before it claims an attempt: attempts of an unknown worker count as lost. Returns whether it may
    /// take work.
    pub async fn register(self: &Arc<Self>) -> store::Result<bool> {
        let mut activity = self.activity.lock().await;
        let now = self.runtime.clock().now();
        if self.shutdown_reason().is_some() {
            return Ok(false);
        }
        let is_due = activity.heartbeat_at.is_none_or(|at| at + self.heartbeat_interval <= now);
        if activity.attempts == 0 || is_due {
            self.obey(self.send_heartbeat(now).await?.command);
            activity.heartbeat_at = Some(now);
        }
        if self.shutdown_reason().is_some() {
            self.end_if_idle(&activity);
            return Ok(false);
        }
        if activity.heartbeats.is_none() {
            let stop = CancellationToken::new();
            activity.heartbeats = Some(stop.clone());
            tokio::spawn(self.clone().send_heartbeats(stop));
        }
        activity.attempts += 1;
        Ok(true)
    }

    /// Undoes one registration. The last one deregisters the worker.
    pub async fn release(&self) {
        let mut activity = self.activity.lock().await;
        activity.attempts -= 1;
        if activity.attempts == 0 {
            if let Some(stop) = activity.heartbeats.take() {
                stop.cancel();
            }
            match self.runtime.store().farewell(self.id).await {
                // Commands since the last heartbeat: the store deletes them with the worker.
                Ok(command) => self.obey(command),
                Err(error) => warn!("The sweep must deregister worker {}: {error}", self.id),
            }
            self.end_if_idle(&activity);
        }
    }

    async fn send_heartbeat(&self, now: Instant) -> store::Result<HeartbeatReply> {
        let facts = WorkerFacts { breakers: self.breakers.open(), ..self.facts.clone() };
        let heartbeat = Heartbeat { worker: self.id, facts: Some(facts), at: now };
        self.runtime.store().beat(&heartbeat).await
    }

    async fn send_heartbeats(self: Arc<Self>, stop: CancellationToken) {
        let clock = self.runtime.clock().clone();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = clock.wait_until(clock.now() + self.heartbeat_interval) => self.heartbeat().await,
            }
        }
    }

    /// Sends a heartbeat, and acts on the reply.
    async fn heartbeat(&self) {
        let clock = self.runtime.clock();
        let (now, confirmed) = (clock.now(), self.claims.confirmed());
        let reply = tokio::select! {
            reply = self.send_heartbeat(now) => reply.map_err(|error| error.to_string()),
            () = clock.wait_until(now + HEARTBEAT_TIMEOUT) => Err("the store does not respond".into()),
        };
        match reply {
            Ok(reply) => {
                self.claims.stop_revoked(&confirmed, &reply.holds);
                self.obey(reply.command);
                {
                    let mut activity = self.activity.lock().await;
                    activity.heartbeat_at = Some(now);
                    self.end_if_idle(&activity);
                }
                self.lose_orphaned_claims(&reply.holds).await;
            }
            Err(error) => {
                metrics::counter!("ebbflow_heartbeats_missed_total").increment(1);
                warn!("Worker {} cannot send a heartbeat: {error}", self.id);
            }
        }
    }

    /// A claim whose response was lost leaves an attempt that is ours in the store but does not run here.
    async fn lose_orphaned_claims(&self, claims: &[Claim]) {
        for claim in self.claims.orphaned(claims) {
            let lose = Command::Lose { task: claim.key.task, attempt: claim.attempt, worker: self.id };
            if let Err(error) = self.runtime.settle(claim.key.run, lose).await {
                warn!("Cannot give up an attempt that does not run here yet: {error}");
            }
        }
    }
}
