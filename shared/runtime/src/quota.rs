//! The quota of unfinished runs: a tenant that has as many as it may gets no more until there is room.
//!
//! It holds for every [`Origin`](crate::Origin). What is refused is not lost: callers and senders of webhooks are asked to try
//! again, schedules and backfills wait, sensors find it again, and messages become dead letters with the reason. A message is
//! not redelivered for it, since that would slow down the messages of other tenants.

use std::collections::BTreeMap;
use std::sync::Mutex;

use chrono::TimeDelta;
use model::{Instant, TenantId};

use crate::{Error, Result, Runtime};

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

    /// Counts a run that is about to start, or refuses it.
    pub(crate) async fn admit(&self, runtime: &Runtime, tenant: TenantId) -> Result<()> {
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
    pub(crate) fn release(&self, tenant: TenantId) {
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
