//! The quota of unfinished runs: a tenant that has as many as it may gets no more until there is room.
//!
//! It holds for every [`Origin`](crate::Origin), and for finished runs that people or backfills let continue. What is refused is not lost: callers and senders of webhooks are asked to try
//! again, schedules and backfills wait, sensors find it again, and messages become dead letters with the reason. A message is
//! not redelivered for it, since that would slow down the messages of other tenants.

use std::collections::BTreeMap;
use std::sync::Mutex;

use chrono::TimeDelta;
use engine::{By, Command, Operation};
use model::{Instant, Run, TenantId};

use crate::{Error, Result, Runtime, Settled};

/// How long a count is used. Runs that were admitted since are added to it.
const COUNT_TTL: TimeDelta = TimeDelta::seconds(2);

/// The number of tenants whose counts are kept.
const MAX_TENANTS: usize = 10_000;

/// The maximum number of unfinished runs of each tenant, and how many tenants had when they were last counted.
#[derive(Default)]
pub(crate) struct RunQuota {
    max: Option<u32>,
    counts: Mutex<BTreeMap<TenantId, (u32, Instant)>>,
}

impl RunQuota {
    /// A quota of unfinished runs for each tenant; none for no limit.
    pub(crate) fn new(max: Option<u32>) -> Self {
        Self { max, counts: Mutex::default() }
    }

    /// Makes a run unfinished if the tenant has room for it, and does not count it if that turned out to change nothing.
    pub(crate) async fn admitting<T>(
        &self,
        runtime: &Runtime,
        tenant: TenantId,
        made: impl Future<Output = Result<T>>,
        is_new: impl FnOnce(&T) -> bool,
    ) -> Result<T> {
        self.admit(runtime, tenant).await?;
        let made = made.await;
        if !made.as_ref().is_ok_and(is_new) {
            self.release(tenant);
        }
        made
    }

    /// Counts a run that is about to start, or refuses it.
    async fn admit(&self, runtime: &Runtime, tenant: TenantId) -> Result<()> {
        let Some(max) = self.max else { return Ok(()) };
        let now = runtime.clock.now();
        let room = match self.count_on(tenant, max, now) {
            Some(room) => room,
            None => {
                let usage = runtime.tenants().usage(tenant, max).await?;
                self.note(tenant, usage.runs, now);
                self.count_on(tenant, max, now).unwrap_or(true)
            }
        };
        if room { Ok(()) } else { Err(Error::TooManyRuns(max)) }
    }

    /// Takes back the count of a run that was admitted and not created.
    fn release(&self, tenant: TenantId) {
        let mut known = self.counts.lock().expect("no holder panics");
        if let Some((runs, _)) = known.get_mut(&tenant) {
            *runs = runs.saturating_sub(1);
        }
    }

    /// Adds a run to a recent count. Returns whether there was room; none without a recent count.
    fn count_on(&self, tenant: TenantId, max: u32, now: Instant) -> Option<bool> {
        let mut known = self.counts.lock().expect("no holder panics");
        let (runs, _) = known.get_mut(&tenant).filter(|(_, at)| (now - *at).abs() < COUNT_TTL)?;
        let room = *runs < max;
        *runs = runs.saturating_add(1).min(max);
        Some(room)
    }

    fn note(&self, tenant: TenantId, runs: u32, now: Instant) {
        let mut known = self.counts.lock().expect("no holder panics");
        if known.len() >= MAX_TENANTS {
            known.clear();
        }
        known.insert(tenant, (runs, now));
    }
}

impl Runtime {
    /// Settles what a person does to a run, given as it was read before. A finished run that continues needs room like a new
    /// one.
    pub async fn operate(&self, run: &Run, operation: Operation, by: By) -> Result<Settled> {
        let reopens = matches!(operation, Operation::Retry | Operation::Clear(_) | Operation::Mark(..));
        let settle = self.settle(run.id, Command::Operate { operation, by });
        if reopens && run.state.is_final() {
            return self.quota.admitting(self, run.tenant, settle, |done| *done == Settled::Applied).await;
        }
        settle.await
    }
}
