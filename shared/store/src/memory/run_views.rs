//! Summaries of many runs.

use async_trait::async_trait;
use model::{AttemptRecord, Event, RunId, TaskIndex, TaskKey, TenantId};

use super::Memory;
use super::draft::Draft;
use crate::{ConcurrencyMember, LogLine, Result, RunCursor, RunFilter, RunViews, chunks};

#[async_trait]
impl RunViews for Memory {
    async fn in_concurrency_group(
        &self,
        tenant: TenantId,
        workflow: &str,
        group: &str,
        limit: u32,
    ) -> Result<Vec<ConcurrencyMember>> {
        let tables = self.shared.tables();
        let mut members = Draft::default().concurrency_group(&tables, tenant, workflow, group);
        members.truncate(limit as usize);
        Ok(members)
    }

    async fn attempts(&self, key: TaskKey) -> Result<Vec<AttemptRecord>> {
        let tables = self.shared.tables();
        Ok(tables.attempts.range((key, 0)..=(key, u32::MAX)).map(|(_, attempt)| attempt.clone()).collect())
    }

    async fn own_events(
        &self,
        run: RunId,
        with: Option<TaskIndex>,
        from: i64,
        limit: u32,
    ) -> Result<Vec<(i64, Event)>> {
        let tables = self.shared.tables();
        let own = |(_, event): &(i64, Event)| event.child.is_none() || event.task == with;
        let all = tables.events(run, from, u32::MAX).into_iter();
        Ok(all.filter(own).take(limit as usize).collect())
    }

    async fn log(&self, key: TaskKey, attempt: u32, from: u32, limit: u32) -> Result<Vec<(u32, LogLine)>> {
        let tables = self.shared.tables();
        let rows = tables.logs.range((key, attempt, 0)..=(key, attempt, u32::MAX));
        let rows = rows.map(|((_, _, first), lines)| (i64::from(*first), lines.clone()));
        let lines = chunks::numbered(rows, from.into(), limit);
        Ok(lines.into_iter().map(|(number, line)| (number as u32, line)).collect())
    }

    async fn horizon(&self, tenant: TenantId, filter: &RunFilter, rows: u32) -> Result<Option<RunCursor>> {
        let served = RunFilter { limit: rows, ..filter.served() };
        let looked_at = self.shared.tables().runs(tenant, &served);
        let last = looked_at.last().filter(|_| looked_at.len() == rows as usize);
        Ok(last.and_then(|record| filter.sort.place(&record.run)))
    }
}
