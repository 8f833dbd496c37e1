//! How much of everything there is, in one statement.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{Instant, TaskState, TenantId};
use sqlx::Row;
use sqlx::types::Json;

use super::{Postgres, rows};
use crate::load::{ANY_QUEUE, MAX_DEAD_LETTERS_COUNTED, unfinished_runs, unfinished_tasks};
use crate::{Load, Measured, Pool, Result, TenantLoad, Usage};

#[async_trait]
impl Measured for Postgres {
    async fn load(&self) -> Result<Load> {
        let row = sqlx::query(include_str!("../../queries/read_load.sql"))
            .bind(i64::from(MAX_DEAD_LETTERS_COUNTED))
            .bind(ANY_QUEUE)
            .fetch_one(&self.pool)
            .await?;
        let Json(runs): Json<BTreeMap<String, u32>> = row.try_get("runs")?;
        let Json(tenants): Json<Vec<(String, BTreeMap<usize, u32>, Option<Instant>)>> =
            row.try_get("tenants")?;
        let Json(workers) = row.try_get("workers")?;
        let tenant = |(name, tasks, waits_since): (String, BTreeMap<usize, u32>, Option<Instant>)| {
            let of = |state: TaskState| {
                // Arrays of Postgres begin with 1.
                let place = TaskState::ALL.iter().position(|each| *each == state).map(|place| place + 1);
                (state, place.and_then(|place| tasks.get(&place)).copied().unwrap_or(0))
            };
            TenantLoad { name, tasks: unfinished_tasks().map(of).collect(), waits_since }
        };
        Ok(Load {
            runs: unfinished_runs()
                .map(|state| (state, runs.get(state.name()).copied().unwrap_or(0)))
                .collect(),
            tenants: tenants.into_iter().map(tenant).collect(),
            unsent: row.try_get("unsent")?,
            timer: row.try_get("timer")?,
            dead_letters: rows::number(&row, "dead_letters")?,
            breakers: rows::number(&row, "breakers")?,
            workers,
        })
    }

    async fn usage(&self, tenant: TenantId, most: u32) -> Result<Usage> {
        let row = sqlx::query(include_str!("../../queries/read_usage.sql"))
            .bind(tenant.0)
            .bind(unfinished_runs().map(|state| state.name().to_owned()).collect::<Vec<_>>())
            .bind(i64::from(most))
            .fetch_one(&self.pool)
            .await?;
        Ok(Usage { runs: rows::number(&row, "runs")?, workflows: rows::number(&row, "workflows")? })
    }

    fn pool(&self) -> Option<Pool> {
        let (open, idle) = (self.pool.size(), self.pool.num_idle() as u32);
        Some(Pool { open, idle: idle.min(open), most: self.pool.options().get_max_connections() })
    }
}
