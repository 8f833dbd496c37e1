//! Backfills and their progress.

use std::collections::BTreeMap;

use auth::{Denied, Permission};
use model::{BackfillId, Instant};
use store::{BackfillRecord, select};

use crate::{Listing, Reader, Result};

impl Reader {
    /// One backfill.
    pub async fn backfill(&self, id: BackfillId) -> Result<BackfillRecord> {
        self.caller.check_some(Permission::Read)?;
        let found = select::backfill(&mut *self.connection().await?, id).await?;
        let found = found.filter(|record| self.may(Permission::Read, &record.workflow));
        Ok(found.ok_or_else(|| Denied::NotFound(format!("backfill {id}")))?)
    }

    /// The backfills that the caller may read, newest first, after the given one.
    pub async fn backfills(
        &self,
        workflow: Option<&str>,
        after: Option<(Instant, BackfillId)>,
        limit: u32,
    ) -> Result<Listing<BackfillRecord, (Instant, BackfillId)>> {
        self.caller.check_some(Permission::Read)?;
        let mut connection = self.connection().await?;
        let rows = limit.saturating_add(1);
        let found = select::backfills(&mut *connection, self.tenant(), workflow, after, rows).await?;
        let page = Listing::new(found, limit, |record: &BackfillRecord| (record.created_at, record.id));
        Ok(page.only(|record| self.may(Permission::Read, &record.workflow)))
    }

    /// How many dates of a backfill wait (`waiting`), and how many have a run in which state (`forgotten` if it is gone).
    pub async fn backfill_progress(&self, backfill: &BackfillRecord) -> Result<BTreeMap<String, u32>> {
        self.check(Permission::Read, &backfill.workflow, &format!("backfill {}", backfill.id))?;
        Ok(select::backfill_progress(&mut *self.connection().await?, backfill.id).await?)
    }
}
