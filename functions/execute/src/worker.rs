//! This instance as a worker: it registers before it claims, beats while it holds attempts, and stops those
//! that were taken from it. Holding nothing, it says nothing.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard};

use chrono::TimeDelta;
use engine::Command;
use model::{Instant, TaskKey, WorkerId};
use runtime::Runtime;
use store::Held;
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use uuid::Uuid;

/// A worker beats this often while it holds attempts.
const BEAT: TimeDelta = TimeDelta::seconds(10);

/// This instance as a worker.
pub struct Worker {
    id: WorkerId,
    runtime: Arc<Runtime>,
    beat: TimeDelta,
    holds: Mutex<BTreeMap<(TaskKey, u32), Hold>>,
    /// How many attempts are between registering and being let go of. The first one starts the beat, the last
    /// one ends it.
    busy: AsyncMutex<Busy>,
}

/// An attempt that is about to be claimed, or was.
struct Hold {
    stop: CancellationToken,
    claimed: bool,
}

#[derive(Default)]
struct Busy {
    attempts: u32,
    heard_at: Option<Instant>,
    beating: Option<CancellationToken>,
}

impl Worker {
    /// A worker that beats every ten seconds.
    pub fn new(runtime: Arc<Runtime>) -> Arc<Self> {
        Self::beating_every(BEAT, runtime)
    }

    /// A worker that beats at another pace: a cancelled attempt hears of it at the next beat.
    pub fn beating_every(beat: TimeDelta, runtime: Arc<Runtime>) -> Arc<Self> {
        let id = WorkerId(Uuid::now_v7());
        Arc::new(Self { id, runtime, beat, holds: Mutex::default(), busy: AsyncMutex::default() })
    }

    /// The worker's id.
    pub fn id(&self) -> WorkerId {
        self.id
    }

    /// Registers, before anything is claimed: an attempt held by nobody known counts as lost.
    pub async fn register(self: &Arc<Self>) -> store::Result<()> {
        let mut busy = self.busy.lock().await;
        let now = self.runtime.clock().now();
        if busy.attempts == 0 || busy.heard_at.is_none_or(|heard_at| heard_at + self.beat <= now) {
            self.runtime.store().beat(self.id, now).await?;
            busy.heard_at = Some(now);
        }
        if busy.beating.is_none() {
            let stop = CancellationToken::new();
            busy.beating = Some(stop.clone());
            tokio::spawn(self.clone().keep_beating(stop));
        }
        busy.attempts += 1;
        Ok(())
    }

    /// Undoes one registration. The last one out says goodbye.
    pub async fn release(&self) {
        let mut busy = self.busy.lock().await;
        busy.attempts -= 1;
        if busy.attempts == 0 {
            if let Some(stop) = busy.beating.take() {
                stop.cancel();
            }
            if let Err(error) = self.runtime.store().farewell(self.id).await {
                warn!("The sweep will notice that worker {} is gone: {error}", self.id);
            }
        }
    }

    /// Holds an attempt that is about to be claimed; none if we hold it already, since its message came twice. The
    /// token is cancelled once the attempt is no longer ours.
    pub fn hold(&self, key: TaskKey, attempt: u32) -> Option<CancellationToken> {
        match self.holds().entry((key, attempt)) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => {
                let stop = CancellationToken::new();
                place.insert(Hold { stop: stop.clone(), claimed: false });
                Some(stop)
            }
        }
    }

    /// The attempt was claimed: from now on the store must know that it is ours.
    pub fn claimed(&self, key: TaskKey, attempt: u32) {
        if let Some(hold) = self.holds().get_mut(&(key, attempt)) {
            hold.claimed = true;
        }
    }

    /// Lets go of an attempt.
    pub fn let_go(&self, key: TaskKey, attempt: u32) {
        self.holds().remove(&(key, attempt));
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
        let now = self.runtime.clock().now();
        let claimed: Vec<(TaskKey, u32)> =
            self.holds().iter().filter(|(_, hold)| hold.claimed).map(|(attempt, _)| *attempt).collect();
        match self.runtime.store().beat(self.id, now).await {
            Ok(ours) => {
                self.busy.lock().await.heard_at = Some(now);
                self.stop_what_was_taken(&claimed, &ours);
                self.give_back_what_is_unknown(&ours).await;
            }
            Err(error) => warn!("Worker {} could not say that it lives: {error}", self.id),
        }
    }

    fn stop_what_was_taken(&self, claimed: &[(TaskKey, u32)], ours: &[Held]) {
        let is_ours = |(key, attempt): &(TaskKey, u32)| {
            ours.iter().any(|held| held.key == *key && held.attempt == *attempt)
        };
        for taken in claimed.iter().filter(|attempt| !is_ours(attempt)) {
            if let Some(hold) = self.holds().get(taken) {
                info!("Attempt {} of a task of run {} is no longer ours: stopping it", taken.1, taken.0.run);
                hold.stop.cancel();
            }
        }
    }

    /// A claim whose answer got lost leaves an attempt that the store thinks we hold and nobody carries out.
    async fn give_back_what_is_unknown(&self, ours: &[Held]) {
        let unknown: Vec<Held> = {
            let holds = self.holds();
            ours.iter().filter(|held| !holds.contains_key(&(held.key, held.attempt))).copied().collect()
        };
        for held in unknown {
            let lose = Command::Lose { task: held.key.task, attempt: held.attempt, worker: self.id };
            if let Err(error) = self.runtime.settle(held.key.run, lose).await {
                warn!("An attempt that nobody carries out could not be given back yet: {error}");
            }
        }
    }

    fn holds(&self) -> MutexGuard<'_, BTreeMap<(TaskKey, u32), Hold>> {
        self.holds.lock().expect("nothing panics while it is held")
    }
}
