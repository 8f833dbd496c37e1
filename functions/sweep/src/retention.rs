//! Once a day, expired runs and records are archived and deleted, in small steps.
//!
//! A sweep that has nothing else to do takes the turn (one row, so one sweep at a time) and goes through runs in the order in
//! which they ended: a short transaction for each batch, archived before, then back to the agenda, so that no timer is late
//! because of it. If it dies, the next tick continues. Outputs and logs go before their runs; backfills, dead letters and
//! seen events go last. Events and logs are partitioned by when their run was created, and partitions are dropped whole.

use std::sync::Arc;

use accounts::Accounts;
use chrono::TimeDelta;
use host::config::{ArchiveConfig, RetentionConfig};
use model::{Instant, RunId, RunState};
use runtime::{Result, Runtime};
use store::Part;
use tracing::{info, warn};

use crate::archive::{Archive, Bucket, Folder};

/// Time between two passes.
const DAY: TimeDelta = TimeDelta::days(1);

/// Time after which the next tick takes over from a pass that died or could not archive.
const TURN: TimeDelta = TimeDelta::seconds(50);

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
    /// As configured.
    pub fn new(days: RetentionConfig) -> Self {
        let archive = days.archive.clone().map(|archive| match archive {
            ArchiveConfig::Folder(path) => Arc::new(Folder(path.into())) as Arc<dyn Archive>,
            ArchiveConfig::Bucket { name, endpoint } => Arc::new(Bucket::new(name, endpoint)),
        });
        Self { archive, days, accounts: None }
    }

    /// Prunes audit entries and idempotency records, too.
    pub fn with_accounts(self, accounts: Accounts) -> Self {
        Self { accounts: Some(accounts), ..self }
    }

    /// With another archive.
    pub fn archived_by(self, archive: Arc<dyn Archive>) -> Self {
        Self { archive: Some(archive), ..self }
    }

    /// Deletes a batch of expired runs and records, unless another instance is at it. Returns whether there was any: then there
    /// may be more.
    pub(crate) async fn step(&self, runtime: &Runtime, now: Instant) -> Result<bool> {
        let store = runtime.store();
        if !store.take_retention(now, now + TURN).await? {
            return Ok(false);
        }
        for (part, state, days) in self.rules() {
            let before = now - TimeDelta::days(days.into());
            let runs = store.expired(part, state, before).await?;
            if runs.is_empty() {
                continue;
            }
            if !self.keep(runtime, part, &runs, now).await? {
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
                accounts.prune(now - TimeDelta::days(self.days.audit.into()), now - DAY).await?
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
        if letters + events > 0 {
            info!("Deleted {letters} dead letters and {events} trigger events");
            store.rest_retention(now).await?;
            return Ok(true);
        }
        // By now all logs up to there are archived, if there is an archive.
        if let Err(error) = store.turn_pages(now, now - TimeDelta::days(self.days.logs.into())).await {
            warn!("Cannot maintain partitions until tomorrow: {error}");
        }
        store.rest_retention(now + DAY).await?;
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

    /// Archives what is about to be deleted. Returns whether it may be deleted.
    async fn keep(&self, runtime: &Runtime, part: Part, runs: &[RunId], now: Instant) -> Result<bool> {
        let Some(archive) = &self.archive else { return Ok(true) };
        let documents = runtime.store().documents(part, runs).await?;
        match archive.keep(part.name(), now, documents).await {
            Ok(()) => Ok(true),
            Err(error) => {
                warn!("Deleting nothing, since it cannot be archived: {error}");
                Ok(false)
            }
        }
    }
}
