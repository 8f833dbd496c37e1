//! Workers: which are alive, what each of them holds, and their commands.

use std::collections::BTreeSet;

use async_trait::async_trait;
use chrono::TimeDelta;
use model::{Abilities, Instant, Labels, ResourceUsage, ServedQueues, TenantId, WorkerCommand, WorkerId};
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{PgExecutor, Row};

use super::Postgres;
use super::rows::{self, column, held_if_any, int, worker_command};
use crate::workers::DEAD_WORKER_TTL;
use crate::{Claim, Heartbeat, HeartbeatReply, Result, Silence, Workers, normal};

#[async_trait]
impl Workers for Postgres {
    async fn beat(&self, sign: &Heartbeat) -> Result<HeartbeatReply> {
        let sign = normal::heartbeat(sign);
        let facts = sign.facts.as_ref();
        let found = sqlx::query(include_str!("../../queries/record_beat.sql"))
            .bind(sign.worker.0)
            .bind(sign.at)
            .bind(facts.map(|facts| &facts.function))
            .bind(facts.and_then(|facts| facts.queue.as_ref()))
            .bind(facts.map(|facts| &facts.host))
            .bind(facts.map(|facts| &facts.version))
            .bind(facts.map(|facts| facts.since))
            .bind(facts.map(|facts| Json(&facts.breakers)))
            .bind(facts.and_then(|facts| facts.remote.as_ref()).map(Json))
            .fetch_all(&self.pool)
            .await?;
        let command = found.first().map(worker_command).transpose()?.flatten();
        let holds = found.iter().filter_map(|row| held_if_any(row).transpose()).collect::<Result<_>>()?;
        Ok(HeartbeatReply { holds, command })
    }

    async fn check_in(&self, sign: &Heartbeat, every: TimeDelta) -> Result<Option<WorkerCommand>> {
        let sign = normal::heartbeat(sign);
        let facts = sign.facts.as_ref();
        let found = sqlx::query(include_str!("../../queries/record_check_in.sql"))
            .bind(sign.worker.0)
            .bind(sign.at)
            .bind(facts.map(|facts| &facts.function))
            .bind(facts.and_then(|facts| facts.queue.as_ref()))
            .bind(facts.map(|facts| &facts.host))
            .bind(facts.map(|facts| &facts.version))
            .bind(facts.map(|facts| facts.since))
            .bind(facts.and_then(|facts| facts.remote.as_ref()).map(Json))
            .bind(every.as_seconds_f64())
            .fetch_optional(&self.pool)
            .await?;
        found.as_ref().map(worker_command).transpose().map(Option::flatten)
    }

    async fn report_usage(&self, worker: WorkerId, usage: &ResourceUsage) -> Result<()> {
        sqlx::query(
            "update workers set remote = (remote::jsonb || jsonb_build_object('usage', $2::jsonb))::json
              where id = $1 and remote is not null",
        )
        .bind(worker.0)
        .bind(Json(usage))
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    async fn count_done(&self, done: &[(WorkerId, u32)]) -> Result<()> {
        sqlx::query(
            // Locked in the order of their ids, so that two processes cannot deadlock.
            "update workers set tasks_done = tasks_done + done.count
               from (select workers.id, given.count
                       from unnest($1::uuid[], $2::int[]) as given (id, count)
                       join workers on workers.id = given.id
                      order by workers.id for update of workers) as done
              where workers.id = done.id",
        )
        .bind(column(done, |(worker, _)| worker.0))
        .bind(column(done, |(_, count)| int(*count)))
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    async fn farewell(&self, worker: WorkerId) -> Result<Option<WorkerCommand>> {
        let removed = sqlx::query(
            "delete from workers where id = $1 returning command, commanded_by, command_reason, commanded_at",
        )
        .bind(worker.0)
        .fetch_optional(&self.pool)
        .await?;
        removed.as_ref().map(worker_command).transpose().map(Option::flatten)
    }

    async fn command_worker(
        &self,
        worker: WorkerId,
        command: &WorkerCommand,
    ) -> Result<Option<WorkerCommand>> {
        let command = normal::worker_command(command);
        sqlx::query(
            "update workers set command = $2, commanded_by = $3, command_reason = $4, commanded_at = $5
              where id = $1 and (command is null or (command = 'drain' and $2 = 'kill'))",
        )
        .bind(worker.0)
        .bind(command.kind.name())
        .bind(command.actor)
        .bind(command.reason)
        .bind(command.at)
        .execute(&self.pool)
        .await?;
        let in_force = sqlx::query(
            "select command, commanded_by, command_reason, commanded_at from workers where id = $1",
        )
        .bind(worker.0)
        .fetch_optional(&self.pool)
        .await?;
        in_force.as_ref().map(worker_command).transpose().map(Option::flatten)
    }

    async fn served_queues(&self) -> Result<ServedQueues> {
        served_queues(&self.pool).await
    }

    async fn silent(&self, since: Instant, limit: u32) -> Result<Vec<Silence>> {
        let found = sqlx::query(
            "select id, heartbeat_at from workers where heartbeat_at < $1 and dead_at is null
              order by heartbeat_at, id limit $2",
        )
        .bind(since)
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await?;
        found.iter().map(silence).collect()
    }

    async fn own_workers(&self) -> Result<Vec<Silence>> {
        let found = sqlx::query(
            "select id, heartbeat_at from workers where remote is null and dead_at is null order by id",
        )
        .fetch_all(&self.pool)
        .await?;
        found.iter().map(silence).collect()
    }

    async fn lost(&self, silent: &[Silence], limit: u32) -> Result<Vec<Claim>> {
        let found = sqlx::query(include_str!("../../queries/find_lost_attempts.sql"))
            .bind(column(silent, |silence| silence.worker.0))
            .bind(column(silent, |silence| silence.heartbeat_at))
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await?;
        found.iter().map(rows::held).collect()
    }

    async fn mark_dead(&self, silent: &[Silence], now: Instant) -> Result<u64> {
        let died = sqlx::query(
            "update workers set dead_at = $3 from unnest($1::uuid[], $2::timestamptz[]) as silent (id, heartbeat_at)
              where workers.id = silent.id and workers.heartbeat_at = silent.heartbeat_at and dead_at is null",
        )
        .bind(column(silent, |silence| silence.worker.0))
        .bind(column(silent, |silence| silence.heartbeat_at))
        .bind(now)
        .execute(&self.pool)
        .await?;
        let forget = sqlx::query("delete from workers where dead_at <= $1");
        forget.bind(now - DEAD_WORKER_TTL).execute(&self.pool).await?;
        Ok(died.rows_affected())
    }
}

/// The queues that living remote workers serve, of the tenants that the connection sees.
pub async fn served_queues(executor: impl PgExecutor<'_>) -> Result<ServedQueues> {
    type Served = (i32, String, Option<Json<Labels>>, Option<Json<BTreeSet<String>>>);
    let found = sqlx::query_as::<_, Served>(
        "select distinct (remote ->> 'tenant')::integer, queue,
                (remote -> 'labels')::jsonb, (remote -> 'types')::jsonb
           from workers where dead_at is null and remote is not null and queue is not null",
    );
    let found = found.fetch_all(executor).await?;
    let served = found.into_iter().map(|(tenant, queue, labels, types)| {
        let labels = labels.map(|Json(labels)| labels).unwrap_or_default();
        (TenantId(tenant), queue, Abilities { labels, types: types.map(|Json(types)| types) })
    });
    Ok(served.collect())
}

fn silence(row: &PgRow) -> Result<Silence> {
    Ok(Silence { worker: WorkerId(row.try_get("id")?), heartbeat_at: row.try_get("heartbeat_at")? })
}
