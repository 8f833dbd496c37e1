//! Workers: who lives, and what each of them holds.

use model::{Instant, WorkerId};
use sqlx::PgPool;

use super::rows;
use crate::{Held, Result};

pub(super) async fn beat(pool: &PgPool, worker: WorkerId, now: Instant) -> Result<Vec<Held>> {
    let found = sqlx::query(include_str!("../../queries/record_beat.sql"))
        .bind(worker.0)
        .bind(now)
        .fetch_all(pool)
        .await?;
    found.iter().map(rows::held).collect()
}

pub(super) async fn farewell(pool: &PgPool, worker: WorkerId) -> Result<()> {
    sqlx::query("delete from workers where id = $1").bind(worker.0).execute(pool).await?;
    Ok(())
}

pub(super) async fn forget(pool: &PgPool, since: Instant) -> Result<u64> {
    let forgotten = sqlx::query("delete from workers where heard_at < $1").bind(since).execute(pool).await?;
    Ok(forgotten.rows_affected())
}

pub(super) async fn lost(pool: &PgPool, since: Instant, limit: u32) -> Result<Vec<Held>> {
    let found = sqlx::query(include_str!("../../queries/find_lost_attempts.sql"))
        .bind(since)
        .bind(i64::from(limit))
        .fetch_all(pool)
        .await?;
    found.iter().map(rows::held).collect()
}
