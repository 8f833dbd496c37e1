//! Timers and rechecks that are due, and when the next of anything is.

use async_trait::async_trait;
use model::{Instant, RunId};
use sqlx::Row;

use super::Postgres;
use super::beginning::begin;
use crate::{Agenda, Maintenance, Result};

#[async_trait]
impl Maintenance for Postgres {
    async fn agenda(&self, now: Instant) -> Result<Agenda> {
        let row = sqlx::query(include_str!("../../queries/read_agenda.sql"))
            .bind(now)
            .fetch_one(&self.pool)
            .await?;
        Ok(Agenda {
            timer: row.try_get("timer")?,
            next_timer: row.try_get("next_timer")?,
            schedule: row.try_get("schedule")?,
            backfill: row.try_get("backfill")?,
            recheck: row.try_get("recheck")?,
            unsent: row.try_get("unsent")?,
            granted: row.try_get("granted")?,
            breaker: row.try_get("breaker")?,
            room: row.try_get("room")?,
            worker: row.try_get("worker")?,
            retention: row.try_get("retention")?,
            trigger: row.try_get("trigger")?,
            neglected: row.try_get("neglected")?,
            log_filter: row.try_get("log_filter")?,
        })
    }

    async fn due_rechecks(&self, now: Instant, limit: u32) -> Result<Vec<RunId>> {
        let found =
            sqlx::query("select id from runs where recheck_at <= $1 order by recheck_at, id limit $2")
                .bind(now)
                .bind(i64::from(limit))
                .fetch_all(&self.pool)
                .await?;
        found.iter().map(|row| Ok(RunId(row.try_get("id")?))).collect()
    }

    async fn postpone(&self, run: RunId, now: Instant, until: Instant) -> Result<()> {
        let mut transaction = begin(&self.pool).await?;
        for statement in [
            "update runs set recheck_at = $3 where id = $1 and recheck_at <= $2",
            "update timers set wake_at = $3 where run = $1 and wake_at <= $2",
        ] {
            sqlx::query(statement).bind(run.0).bind(now).bind(until).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    async fn check_all(&self, now: Instant) -> Result<u64> {
        let written = sqlx::query(include_str!("../../queries/check_all_runs.sql"))
            .bind(now)
            .execute(&self.pool)
            .await?;
        Ok(written.rows_affected())
    }
}
