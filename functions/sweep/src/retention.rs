//! Once a day, what has been kept long enough is deleted, in small steps, and archived before.

use std::sync::Arc;

use chrono::TimeDelta;
use host::config::{ArchiveConfig, RetentionConfig};
use model::{Instant, RunId, RunState};
use runtime::{Result, Runtime};
use store::Part;
use tracing::{info, warn};

use crate::archive::{Archive, Bucket, Folder};

/// Looked for so often.
const DAY: TimeDelta = TimeDelta::days(1);

/// Whoever dies in the middle, or whose archive is full, is followed by the next tick.
const TURN: TimeDelta = TimeDelta::seconds(50);

/// How long what has ended is kept, and where it goes before it is deleted.
#[derive(Clone)]
pub struct Retention {
    days: RetentionConfig,
    archive: Option<Arc<dyn Archive>>,
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
        Self { archive, days }
    }

    /// With another archive.
    pub fn archived_by(self, archive: Arc<dyn Archive>) -> Self {
        Self { archive: Some(archive), ..self }
    }

    /// Takes a turn, if nobody else has it, and deletes some of what has been kept long enough. Answers whether there
    /// was any: then there may be more.
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
            info!("The {} of {} runs that {} were kept long enough", part.name(), runs.len(), state.name());
            store.rest_retention(now).await?;
            return Ok(true);
        }
        // The runs of a backfill ended before it did, so none of them is left.
        let RetentionConfig { succeeded, failed, .. } = self.days;
        let backfills = store.forget_backfills(now - TimeDelta::days(succeeded.max(failed).into())).await?;
        if backfills > 0 {
            info!("{backfills} backfills were kept long enough");
            store.rest_retention(now).await?;
            return Ok(true);
        }
        let (deeds, receipts) = (now - TimeDelta::days(self.days.audit.into()), now - DAY);
        let gone = store.forget_deeds(deeds).await? + store.forget_receipts(receipts).await?;
        if gone > 0 {
            info!("{gone} entries of the audit log and kept answers were kept long enough");
            store.rest_retention(now).await?;
            return Ok(true);
        }
        let letters = store.forget_letters(now - TimeDelta::days(self.days.dead_letters.into())).await?;
        let events = store.forget_trigger_events(now).await?;
        if letters + events > 0 {
            info!("{letters} dead letters and {events} events of triggers were kept long enough");
            store.rest_retention(now).await?;
            return Ok(true);
        }
        // By now all logs up to there are archived, if any archive wants them.
        if let Err(error) = store.turn_pages(now, now - TimeDelta::days(self.days.logs.into())).await {
            warn!("Partitions are left as they are until tomorrow: {error}");
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

    /// Archives what is about to be deleted. Answers whether it may be deleted.
    async fn keep(&self, runtime: &Runtime, part: Part, runs: &[RunId], now: Instant) -> Result<bool> {
        let Some(archive) = &self.archive else { return Ok(true) };
        let documents = runtime.store().documents(part, runs).await?;
        match archive.keep(part.name(), now, documents).await {
            Ok(()) => Ok(true),
            Err(error) => {
                warn!("Nothing is deleted, since the archive does not take it: {error}");
                Ok(false)
            }
        }
    }
}
