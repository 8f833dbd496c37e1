//! What is due.

use async_trait::async_trait;
use model::{Instant, Run, RunId};

use super::Memory;
use super::backfills;
use super::breakers;
use super::schedules;
use super::triggers;
use crate::{Agenda, Maintenance, Result};

#[async_trait]
impl Maintenance for Memory {
    async fn agenda(&self, now: Instant) -> Result<Agenda> {
        let tables = self.shared.tables();
        let timers = || tables.timers.values().map(|timer| timer.wake_at);
        Ok(Agenda {
            timer: timers().min(),
            next_timer: timers()
                .filter(|at| *at > now)
                .chain(schedules::first_schedule(&tables, |at| at > now))
                .chain(backfills::first_backfill(&tables, |at| at > now))
                .min(),
            schedule: schedules::first_schedule(&tables, |_| true),
            backfill: backfills::first_backfill(&tables, |_| true),
            recheck: tables.runs.values().filter_map(|row| row.recheck_at).min(),
            unsent: tables.outbox.values().next().map(|(at, _)| *at),
            granted: tables.slots.first_granted(),
            breaker: breakers::first_due(&tables.breakers),
            room: tables.slots.has_room(),
            worker: tables.most_silent(),
            retention: Some(tables.retention_at.unwrap_or(Instant::UNIX_EPOCH)),
            trigger: triggers::first_trigger(&tables),
            neglected: tables.runs.values().any(|row| row.recheck_at.is_none() && is_lost(&row.run)),
            // Only a database has accounts, which set it.
            log_filter: None,
        })
    }

    async fn due_rechecks(&self, now: Instant, limit: u32) -> Result<Vec<RunId>> {
        let tables = self.shared.tables();
        let at = tables.runs.iter().filter_map(|(id, row)| row.recheck_at.map(|at| (at, *id)));
        let mut due: Vec<_> = at.filter(|(at, _)| *at <= now).collect();
        due.sort_unstable();
        Ok(due.into_iter().take(limit as usize).map(|(_, id)| id).collect())
    }

    async fn postpone(&self, run: RunId, now: Instant, until: Instant) -> Result<()> {
        let mut tables = self.shared.tables();
        let tables = &mut *tables;
        let recheck = tables.runs.get_mut(&run).and_then(|row| row.recheck_at.as_mut());
        let timers = tables.timers.iter_mut().filter(|((of, ..), _)| *of == run);
        let timers = timers.map(|(_, timer)| &mut timer.wake_at);
        timers.chain(recheck).filter(|at| **at <= now).for_each(|at| *at = until);
        Ok(())
    }

    async fn check_all(&self, now: Instant) -> Result<u64> {
        let mut tables = self.shared.tables();
        let open = tables.runs.values_mut().filter(|row| row.run.finished_at.is_none());
        Ok(open.map(|row| row.recheck_at = Some(row.recheck_at.map_or(now, |at| at.min(now)))).count() as u64)
    }
}

/// Whether a run needs a recheck: it has not ended, and does not only wait.
fn is_lost(run: &Run) -> bool {
    run.finished_at.is_none() && !run.counts.is_asleep()
}
