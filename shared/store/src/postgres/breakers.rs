//! Circuit breakers and their rows.

use async_trait::async_trait;
use model::{Breaker, BreakerGate, BreakerKey, BreakerKind, BreakerRead, Instant, Opening, TenantId};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgExecutor, Row};

use super::Postgres;
use super::rows::{column, int, number};
use super::transaction::PostgresTransaction;
use crate::{BreakerRecord, Breakers, Error, Result, TransactionBreakers, normal};

#[async_trait]
impl Breakers for Postgres {
    async fn breakers(&self, keys: &[BreakerKey]) -> Result<Vec<Breaker>> {
        let found = sqlx::query(
            "select id, tenant, kind, name, failed_at, message, opened_at, open_until, pause_seconds, probing
               from breakers join unnest($1::int[], $2::text[], $3::text[]) as given (tenant, kind, name)
              using (tenant, kind, name) order by id",
        )
        .bind(column(keys, |key| key.tenant.0))
        .bind(column(keys, |key| key.kind.name()))
        .bind(column(keys, |key| normal::text(&key.name).into_owned()))
        .fetch_all(&self.pool)
        .await?;
        found.iter().map(breaker).collect()
    }
}

#[async_trait]
impl TransactionBreakers for PostgresTransaction {
    async fn lock_breakers(&mut self, read: &BreakerRead) -> Result<Vec<Breaker>> {
        let found = lock(self.connection(), read).await;
        self.note(found)
    }

    async fn breaker_gates(&mut self, keys: &[BreakerKey]) -> Result<Vec<BreakerGate>> {
        let found = gates(self.connection(), keys).await;
        self.note(found)
    }

    async fn save_breakers(&mut self, breakers: &[Breaker]) -> Result<()> {
        let saved = save(self.connection(), breakers).await;
        self.note(saved)
    }
}

async fn lock(connection: &mut PgConnection, read: &BreakerRead) -> Result<Vec<Breaker>> {
    let found = match read {
        BreakerRead::Happened(happened) => return lock_named(connection, happened).await,
        BreakerRead::Due { now, limit } => sqlx::query(
            "select id, tenant, kind, name, failed_at, message, opened_at, open_until, pause_seconds, probing
                   from breakers where opened_at is not null and not probing and open_until <= $1
                  order by id limit $2 for update",
        )
        .bind(now)
        .bind(i64::from(*limit))
        .fetch_all(connection)
        .await?,
        BreakerRead::Id(tenant, id) => sqlx::query(
            "select id, tenant, kind, name, failed_at, message, opened_at, open_until, pause_seconds, probing
                   from breakers where tenant = $1 and id = $2 for update",
        )
        .bind(tenant.0)
        .bind(id)
        .fetch_all(connection)
        .await?,
    };
    found.iter().map(breaker).collect()
}

async fn lock_named(connection: &mut PgConnection, happened: &[(BreakerKey, bool)]) -> Result<Vec<Breaker>> {
    let failed: Vec<&BreakerKey> =
        happened.iter().filter(|(_, failed)| *failed).map(|(key, _)| key).collect();
    if !failed.is_empty() {
        sqlx::query(include_str!("../../queries/insert_breakers.sql"))
            .bind(column(&failed, |key| key.tenant.0))
            .bind(column(&failed, |key| key.kind.name()))
            .bind(column(&failed, |key| normal::text(&key.name).into_owned()))
            .execute(&mut *connection)
            .await?;
    }
    let found = sqlx::query(include_str!("../../queries/lock_breakers.sql"))
        .bind(column(happened, |(key, _)| key.tenant.0))
        .bind(column(happened, |(key, _)| key.kind.name()))
        .bind(column(happened, |(key, _)| normal::text(&key.name).into_owned()))
        .bind(column(happened, |(_, failed)| *failed))
        .fetch_all(connection)
        .await?;
    found.iter().map(breaker).collect()
}

async fn gates(connection: &mut PgConnection, keys: &[BreakerKey]) -> Result<Vec<BreakerGate>> {
    let found = sqlx::query(include_str!("../../queries/read_breaker_gates.sql"))
        .bind(column(keys, |key| key.tenant.0))
        .bind(column(keys, |key| normal::text(&key.name).into_owned()))
        .fetch_all(connection)
        .await?;
    let gate = |row: &PgRow| {
        let (tenant, name) = (TenantId(row.try_get("tenant")?), row.try_get("name")?);
        let key = BreakerKey { tenant, kind: BreakerKind::Task, name };
        Ok(BreakerGate { key, probing: row.try_get("probing")?, used: number(row, "used")? })
    };
    found.iter().map(gate).collect()
}

async fn save(connection: &mut PgConnection, breakers: &[Breaker]) -> Result<()> {
    let (idle, kept): (Vec<&Breaker>, Vec<&Breaker>) = breakers.iter().partition(|breaker| breaker.is_idle());
    if !idle.is_empty() {
        sqlx::query("delete from breakers where id = any($1)")
            .bind(column(&idle, |breaker| breaker.id))
            .execute(&mut *connection)
            .await?;
    }
    for breaker in kept {
        sqlx::query(include_str!("../../queries/update_breaker.sql"))
            .bind(breaker.id)
            .bind(&breaker.failed_at)
            .bind(normal::text(&breaker.message))
            .bind(breaker.open.map(|open| open.since))
            .bind(breaker.open.map(|open| open.until))
            .bind(breaker.open.map(|open| int(open.pause_seconds)))
            .bind(breaker.open.is_some_and(|open| open.probing))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// The breakers of a tenant that are open, or had a failure after `since`, by id, after the given one.
pub async fn breakers(
    executor: impl PgExecutor<'_>,
    tenant: TenantId,
    since: Instant,
    after: Option<i64>,
    limit: u32,
) -> Result<Vec<BreakerRecord>> {
    let found = sqlx::query(include_str!("../../queries/list_breakers.sql"))
        .bind(tenant.0)
        .bind(since)
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(executor)
        .await?;
    found
        .iter()
        .map(|row| Ok(BreakerRecord { breaker: breaker(row)?, waiting: number(row, "waiting")? }))
        .collect()
}

/// The breaker of a row with all columns.
fn breaker(row: &PgRow) -> Result<Breaker> {
    let kind: &str = row.try_get("kind")?;
    let unknown = || Error::Unreadable { what: "breaker", why: format!("its kind is `{kind}`") };
    let kind = BreakerKind::named(kind).ok_or_else(unknown)?;
    let since: Option<Instant> = row.try_get("opened_at")?;
    let open = match since {
        Some(since) => Some(Opening {
            since,
            until: row.try_get("open_until")?,
            pause_seconds: number(row, "pause_seconds")?,
            probing: row.try_get("probing")?,
        }),
        None => None,
    };
    Ok(Breaker {
        id: row.try_get("id")?,
        key: BreakerKey { tenant: TenantId(row.try_get("tenant")?), kind, name: row.try_get("name")? },
        failed_at: row.try_get("failed_at")?,
        open,
        message: row.try_get("message")?,
    })
}
