//! Archives and deletes expired runs and records once a day, in small steps.
//!
//! A sweep with nothing else to do takes the lease (one row, so one sweep at a time) and works through runs in the order in
//! which they ended. It archives a batch, deletes it in a short transaction, and returns to the agenda, so that no timer is
//! late. If it dies, the next tick continues. Outputs and logs expire before their runs; backfills, dead letters, trigger
//! events and breakers are deleted last. Events and logs are partitioned by the creation time of their run, and whole partitions are
//! dropped.

use std::sync::Arc;

use accounts::Accounts;
use chrono::TimeDelta;
use host::config::{ArchiveConfig, RetentionConfig};
use model::{Instant, RunId, RunState};
use runtime::{Result, Runtime};
use store::Part;
use tracing::{info, warn};

use crate::archive::{Archive, Bucket, Folder};

/// The time between two passes.
const INTERVAL: TimeDelta = TimeDelta::days(1);

/// How long idempotency records are kept.
const IDEMPOTENCY_TTL: TimeDelta = TimeDelta::days(1);

/// How long a breaker is kept after its last failure and its pause.
const BREAKER_TTL: TimeDelta = TimeDelta::days(1);

/// The time after which the next tick takes over from a pass that died or could not archive.
const LEASE: TimeDelta = TimeDelta::seconds(50);

/// How long finished runs and records are kept, and where they are archived.
#[derive(Clone)]
pub struct Retention {
    days: RetentionConfig,
    archive: Option<Arc<dyn Archive>>,
    accounts: Option<Accounts>,
}

impl Default for Retention {
    fn default() -> Self {
        Self::new(RetentionConfig::default())
    }
}

impl Retention {
    /// Retention as configured, with the configured archive.
    pub fn new(days: RetentionConfig) -> Self {
        let archive = days.archive.clone().map(|archive| match archive {
            ArchiveConfig::Folder(path) => Arc::new(Folder(path.into())) as Arc<dyn Archive>,
            ArchiveConfig::Bucket { name, endpoint } => Arc::new(Bucket::new(name, endpoint)),
        });
        Self { archive, days, accounts: None }
    }

    /// Deletes audit entries and idempotency records, too.
    pub fn with_accounts(self, accounts: Accounts) -> Self {
        Self { accounts: Some(accounts), ..self }
    }

    /// Archives runs here instead of where the configuration says.
    pub fn archived_by(self, archive: Arc<dyn Archive>) -> Self {
        Self { archive: Some(archive), ..self }
    }

    /// Deletes a batch of expired runs or records, unless another instance does. Returns whether it deleted anything: then
    /// there may be more.
    pub(crate) async fn step(&self, runtime: &Runtime, now: Instant) -> Result<bool> {
        let store = runtime.store();
        if !store.take_retention(now, now + LEASE).await? {
            return Ok(false);
        }
        for (part, state, days) in self.rules() {
            let before = now - TimeDelta::days(days.into());
            let runs = store.expired(part, state, before).await?;
            if runs.is_empty() {
                continue;
            }
            if !self.archive(runtime, part, &runs, now).await? {
                return Ok(false);
            }
            store.forget(part, &runs).await?;
            info!("Deleted the {} of {} runs that {}", part.name(), runs.len(), state.name());
            store.rest_retention(now).await?;
            return Ok(true);
        }
        // The runs of a backfill ended before it did, so none of them is left.
        let RetentionConfig { succeeded, failed, .. } = self.days;
        let backfills = store.forget_backfills(now - TimeDelta::days(succeeded.max(failed).into())).await?;
        if backfills > 0 {
            info!("Deleted {backfills} backfills");
            store.rest_retention(now).await?;
            return Ok(true);
        }
        let pruned = match &self.accounts {
            Some(accounts) => {
                accounts.prune(now - TimeDelta::days(self.days.audit.into()), now - IDEMPOTENCY_TTL).await?
            }
            None => 0,
        };
        if pruned > 0 {
            info!("Deleted {pruned} audit entries and idempotency records");
            store.rest_retention(now).await?;
            return Ok(true);
        }
        let letters = store.delete_dead_letters(now - TimeDelta::days(self.days.dead_letters.into())).await?;
        let events = store.forget_trigger_events(now).await?;
        let breakers = store.forget_breakers(now - BREAKER_TTL).await?;
        if letters + events + breakers > 0 {
            info!("Deleted {letters} dead letters, {events} trigger events and {breakers} breakers");
            store.rest_retention(now).await?;
            return Ok(true);
        }
        // All logs before that instant are archived by now, if there is an archive.
        if let Err(error) = store.turn_pages(now, now - TimeDelta::days(self.days.logs.into())).await {
            warn!("Cannot maintain partitions until tomorrow: {error}");
        }
        store.rest_retention(now + INTERVAL).await?;
        Ok(false)
    }

    fn rules(&self) -> Vec<(Part, RunState, u32)> {
        let RetentionConfig { succeeded, failed, logs, outputs, .. } = self.days;
        let ends =
            [(RunState::Succeeded, succeeded), (RunState::Failed, failed), (RunState::Cancelled, failed)];
        let parts = |(state, whole)| {
            [(Part::Whole, state, whole), (Part::Logs, state, logs), (Part::Outputs, state, outputs)]
        };
        ends.into_iter().flat_map(parts).collect()
    }

    /// Archives runs before they are deleted. Returns whether they may be deleted.
    async fn archive(&self, runtime: &Runtime, part: Part, runs: &[RunId], now: Instant) -> Result<bool> {
        let Some(archive) = &self.archive else { return Ok(true) };
        let documents = runtime.store().documents(part, runs).await?;
        match archive.store(part.name(), now, documents).await {
            Ok(()) => Ok(true),
            Err(error) => {
                warn!("Cannot archive expired runs, so they are not deleted: {error}");
                Ok(false)
            }
        }
    }
}
