//! Backfills and their dates.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{BackfillId, Instant, RunId, RunState, TenantId};

use super::Memory;
use super::tables::Tables;
use crate::backfills::MAX_DELETED_AT_ONCE;
use crate::{BackfillDate, BackfillRecord, BackfillTurn, Backfills, DateStep, Result, normal};

#[async_trait]
impl Backfills for Memory {
    async fn runs_of_dates(
        &self,
        tenant: TenantId,
        workflow: &str,
        schedule: &str,
        from: Instant,
        to: Instant,
    ) -> Result<BTreeMap<Instant, (RunId, RunState)>> {
        let tables = self.shared.tables();
        let schedule = normal::schedule_of_date(schedule).into_owned();
        let key = |date| (tenant, workflow.to_owned(), schedule.clone(), date);
        let found = tables.dates.range(key(from)..=key(to));
        let found =
            found.filter_map(|((.., date), run)| Some((*date, (*run, tables.runs.get(run)?.run.state))));
        Ok(found.collect())
    }

    async fn create_backfill(&self, record: &BackfillRecord, dates: &[BackfillDate]) -> Result<()> {
        let mut tables = self.shared.tables();
        if tables.backfills.contains_key(&record.id) {
            return Ok(());
        }
        let created_by = normal::text(&record.created_by).into_owned();
        tables.backfills.insert(record.id, BackfillRecord { created_by, ..record.clone() });
        let rows = dates
            .iter()
            .map(|date| ((record.id, date.date), BackfillDate { step: DateStep::Waiting, ..*date }));
        tables.backfill_dates.extend(rows);
        Ok(())
    }

    async fn any_backfill(&self, id: BackfillId) -> Result<Option<BackfillRecord>> {
        Ok(self.shared.tables().backfills.get(&id).cloned())
    }

    async fn backfills(
        &self,
        tenant: TenantId,
        workflow: Option<&str>,
        after: Option<(Instant, BackfillId)>,
        limit: u32,
    ) -> Result<Vec<BackfillRecord>> {
        let tables = self.shared.tables();
        let wanted = tables.backfills.values().filter(|row| {
            row.tenant == tenant
                && workflow.is_none_or(|workflow| row.workflow == workflow)
                && after.is_none_or(|after| (row.created_at, row.id) < after)
        });
        let mut wanted: Vec<BackfillRecord> = wanted.cloned().collect();
        wanted.sort_by_key(|row| Reverse((row.created_at, row.id)));
        wanted.truncate(limit as usize);
        Ok(wanted)
    }

    async fn due_backfills(&self, now: Instant, limit: u32) -> Result<Vec<BackfillRecord>> {
        let tables = self.shared.tables();
        let due = tables.backfills.values().filter(|row| row.due_at.is_some_and(|at| at <= now));
        let mut due: Vec<BackfillRecord> = due.cloned().collect();
        due.sort_by_key(|row| (row.due_at, row.id));
        due.truncate(limit as usize);
        Ok(due)
    }

    async fn save_backfill(&self, record: &BackfillRecord) -> Result<bool> {
        let mut tables = self.shared.tables();
        let Some(row) = tables.backfills.get_mut(&record.id).filter(|row| row.revision == record.revision)
        else {
            return Ok(false);
        };
        row.state = record.state;
        row.finished_at = record.finished_at;
        row.cancelled_by = record.cancelled_by.as_deref().map(|by| normal::text(by).into_owned());
        row.due_at = record.due_at;
        row.problem = record.problem.as_deref().map(|problem| normal::text(problem).into_owned());
        row.revision += 1;
        Ok(true)
    }

    async fn backfill_turn(&self, id: BackfillId, limit: u32) -> Result<BackfillTurn> {
        let tables = self.shared.tables();
        let open = |date: &BackfillDate| {
            let row = date.run.and_then(|run| tables.runs.get(&run));
            let goes_on = row.is_some_and(|row| row.run.finished_at.is_none());
            date.step == DateStep::Claimed || date.step == DateStep::Begun && goes_on
        };
        let first = |step: DateStep| {
            let dates = dates_of(&tables, id).filter(|date| date.step == step);
            dates.copied().take(limit as usize).collect()
        };
        Ok(BackfillTurn {
            active: dates_of(&tables, id).filter(|date| open(date)).count() as u32,
            redoing: dates_of(&tables, id).any(|date| open(date) && date.redo),
            claimed: first(DateStep::Claimed),
            waiting: first(DateStep::Waiting),
        })
    }

    async fn move_date(&self, id: BackfillId, from: DateStep, date: &BackfillDate) -> Result<bool> {
        let mut tables = self.shared.tables();
        match tables.backfill_dates.get_mut(&(id, date.date)).filter(|row| row.step == from) {
            Some(row) => {
                *row = BackfillDate { interval_start: row.interval_start, ..*date };
                Ok(true)
            }
            None => Ok(false),
        }
    }

    async fn backfill_runs(
        &self,
        id: BackfillId,
        states: &[RunState],
        limit: u32,
    ) -> Result<Vec<(BackfillDate, RunState)>> {
        let tables = self.shared.tables();
        let begun = dates_of(&tables, id).filter(|date| date.step != DateStep::Waiting);
        let with_state = begun.filter_map(|date| Some((*date, tables.runs.get(&date.run?)?.run.state)));
        Ok(with_state.filter(|(_, state)| states.contains(state)).take(limit as usize).collect())
    }

    async fn forget_backfills(&self, before: Instant) -> Result<u64> {
        let _turn = self.turn.lock().await;
        let mut tables = self.shared.tables();
        let old = tables.backfills.values().filter(|row| row.due_at.is_none());
        let old = old.filter_map(|row| Some((row.finished_at?, row.id))).filter(|(at, _)| *at <= before);
        let mut old: Vec<_> = old.collect();
        old.sort_unstable();
        old.truncate(MAX_DELETED_AT_ONCE as usize);
        for (_, id) in &old {
            tables.backfills.remove(id);
            tables.backfill_dates.retain(|(of, _), _| of != id);
            tables.slots.forget_backfill(*id);
        }
        Ok(old.len() as u64)
    }
}

fn dates_of(tables: &Tables, id: BackfillId) -> impl Iterator<Item = &BackfillDate> {
    tables.backfill_dates.range((id, Instant::MIN_UTC)..=(id, Instant::MAX_UTC)).map(|(_, date)| date)
}

/// When the first backfill is due, among those that pass.
pub(super) fn first_backfill(tables: &Tables, passes: impl Fn(Instant) -> bool) -> Option<Instant> {
    tables.backfills.values().filter_map(|row| row.due_at).filter(|at| passes(*at)).min()
}
