//! What readers and operators see of slots and lines.

use async_trait::async_trait;
use model::{Granted, Instant, Limit, TaskKey, TaskState, TenantId, VersionId};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::Postgres;
use super::admission::{group, limit, pace, tenant_of, weight};
use super::rows::{self, int, number};
use crate::{Contender, FairnessGroupRecord, LimitRecord, Result, SlotViews, SlotWait, Slots, normal};

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
}

#[async_trait]
impl SlotViews for Postgres {
    async fn limits(&self, tenant: TenantId) -> Result<Vec<LimitRecord>> {
        let found = sqlx::query(
            "select kind, tenant, name, slots, used, waiting,
                    (select min(since) from slot_waiters where lim = limits.id and granted_at is null) as oldest
               from limits where tenant in (0, $1) order by kind, name",
        )
        .bind(tenant.0)
        .fetch_all(&self.pool)
        .await?;
        found.iter().map(record).collect()
    }

    async fn groups(&self, limit: &Limit) -> Result<Vec<FairnessGroupRecord>> {
        let found = sqlx::query(include_str!("../../queries/list_fairness_groups.sql"))
            .bind(limit.kind())
            .bind(tenant_of(limit))
            .bind(normal::text(limit.name()))
            .fetch_all(&self.pool)
            .await?;
        found
            .iter()
            .map(|row| {
                Ok(FairnessGroupRecord {
                    group: group(row)?,
                    weight: weight(row)?,
                    waiting: row.try_get::<i64, _>("waiting")? as u32,
                    oldest: row.try_get("oldest")?,
                    received: row.try_get::<i64, _>("received")?.unsigned_abs(),
                    pace: pace(row)?,
                })
            })
            .collect()
    }

    async fn holders(&self, tenant: TenantId, runs: u32) -> Result<Vec<Contender>> {
        let holds_slots = TaskState::ALL.into_iter().filter(|state| state.holds_slots());
        let found = sqlx::query(include_str!("../../queries/list_holders.sql"))
            .bind(tenant.0)
            .bind(i64::from(runs))
            .bind(holds_slots.map(TaskState::name).collect::<Vec<_>>())
            .fetch_all(&self.pool)
            .await?;
        found.iter().map(contender).collect()
    }

    async fn line(&self, limit: &Limit, tenant: TenantId, count: u32) -> Result<Vec<Contender>> {
        let found = sqlx::query(include_str!("../../queries/list_slot_waiters.sql"))
            .bind(limit.kind())
            .bind(tenant_of(limit))
            .bind(normal::text(limit.name()))
            .bind(tenant.0)
            .bind(i64::from(count))
            .fetch_all(&self.pool)
            .await?;
        found.iter().map(contender).collect()
    }

    async fn slot_wait(&self, key: TaskKey) -> Result<Option<SlotWait>> {
        let found = sqlx::query(
            "select kind, limits.tenant, name, slots, used, own.since, own.granted_at is not null as granted,
                    (select count(*) from slot_waiters as other
                      where other.lim = own.lim and other.granted_at is null
                        and (other.id, other.rank, other.run, other.idx) < (own.id, own.rank, own.run, own.idx)
                    ) as ahead
               from slot_waiters as own join limits on limits.id = own.lim where own.run = $1 and own.idx = $2",
        )
        .bind(key.run.0)
        .bind(int(key.task.0))
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = found else { return Ok(None) };
        Ok(Some(SlotWait {
            limit: limit(&row)?,
            slots: slots(&row)?,
            used: number(&row, "used")?,
            ahead: row.try_get::<i64, _>("ahead")? as u32,
            since: row.try_get("since")?,
            granted: row.try_get("granted")?,
        }))
    }
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

fn contender(row: &PgRow) -> Result<Contender> {
    let ((run, task), version) = (rows::task(row)?, VersionId(row.try_get("version")?));
    Ok(Contender { run, workflow: row.try_get("workflow")?, version, task })
}
