//! Workers: which are alive, what each of them holds, and their commands.

use async_trait::async_trait;
use model::{Instant, WorkerCommand, WorkerId};
use sqlx::Row;
use sqlx::types::Json;

use super::Postgres;
use super::rows::{self, column, held_if_any, worker_command};
use crate::{Claim, Heartbeat, HeartbeatReply, Result, Silence, Workers, normal};

#[async_trait]
impl Workers for Postgres {
    async fn beat(&self, sign: &Heartbeat) -> Result<HeartbeatReply> {
        let sign = normal::sign(sign);
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
            .fetch_all(&self.pool)
            .await?;
        let command = found.first().map(worker_command).transpose()?.flatten();
        let holds = found.iter().filter_map(|row| held_if_any(row).transpose()).collect::<Result<_>>()?;
        Ok(HeartbeatReply { holds, command })
    }

    async fn farewell(&self, worker: WorkerId) -> Result<Option<WorkerCommand>> {
        let gone = sqlx::query(
            "delete from workers where id = $1 returning command, commanded_by, command_reason, commanded_at",
        )
        .bind(worker.0)
        .fetch_optional(&self.pool)
        .await?;
        gone.as_ref().map(worker_command).transpose().map(Option::flatten)
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
        let stands = sqlx::query(
            "select command, commanded_by, command_reason, commanded_at from workers where id = $1",
        )
        .bind(worker.0)
        .fetch_optional(&self.pool)
        .await?;
        stands.as_ref().map(worker_command).transpose().map(Option::flatten)
    }

    async fn silent(&self, since: Instant, limit: u32) -> Result<Vec<Silence>> {
        let found = sqlx::query(
            "select id, heartbeat_at from workers where heartbeat_at < $1 order by heartbeat_at, id limit $2",
        )
        .bind(since)
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await?;
        found
            .iter()
            .map(|row| {
                Ok(Silence {
                    worker: WorkerId(row.try_get("id")?),
                    heartbeat_at: row.try_get("heartbeat_at")?,
                })
            })
            .collect()
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

    async fn forget_workers(&self, silent: &[Silence]) -> Result<u64> {
        let forgotten = sqlx::query(
            "delete from workers using unnest($1::uuid[], $2::timestamptz[]) as silent (id, heartbeat_at)
              where workers.id = silent.id and workers.heartbeat_at = silent.heartbeat_at",
        )
        .bind(column(silent, |silence| silence.worker.0))
        .bind(column(silent, |silence| silence.heartbeat_at))
        .execute(&self.pool)
        .await?;
        Ok(forgotten.rows_affected())
    }
}
