//! Many runs at a glance.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use async_trait::async_trait;
use model::{AttemptRecord, Event, Instant, Run, RunId, RunState, Task, TaskIndex, TaskKey, TenantId};

use super::Memory;
use super::draft::Draft;
use crate::{Glance, LaneMember, LogLine, Result, RunFilter, RunPlace, RunViews, chunks};

#[async_trait]
impl RunViews for Memory {
    async fn in_lane(
        &self,
        tenant: TenantId,
        workflow: &str,
        lane: &str,
        limit: u32,
    ) -> Result<Vec<LaneMember>> {
        let tables = self.shared.tables();
        let mut members = Draft::default().lane(&tables, tenant, workflow, lane);
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

    async fn outline(&self, runs: &[RunId]) -> Result<Vec<(RunId, Task)>> {
        let tables = self.shared.tables();
        let mut runs = runs.to_vec();
        runs.sort_unstable();
        let of_definition = |run: &RunId| {
            let tasks = tables.tasks_of(*run, None).take_while(|(_, task)| task.child.is_none());
            tasks.map(|(key, task)| (key.run, task.clone())).collect::<Vec<_>>()
        };
        Ok(runs.iter().flat_map(of_definition).collect())
    }

    async fn pulse(&self, tenant: TenantId, since: Instant, limit: u32) -> Result<Vec<(Instant, RunState)>> {
        let tables = self.shared.tables();
        let runs = tables.runs.values().map(|row| &row.run);
        let mut found: Vec<_> = runs
            .filter(|run| run.tenant == tenant && run.created_at >= since)
            .map(|run| (run.created_at, run.id, run.state))
            .collect();
        found.sort_by_key(|(created_at, id, _)| Reverse((*created_at, *id)));
        Ok(found.into_iter().take(limit as usize).map(|(created_at, _, state)| (created_at, state)).collect())
    }

    async fn horizon(&self, tenant: TenantId, filter: &RunFilter, rows: u32) -> Result<Option<RunPlace>> {
        let served = RunFilter { limit: rows, ..filter.served() };
        let looked_at = self.shared.tables().runs(tenant, &served);
        let last = looked_at.last().filter(|_| looked_at.len() == rows as usize);
        Ok(last.and_then(|record| filter.sort.place(&record.run)))
    }

    async fn last_runs(&self, tenant: TenantId, workflows: &[String], each: u32) -> Result<Vec<Glance>> {
        let tables = self.shared.tables();
        let last = |workflow: &String| {
            let filter = RunFilter { workflow: Some(workflow.clone()), limit: each, ..RunFilter::default() };
            tables.runs(tenant, &filter).into_iter().map(|record| glance(record.run))
        };
        Ok(workflows.iter().collect::<BTreeSet<_>>().into_iter().flat_map(last).collect())
    }
}

fn glance(run: Run) -> Glance {
    let Run { id, workflow, version, state, created_at, started_at, finished_at, .. } = run;
    Glance { id, workflow, version, state, created_at, started_at, finished_at }
}
