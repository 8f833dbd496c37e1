//! Backfills and their progress.

use std::collections::BTreeMap;

use auth::{Denied, Permission};
use model::{BackfillId, Instant};
use store::{BackfillRecord, select};

use crate::{Listing, Reader, Result};

/// The backfills that a caller may read.
#[derive(Clone, Copy, Debug)]
pub struct Backfills<'a> {
    pub(crate) reader: &'a Reader,
}

impl Backfills<'_> {
    /// A backfill by its id.
    pub async fn get(&self, id: BackfillId) -> Result<BackfillRecord> {
        self.reader.caller.check_some(Permission::Read)?;
        let found = select::backfill(&mut *self.reader.connection().await?, id).await?;
        let found = found.filter(|record| self.reader.may(Permission::Read, &record.workflow));
        Ok(found.ok_or_else(|| Denied::NotFound(format!("backfill {id}")))?)
    }

    /// The backfills that the caller may read, newest first, after the given one.
    pub async fn list(
        &self,
        workflow: Option<&str>,
        after: Option<(Instant, BackfillId)>,
        limit: u32,
    ) -> Result<Listing<BackfillRecord, (Instant, BackfillId)>> {
        self.reader.caller.check_some(Permission::Read)?;
        let mut connection = self.reader.connection().await?;
        let rows = limit.saturating_add(1);
        let found = select::backfills(&mut *connection, self.reader.tenant(), workflow, after, rows).await?;
        let page = Listing::new(found, limit, |record: &BackfillRecord| (record.created_at, record.id));
        Ok(page.only(|record| self.reader.may(Permission::Read, &record.workflow)))
    }

    /// How many dates of a backfill wait (`waiting`), and how many have a run in which state (`forgotten` if it is gone).
    pub async fn progress(&self, backfill: &BackfillRecord) -> Result<BTreeMap<String, u32>> {
        self.reader.check(Permission::Read, &backfill.workflow, &format!("backfill {}", backfill.id))?;
        Ok(select::backfill_progress(&mut *self.reader.connection().await?, backfill.id).await?)
    }
}
