//! Timers.

use async_trait::async_trait;
use model::Instant;

use super::Memory;
use super::tables::Tables;
use crate::{DueTimer, Result, Timers};

#[async_trait]
impl Timers for Memory {
    async fn due_timers(&self, now: Instant, limit: u32) -> Result<Vec<DueTimer>> {
        Ok(self.shared.tables().due_timers(now, limit))
    }
}

impl Tables {
    pub(super) fn due_timers(&self, now: Instant, limit: u32) -> Vec<DueTimer> {
        let mut due: Vec<_> = self.timers.iter().filter(|(_, timer)| timer.wake_at <= now).collect();
        due.sort_by_key(|((run, task, kind), timer)| (timer.wake_at, *run, *task, kind.name()));
        due.truncate(limit as usize);
        due.into_iter().map(|((run, ..), timer)| DueTimer { run: *run, timer: timer.clone() }).collect()
    }
}
