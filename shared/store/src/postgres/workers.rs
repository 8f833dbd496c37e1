//! Workers: who lives, what each of them holds, and what they are told.

use async_trait::async_trait;
use model::{Instant, TenantId, VersionId, WorkerCommand, WorkerCommandKind, WorkerFacts, WorkerId};
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use uuid::Uuid;

use super::Postgres;
use super::rows::{self, column};
use crate::{
    Claim, ClaimedTask, Error, Heartbeat, HeartbeatReply, Result, Silence, WorkerRecord, WorkerViews,
    Workers, normal,
};

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
        let order = found.first().map(order).transpose()?.flatten();
        let holds = found.iter().filter_map(|row| held(row).transpose()).collect::<Result<_>>()?;
        Ok(HeartbeatReply { holds, order })
    }

    async fn farewell(&self, worker: WorkerId) -> Result<Option<WorkerCommand>> {
        let gone = sqlx::query(
            "delete from workers where id = $1 returning command, commanded_by, command_reason, commanded_at",
        )
        .bind(worker.0)
        .fetch_optional(&self.pool)
        .await?;
        gone.as_ref().map(order).transpose().map(Option::flatten)
    }

    async fn command_worker(&self, worker: WorkerId, order: &WorkerCommand) -> Result<Option<WorkerCommand>> {
        let order = normal::order(order);
        sqlx::query(
            "update workers set command = $2, commanded_by = $3, command_reason = $4, commanded_at = $5
              where id = $1 and (command is null or (command = 'drain' and $2 = 'kill'))",
        )
        .bind(worker.0)
        .bind(order.kind.name())
        .bind(order.actor)
        .bind(order.reason)
        .bind(order.at)
        .execute(&self.pool)
        .await?;
        let stands = sqlx::query(
            "select command, commanded_by, command_reason, commanded_at from workers where id = $1",
        )
        .bind(worker.0)
        .fetch_optional(&self.pool)
        .await?;
        stands.as_ref().map(self::order).transpose().map(Option::flatten)
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
                Ok(Silence { worker: WorkerId(row.try_get("id")?), heard_at: row.try_get("heartbeat_at")? })
            })
            .collect()
    }

    async fn lost(&self, silent: &[Silence], limit: u32) -> Result<Vec<Claim>> {
        let found = sqlx::query(include_str!("../../queries/find_lost_attempts.sql"))
            .bind(column(silent, |silence| silence.worker.0))
            .bind(column(silent, |silence| silence.heard_at))
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
        .bind(column(silent, |silence| silence.heard_at))
        .execute(&self.pool)
        .await?;
        Ok(forgotten.rows_affected())
    }
}

#[async_trait]
impl WorkerViews for Postgres {
    async fn workers(
        &self,
        tenant: TenantId,
        after: Option<WorkerId>,
        limit: u32,
    ) -> Result<Vec<WorkerRecord>> {
        let found = sqlx::query(include_str!("../../queries/list_workers.sql"))
            .bind(tenant.0)
            .bind(after.map(|worker| worker.0))
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await?;
        let mut workers: Vec<WorkerRecord> = Vec::new();
        for row in &found {
            let id = WorkerId(row.try_get("id")?);
            if workers.last().is_none_or(|last| last.id != id) {
                let (facts, order) = (facts(row)?, order(row)?);
                let heard_at = row.try_get("heartbeat_at")?;
                workers.push(WorkerRecord { id, facts, heard_at, order, holds: Vec::new() });
            }
            if let (Some(held), Some(last)) = (held(row)?, workers.last_mut()) {
                last.holds.push(ClaimedTask {
                    held,
                    version: VersionId(row.try_get("run_version")?),
                    child: rows::child(row)?,
                    started_at: row.try_get("started_at")?,
                });
            }
        }
        Ok(workers)
    }
}

/// The attempt in a row that may hold none.
fn held(row: &PgRow) -> Result<Option<Claim>> {
    row.try_get::<Option<Uuid>, _>("run")?.map(|_| rows::held(row)).transpose()
}

fn facts(row: &PgRow) -> Result<Option<WorkerFacts>> {
    let Some(function) = row.try_get("function")? else { return Ok(None) };
    Ok(Some(WorkerFacts {
        function,
        queue: row.try_get("queue")?,
        host: row.try_get("host")?,
        version: row.try_get("version")?,
        since: row.try_get("since")?,
        breakers: row.try_get::<Option<Json<_>>, _>("breakers")?.map(|Json(open)| open).unwrap_or_default(),
    }))
}

fn order(row: &PgRow) -> Result<Option<WorkerCommand>> {
    let Some(kind) = row.try_get::<Option<&str>, _>("command")? else { return Ok(None) };
    let known = WorkerCommandKind::named(kind);
    Ok(Some(WorkerCommand {
        kind: known
            .ok_or_else(|| Error::Unreadable { what: "order", why: format!("`{kind}` is not known") })?,
        actor: row.try_get("commanded_by")?,
        reason: row.try_get("command_reason")?,
        at: row.try_get("commanded_at")?,
    }))
}
