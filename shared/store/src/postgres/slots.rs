//! Limits and their wait queues, outside a transaction.

use async_trait::async_trait;
use model::{Granted, Instant, Limit, TaskKey, TenantId};
use sqlx::postgres::PgRow;
use sqlx::{PgExecutor, Row};

use super::Postgres;
use super::admission::{limit, tenant_of};
use super::rows::{self, int, number};
use crate::{LimitRecord, Result, SlotWait, Slots, normal};

#[async_trait]
impl Slots for Postgres {
    async fn set_slots(&self, limit: &Limit, slots: Option<u32>) -> Result<()> {
        sqlx::query(
            "insert into limits (kind, tenant, name, slots) values ($1, $2, $3, $4)
                 on conflict (kind, tenant, name) do update set slots = excluded.slots",
        )
        .bind(limit.kind())
        .bind(tenant_of(limit))
        .bind(normal::text(limit.name()))
        .bind(slots.map(int))
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    async fn set_weight(&self, tenant: TenantId, weight: u32) -> Result<()> {
        sqlx::query("update tenants set weight = $2 where id = $1")
            .bind(tenant.0)
            .bind(int(weight))
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    async fn untaken(&self, before: Instant, limit: u32) -> Result<Vec<Granted>> {
        let found = sqlx::query(
            "select run, idx, attempt from slot_waiters where granted_at <= $1 order by granted_at, run, idx limit $2",
        )
        .bind(before)
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await?;
        found
            .iter()
            .map(|row| Ok(Granted { key: rows::key(row)?, attempt: number(row, "attempt")? }))
            .collect()
    }

    async fn limits(&self, tenant: TenantId) -> Result<Vec<LimitRecord>> {
        limits(&self.pool, tenant, &Limit::KINDS, None, i32::MAX.unsigned_abs()).await
    }

    async fn slot_wait(&self, key: TaskKey) -> Result<Option<SlotWait>> {
        slot_wait(&self.pool, key).await
    }
}

/// The limits of some kinds that a tenant has, and those that all tenants share, by kind and name, after the given ones.
pub async fn limits(
    executor: impl PgExecutor<'_>,
    tenant: TenantId,
    kinds: &[&str],
    after: Option<(&str, &str)>,
    limit: u32,
) -> Result<Vec<LimitRecord>> {
    let found = sqlx::query(
        "select kind, tenant, name, slots, used, waiting, oldest_waiter(id) as oldest
           from limits
          where tenant in (0, $1) and kind = any($2) and ($3::text is null or (kind, name) > ($3, $4))
          order by kind, name limit $5",
    )
    .bind(tenant.0)
    .bind(kinds)
    .bind(after.map(|(kind, _)| normal::text(kind)))
    .bind(after.map(|(_, name)| normal::text(name)))
    .bind(i64::from(limit))
    .fetch_all(executor)
    .await?;
    found.iter().map(record).collect()
}

/// One limit; none if no task has needed it and nobody has set its slots.
pub async fn limit_of(executor: impl PgExecutor<'_>, limit: &Limit) -> Result<Option<LimitRecord>> {
    let found = sqlx::query(
        "select kind, tenant, name, slots, used, waiting, oldest_waiter(id) as oldest
           from limits where kind = $1 and tenant = $2 and name = $3",
    )
    .bind(limit.kind())
    .bind(limit.tenant().map_or(0, |tenant| tenant.0))
    .bind(normal::text(limit.name()))
    .fetch_optional(executor)
    .await?;
    found.as_ref().map(record).transpose()
}

/// The place of a task in a wait queue, if it is in one.
pub async fn slot_wait(executor: impl PgExecutor<'_>, key: TaskKey) -> Result<Option<SlotWait>> {
    let found = sqlx::query(
        "select kind, limits.tenant, limits.name, slots, used, waiter.since, waiter.granted_at is not null as granted,
                waiters_ahead(waiter) as ahead,
                (select open_until from breakers
                  where limits.kind = 'breaker' and breakers.tenant = limits.tenant and breakers.kind = 'task'
                    and breakers.name = limits.name and not probing) as until
           from slot_waiters as waiter join limits on limits.id = waiter.lim where waiter.run = $1 and waiter.idx = $2",
    )
    .bind(key.run.0)
    .bind(int(key.task.0))
    .fetch_optional(executor)
    .await?;
    let Some(row) = found else { return Ok(None) };
    Ok(Some(SlotWait {
        limit: limit(&row)?,
        slots: slots(&row)?,
        used: number(&row, "used")?,
        ahead: row.try_get::<i64, _>("ahead")? as u32,
        since: row.try_get("since")?,
        granted: row.try_get("granted")?,
        until: row.try_get("until")?,
    }))
}

fn record(row: &PgRow) -> Result<LimitRecord> {
    Ok(LimitRecord {
        limit: limit(row)?,
        slots: slots(row)?,
        used: number(row, "used")?,
        waiting: number(row, "waiting")?,
        oldest: row.try_get("oldest")?,
    })
}

fn slots(row: &PgRow) -> Result<Option<u32>> {
    Ok(row.try_get::<Option<i32>, _>("slots")?.map(|slots| slots.unsigned_abs()))
}
