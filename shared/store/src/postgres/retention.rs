//! Deletes what has expired, in short transactions.

use async_trait::async_trait;
use model::{Instant, Run, RunId, RunState};
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::beginning::begin;
use super::{Postgres, partitions};
use crate::retention::{MAX_DELETED_AT_ONCE, at_once};
use crate::triggers::TRIGGER_EVENT_TTL;
use crate::{Part, Result, Retention};

#[async_trait]
impl Retention for Postgres {
    async fn take_retention(&self, now: Instant, until: Instant) -> Result<bool> {
        let taken = sqlx::query("update retention_pass set next_at = $2 where next_at <= $1")
            .bind(now)
            .bind(until)
            .execute(&self.pool)
            .await?;
        Ok(taken.rows_affected() == 1)
    }

    async fn rest_retention(&self, until: Instant) -> Result<()> {
        sqlx::query("update retention_pass set next_at = $1").bind(until).execute(&self.pool).await?;
        Ok(())
    }

    async fn expired(&self, part: Part, state: RunState, before: Instant) -> Result<Vec<RunId>> {
        let found = sqlx::query(include_str!("../../queries/find_expired_runs.sql"))
            .bind(part.name())
            .bind(state.name())
            .bind(before)
            .bind(i64::from(MAX_DELETED_AT_ONCE))
            .fetch_all(&self.pool)
            .await?;
        let run = |row: &PgRow| {
            let counts: Vec<i32> = row.try_get("counts")?;
            Ok((RunId(row.try_get("id")?), counts.into_iter().map(i32::unsigned_abs).sum::<u32>()))
        };
        Ok(at_once(found.iter().map(run).collect::<Result<Vec<_>>>()?))
    }

    async fn documents(&self, part: Part, runs: &[RunId]) -> Result<Vec<Value>> {
        let statement = match part {
            Part::Outputs => {
                "select json_build_object('run', run, 'task', idx, 'output', output) as document
                   from outputs where run = any($1) order by run, idx"
            }
            Part::Logs => {
                "select to_json(logs) as document from runs join logs on logs.run = runs.id and logs.run_at = runs.created_at
                  where runs.id = any($1) order by logs.run, idx, attempt, first"
            }
            Part::Whole => include_str!("../../queries/read_documents.sql"),
        };
        let found = sqlx::query(statement).bind(ids(runs)).fetch_all(&self.pool).await?;
        found.iter().map(|row| Ok(row.try_get::<Json<Value>, _>("document")?.0)).collect()
    }

    async fn turn_pages(&self, now: Instant, before: Instant) -> Result<()> {
        partitions::turn(&self.pool, now, before).await
    }

    async fn forget(&self, part: Part, runs: &[RunId]) -> Result<()> {
        let Some(last) = runs.last() else { return Ok(()) };
        let mut transaction = begin(&self.pool).await?;
        match part {
            Part::Whole => forget_whole(&mut transaction, runs).await?,
            Part::Outputs | Part::Logs => {
                let ended = lock_ended(&mut transaction, runs).await?;
                let statements: &[&'static str] = match part {
                    Part::Logs => &["delete from logs_other where run = any($1)"],
                    // What was delivered cannot be reused any more, either.
                    _ => &[
                        "delete from outputs where run = any($1)",
                        "delete from shared_tasks where owner_run = any($1) and finished_at is not null",
                    ],
                };
                for statement in statements {
                    sqlx::query(*statement).bind(&ended).execute(&mut *transaction).await?;
                }
                sqlx::query(include_str!("../../queries/note_forgotten.sql"))
                    .bind(part.name())
                    .bind(last.0)
                    .execute(&mut *transaction)
                    .await?;
            }
        }
        transaction.commit().await?;
        Ok(())
    }

    async fn delete_dead_letters(&self, before: Instant) -> Result<u64> {
        let gone = sqlx::query(
            "delete from dead_letters where id in (
                 select id from dead_letters where at <= $1 order by at, id limit $2 for update skip locked
             )",
        );
        let gone = gone.bind(before).bind(i64::from(MAX_DELETED_AT_ONCE)).execute(&self.pool).await?;
        Ok(gone.rows_affected())
    }

    async fn forget_trigger_events(&self, now: Instant) -> Result<u64> {
        let gone = sqlx::query(
            "delete from trigger_events where (tenant, workflow, name, id) in (
                 select tenant, workflow, name, id from trigger_events
                  where at < $1 order by at limit $2 for update skip locked
             )",
        );
        let gone = gone
            .bind(now - TRIGGER_EVENT_TTL)
            .bind(i64::from(MAX_DELETED_AT_ONCE))
            .execute(&self.pool)
            .await?;
        Ok(gone.rows_affected())
    }

    async fn forget_breakers(&self, before: Instant) -> Result<u64> {
        let gone = sqlx::query(
            "delete from breakers where id in (
                 select id from breakers
                  where not exists (select from unnest(failed_at) as failed (at) where at > $1)
                    and (open_until is null or kind = 'host' and open_until <= $1)
                  order by id limit $2 for update skip locked
             )",
        );
        let gone = gone.bind(before).bind(i64::from(MAX_DELETED_AT_ONCE)).execute(&self.pool).await?;
        Ok(gone.rows_affected())
    }
}

/// Every table with rows of a run, those that refer to others first. What lies in partitions goes with them.
const TABLES: [&str; 15] = [
    "delete from offers where run = any($1)",
    "delete from timers where run = any($1)",
    "delete from signals where run = any($1)",
    "delete from shared_task_waiters where run = any($1)",
    "delete from shared_tasks where owner_run = any($1)",
    "delete from items where run = any($1)",
    "delete from checkpoints where run = any($1)",
    "delete from progress where run = any($1)",
    "delete from outputs where run = any($1)",
    "delete from attempts where run = any($1)",
    "delete from logs_other where run = any($1)",
    "delete from events_other where run = any($1)",
    "delete from tasks where run = any($1)",
    "delete from run_labels where run = any($1)",
    "delete from run_facts where run = any($1)",
];

/// Whether that part of a run was deleted: runs are gone through in the order of their ends.
pub(super) async fn has_forgotten(connection: &mut PgConnection, part: Part, run: &Run) -> Result<bool> {
    let place = "select exists (select from retention
                  where part = $1 and state = $2 and (finished_at, run) >= ($3, $4))";
    let place = sqlx::query_scalar(place).bind(part.name()).bind(run.state.name());
    Ok(place.bind(run.finished_at).bind(run.id.0).fetch_one(connection).await?)
}

/// Locks those of the runs that have ended: nobody decides on them meanwhile.
async fn lock_ended(connection: &mut PgConnection, runs: &[RunId]) -> Result<Vec<Uuid>> {
    let ended = sqlx::query(
        "select id from runs where id = any($1) and finished_at is not null order by id for update",
    )
    .bind(ids(runs))
    .fetch_all(connection)
    .await?;
    Ok(ended.iter().map(|row| row.try_get("id")).collect::<sqlx::Result<_>>()?)
}

async fn forget_whole(connection: &mut PgConnection, runs: &[RunId]) -> Result<()> {
    let ended = lock_ended(connection, runs).await?;
    for statement in TABLES {
        sqlx::query(statement).bind(&ended).execute(&mut *connection).await?;
    }
    sqlx::query("delete from runs where id = any($1)").bind(&ended).execute(connection).await?;
    Ok(())
}

fn ids(runs: &[RunId]) -> Vec<Uuid> {
    runs.iter().map(|run| run.0).collect()
}
