//! The state of a database under a long load.

use anyhow::Result;
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::FromRow;

use super::Database;

/// What a soak samples. Sessions and counters of this program are left out where possible.
#[derive(Clone, Copy, FromRow)]
pub(crate) struct Health {
    pub(crate) now: DateTime<Utc>,
    pub(crate) in_progress: i64,
    pub(crate) finished: i64,
    pub(crate) connections: i64,
    pub(crate) idle_in_transaction: i64,
    pub(crate) dead_percent: f64,
    pub(crate) database_mb: f64,
}

/// The number of runs that ended in each way, and of those that did not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromRow, Serialize)]
pub(crate) struct Ended {
    pub(crate) runs: i64,
    /// Runs that the schedule started.
    pub(crate) scheduled: i64,
    pub(crate) succeeded: i64,
    pub(crate) cancelled: i64,
    pub(crate) failed: i64,
    pub(crate) unfinished: i64,
}

impl Database {
    pub(crate) async fn health(&self) -> Result<Health> {
        let select = "
            /* bench */ select now() as now,
              (select count(*) from runs where finished_at is null) as in_progress,
              (select count(*) from runs where finished_at is not null) as finished,
              sessions.open as connections, sessions.idle as idle_in_transaction,
              (select (100.0 * sum(n_dead_tup) / greatest(sum(n_live_tup + n_dead_tup), 1))::float8
                 from pg_stat_user_tables) as dead_percent,
              (pg_database_size(current_database()) / 1048576.0)::float8 as database_mb
              from (select count(*) as open,
                           count(*) filter (where state like 'idle in transaction%'
                                              and state_change < now() - interval '1 second') as idle
                      from pg_stat_activity
                     where datname = current_database() and application_name = 'ebbflow') sessions";
        Ok(sqlx::query_as(select).fetch_one(&self.pool).await?)
    }

    /// The durations of the runs of a workflow that ended after an instant, in milliseconds.
    pub(crate) async fn run_times_since(&self, workflow: &str, since: DateTime<Utc>) -> Result<Vec<f64>> {
        let select = "
            /* bench */ select (extract(epoch from finished_at - created_at) * 1000)::float8
              from runs where workflow = $1 and finished_at > $2";
        Ok(sqlx::query_scalar(select).bind(workflow).bind(since).fetch_all(&self.pool).await?)
    }

    pub(crate) async fn ended(&self) -> Result<Ended> {
        let select = "
            /* bench */ select count(*) as runs,
              count(*) filter (where run_facts.trigger_kind = 'schedule') as scheduled,
              count(*) filter (where state = 'succeeded') as succeeded,
              count(*) filter (where state = 'cancelled') as cancelled,
              count(*) filter (where state = 'failed') as failed,
              count(*) filter (where finished_at is null) as unfinished
              from runs join run_facts on run_facts.run = runs.id";
        Ok(sqlx::query_as(select).fetch_one(&self.pool).await?)
    }
}
