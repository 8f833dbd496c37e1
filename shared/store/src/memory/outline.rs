//! Many runs at a glance.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use async_trait::async_trait;
use model::{Instant, Run, RunId, RunState, Task, TenantId};

use super::Memory;
use crate::{Glance, Outlines, Result, RunFilter, RunPlace};

#[async_trait]
impl Outlines for Memory {
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
