//! The requests of the sweep.

use async_trait::async_trait;
use model::{Instant, RunId};

use crate::{Agenda, Result};

/// The requests of the sweep.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// Everything that is due, and the next due instant, in one statement: an idle tick costs this and no more.
    async fn agenda(&self, now: Instant) -> Result<Agenda>;

    /// Runs that are due for a recheck, the longest overdue first.
    async fn due_rechecks(&self, now: Instant, limit: u32) -> Result<Vec<RunId>>;

    /// Postpones what is due for a run until `until`: for a run that cannot be settled and must not hold up others.
    async fn postpone(&self, run: RunId, now: Instant, until: Instant) -> Result<()>;

    /// Makes every unfinished run due for a recheck: for a bus that has just lost all its messages.
    async fn check_all(&self, now: Instant) -> Result<u64>;
}
