//! How much of everything there is.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{RunState, TenantId};

use super::Memory;
use super::breakers;
use super::tables::Tables;
use crate::load::{ANY_QUEUE, MAX_DEAD_LETTERS_COUNTED, unfinished_runs, unfinished_tasks};
use crate::{Load, Measured, Result, TenantLoad, Usage};

#[async_trait]
impl Measured for Memory {
    async fn load(&self) -> Result<Load> {
        Ok(load(&self.shared.tables()))
    }

    async fn usage(&self, tenant: TenantId, most: u32) -> Result<Usage> {
        let tables = self.shared.tables();
        let unfinished =
            tables.runs.values().filter(|row| row.run.tenant == tenant && !row.run.state.is_final());
        let workflows = tables.workflows.keys().filter(|(owner, _)| *owner == tenant);
        let counted = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).min(most);
        Ok(Usage { runs: counted(unfinished.count()), workflows: counted(workflows.count()) })
    }
}

fn load(tables: &Tables) -> Load {
    let runs = |state: RunState| {
        let runs = tables.runs.values().filter(|row| row.run.state == state).count();
        (state, runs as u32)
    };
    let tenants: BTreeMap<&str, TenantId> = tables.all_tenants().map(|(id, name, _)| (name, id)).collect();
    Load {
        runs: unfinished_runs().map(runs).collect(),
        tenants: tenants.into_iter().map(|(name, tenant)| load_of(tables, name, tenant)).collect(),
        unsent: tables.outbox.values().next().map(|(at, _)| *at),
        timer: tables.timers.values().map(|timer| timer.wake_at).min(),
        breakers: breakers::open(&tables.breakers),
        workers: workers(tables),
        dead_letters: (tables.dead_letters.len() as u32).min(MAX_DEAD_LETTERS_COUNTED),
    }
}

fn workers(tables: &Tables) -> BTreeMap<String, u32> {
    let mut counted = BTreeMap::new();
    for worker in tables.workers.values().filter(|worker| !worker.is_dead()) {
        *counted.entry(worker.queue().unwrap_or(ANY_QUEUE).to_owned()).or_default() += 1;
    }
    counted
}

fn load_of(tables: &Tables, name: &str, tenant: TenantId) -> TenantLoad {
    let unfinished =
        || tables.runs.values().filter(|row| row.run.tenant == tenant && !row.run.state.is_final());
    let of = |state| (state, unfinished().map(|row| row.run.counts.of(state)).sum());
    TenantLoad {
        name: name.to_owned(),
        tasks: unfinished_tasks().map(of).collect(),
        waits_since: tables.slots.waits_since(tenant),
    }
}
