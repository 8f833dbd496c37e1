//! Leases: which offered tasks a remote worker gets, and how it waits for them.
//!
//! A lease finds the offers that suit its worker, puts them in order, and reserves the first ones for a few seconds. The
//! reservation only keeps concurrent leases from trying for the same tasks: what gives an attempt to a worker is the
//! command `Claim`, which is fenced like any other.

mod given;
mod waiting;

use std::sync::Arc;

use chrono::TimeDelta;
use engine::Command;
use engine::offer::in_turn;
use model::{Abilities, Demand, OfferGroup, TaskKey, TenantId, WorkerId};
use store::OfferedTask;

use crate::inbox::{Outcome, Submission};
use crate::{Result, Runtime, Settled};

pub(crate) use given::GivenAttempts;
pub use given::{AttemptName, GivenAttempt};
pub(crate) use waiting::WaitingRoom;
pub use waiting::{MAX_WAITING, WaitingWorker};

/// How long other leases leave a reserved offer alone. It is claimed within milliseconds, unless its process dies.
const RESERVED_FOR: TimeDelta = TimeDelta::seconds(10);

/// How often a lease tries if other leases are faster each time.
const MAX_TRIES: u32 = 8;

/// Which offers suit a worker.
#[derive(Clone)]
pub struct Wanted {
    /// The tenant whose tasks it takes.
    pub tenant: TenantId,
    /// The queue that it serves.
    pub queue: String,
    /// The tasks that it can run.
    pub abilities: Abilities,
    /// Whether it may execute the tasks of a workflow.
    pub may_execute: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl Wanted {
    /// Whether the worker may take what has this demand.
    pub fn suits(&self, demand: &Demand) -> bool {
        self.abilities.suit(&demand.kind, &demand.requires) && (self.may_execute)(&demand.workflow)
    }
}

/// Gives offered tasks to remote workers.
#[derive(Clone, Copy)]
pub struct Leases<'r> {
    runtime: &'r Runtime,
}

impl<'r> Leases<'r> {
    pub(crate) fn new(runtime: &'r Runtime) -> Self {
        Self { runtime }
    }
}

impl Leases<'_> {
    /// Reserves up to `limit` offers for a worker, in the order of priority and age, with turns for fairness groups.
    pub async fn reserve(self, wanted: &Wanted, worker: WorkerId, limit: u32) -> Result<Vec<OfferedTask>> {
        let store = &self.runtime.store;
        for attempt in 0..MAX_TRIES {
            let mut groups = store.offer_groups(wanted.tenant, &wanted.queue).await?;
            groups.retain(|group| wanted.suits(&group.demand));
            if groups.is_empty() {
                break;
            }
            let now = self.runtime.clock.now();
            // Some more than needed, since other leases try for the same ones.
            let more = limit.saturating_mul(2 + attempt);
            let found = store.first_offers(wanted.tenant, &wanted.queue, &groups, more, now).await?;
            if found.is_empty() {
                break;
            }
            let draw = worker.0.as_u128() as u64 ^ now.timestamp_micros() as u64 ^ u64::from(attempt);
            let in_turn = in_turn(found, draw);
            let reserved = store.reserve_offers(&in_turn, limit, now, now + RESERVED_FOR).await?;
            if !reserved.is_empty() {
                self.pass_on(wanted, &groups);
                return Ok(reserved);
            }
        }
        Ok(Vec::new())
    }

    /// Ends the reservations of attempts that are not claimed after all: the next lease may have them at once.
    pub async fn unreserve(self, wanted: &Wanted, attempts: &[(TaskKey, u32)]) -> Result<()> {
        let store = &self.runtime.store;
        store.unreserve_offers(attempts).await?;
        let mut groups = store.offer_groups(wanted.tenant, &wanted.queue).await?;
        groups.retain(|group| wanted.suits(&group.demand));
        self.pass_on(wanted, &groups);
        Ok(())
    }

    /// There may be more of what a worker took: wakes one worker that waits for the same.
    fn pass_on(self, wanted: &Wanted, groups: &[OfferGroup]) {
        for group in groups {
            self.runtime.waiting.offered(wanted.tenant, &wanted.queue, &group.demand);
        }
    }

    /// Claims attempts for a worker, together: they share a transaction unless one of them cannot be settled. Returns for each
    /// whether it is the worker's now.
    pub async fn claim(self, worker: WorkerId, attempts: &[(TaskKey, u32)]) -> Vec<Result<bool>> {
        let claim = |(TaskKey { run, task }, attempt): &(TaskKey, u32)| {
            Submission::Settle(*run, Command::Claim { task: *task, attempt: *attempt, worker }, None)
        };
        let claims = attempts.iter().map(claim).collect();
        let claimed = |outcome: Outcome| matches!(outcome, Outcome::Settled(Settled::Applied, _));
        let outcomes = self.runtime.inbox.submit_all(self.runtime, claims).await;
        outcomes.into_iter().map(|outcome| outcome.map(claimed)).collect()
    }

    /// Remembers an attempt that a worker was given, for its report.
    pub fn remember(self, name: AttemptName, given: GivenAttempt) {
        self.runtime.given.add(name, given);
    }

    /// Forgets an attempt that a worker was given, and returns it. None if this process has not given it, or has forgotten it
    /// since: then its report has to find the task.
    pub fn recall(self, name: &AttemptName) -> Option<GivenAttempt> {
        self.runtime.given.take(name)
    }

    /// Notes that a worker waits. It is woken by offers that are made from now on. None if too many of its tenant, or of all,
    /// wait already.
    pub async fn wait(self, wanted: Wanted) -> Option<WaitingWorker> {
        self.runtime.waiting.enter(&self.runtime.store, wanted).await
    }
}
