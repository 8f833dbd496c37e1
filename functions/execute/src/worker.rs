//! This instance as a worker: it registers before it claims, sends heartbeats while it holds attempts, stops those that were
//! taken from it, and permits back what it cannot finish. While it holds nothing, it sends nothing.

mod ending;
mod holds;
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

use crate::performers::Breakers;

pub(crate) use holds::{Halt, Holds};

/// How often a worker sends a heartbeat while it holds attempts.
const HEARTBEAT_INTERVAL: TimeDelta = TimeDelta::seconds(10);

/// A heartbeat that takes longer is abandoned: the sweep expects the next one.
const HEARTBEAT_TIMEOUT: TimeDelta = TimeDelta::seconds(5);

/// This instance as a worker.
pub struct Worker {
    id: WorkerId,
    facts: WorkerFacts,
    runtime: Arc<Runtime>,
    beat: TimeDelta,
    pub(crate) holds: Holds,
    /// The hosts that it does not call for a while.
    pub(crate) breakers: Arc<Breakers>,
    /// How many attempts are registered and not yet released. The first one starts the heartbeat, the last one ends it.
    busy: AsyncMutex<Busy>,
    /// Why it takes no more work, once it does not.
    closing: OnceLock<String>,
    ended: CancellationToken,
}

#[derive(Default)]
struct Busy {
    attempts: u32,
    heard_at: Option<Instant>,
    beating: Option<CancellationToken>,
}

impl Worker {
    /// A worker with a heartbeat every ten seconds, of any queue.
    pub fn new(runtime: Arc<Runtime>) -> Arc<Self> {
        Self::serving(None, HEARTBEAT_INTERVAL, runtime)
    }

    /// A worker of that queue.
    pub fn of_queue(queue: Option<String>, runtime: Arc<Runtime>) -> Arc<Self> {
        Self::serving(queue, HEARTBEAT_INTERVAL, runtime)
    }

    /// A worker with another heartbeat interval: an attempt learns of its cancellation at the next heartbeat.
    pub fn beating_every(beat: TimeDelta, runtime: Arc<Runtime>) -> Arc<Self> {
        Self::serving(None, beat, runtime)
    }

    fn serving(queue: Option<String>, beat: TimeDelta, runtime: Arc<Runtime>) -> Arc<Self> {
        let facts = WorkerFacts {
            function: "execute".into(),
            queue,
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            version: env!("CARGO_PKG_VERSION").into(),
            since: runtime.clock().now(),
            breakers: Vec::new(),
        };
        Arc::new(Self {
            id: WorkerId(Uuid::now_v7()),
            facts,
            runtime,
            beat,
            holds: Holds::default(),
            breakers: Arc::default(),
            busy: AsyncMutex::default(),
            closing: OnceLock::new(),
            ended: CancellationToken::new(),
        })
    }

    /// The worker's id.
    pub fn id(&self) -> WorkerId {
        self.id
    }

    /// Registers, before anything is claimed: an attempt held by an unknown worker counts as lost. Returns whether it may take
    /// work.
    pub async fn register(self: &Arc<Self>) -> store::Result<bool> {
        let mut busy = self.busy.lock().await;
        let now = self.runtime.clock().now();
        if self.closing().is_some() {
            return Ok(false);
        }
        if busy.attempts == 0 || busy.heard_at.is_none_or(|heard_at| heard_at + self.beat <= now) {
            self.heed(self.say_that_we_live(now).await?.order);
            busy.heard_at = Some(now);
        }
        if self.closing().is_some() {
            self.end_if_idle(&busy);
            return Ok(false);
        }
        if busy.beating.is_none() {
            let stop = CancellationToken::new();
            busy.beating = Some(stop.clone());
            tokio::spawn(self.clone().keep_beating(stop));
        }
        busy.attempts += 1;
        Ok(true)
    }

    /// Undoes one registration. The last one deregisters the worker.
    pub async fn release(&self) {
        let mut busy = self.busy.lock().await;
        busy.attempts -= 1;
        if busy.attempts == 0 {
            if let Some(stop) = busy.beating.take() {
                stop.cancel();
            }
            match self.runtime.store().farewell(self.id).await {
                // Commands since the last heartbeat must be received now: the store forgets them with the worker.
                Ok(order) => self.heed(order),
                Err(error) => warn!("The sweep will notice that worker {} is gone: {error}", self.id),
            }
            self.end_if_idle(&busy);
        }
    }

    async fn say_that_we_live(&self, now: Instant) -> store::Result<HeartbeatReply> {
        let facts = WorkerFacts { breakers: self.breakers.open(), ..self.facts.clone() };
        let sign = Heartbeat { worker: self.id, facts: Some(facts), at: now };
        self.runtime.store().beat(&sign).await
    }

    async fn keep_beating(self: Arc<Self>, stop: CancellationToken) {
        let clock = self.runtime.clock().clone();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = clock.wait_until(clock.now() + self.beat) => self.beat().await,
            }
        }
    }

    async fn beat(&self) {
        let clock = self.runtime.clock();
        let (now, claimed) = (clock.now(), self.holds.all_claimed());
        let told = tokio::select! {
            told = self.say_that_we_live(now) => told.map_err(|error| error.to_string()),
            () = clock.wait_until(now + HEARTBEAT_TIMEOUT) => Err("the store does not answer".into()),
        };
        match told {
            Ok(told) => {
                self.holds.stop_what_was_taken(&claimed, &told.holds);
                self.heed(told.order);
                {
                    let mut busy = self.busy.lock().await;
                    busy.heard_at = Some(now);
                    self.end_if_idle(&busy);
                }
                self.give_back_what_is_unknown(&told.holds).await;
            }
            Err(error) => {
                metrics::counter!("ebbflow_heartbeats_missed_total").increment(1);
                warn!("Worker {} cannot send a heartbeat: {error}", self.id);
            }
        }
    }

    /// A claim whose response got lost leaves an attempt that is ours in the store and that nothing runs.
    async fn give_back_what_is_unknown(&self, ours: &[Claim]) {
        for held in self.holds.unknown(ours) {
            let lose = Command::Lose { task: held.key.task, attempt: held.attempt, worker: self.id };
            if let Err(error) = self.runtime.settle(held.key.run, lose).await {
                warn!("Cannot hand back an attempt that nothing runs yet: {error}");
            }
        }
    }
}
