//! What is due: timers, check-ups and messages that were committed and perhaps never published.

use model::{Instant, Message, RunId};
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{PgPool, Row};

use super::rows;
use crate::{Agenda, DueTimer, Result, Unsent};

pub(super) async fn agenda(pool: &PgPool, now: Instant) -> Result<Agenda> {
    let row = sqlx::query(include_str!("../../queries/read_agenda.sql")).bind(now).fetch_one(pool).await?;
    Ok(Agenda {
        timer: row.try_get("timer")?,
        next_timer: row.try_get("next_timer")?,
        checkup: row.try_get("checkup")?,
        unsent: row.try_get("unsent")?,
        granted: row.try_get("granted")?,
        room: row.try_get("room")?,
        worker: row.try_get("worker")?,
        retention: row.try_get("retention")?,
        trigger: row.try_get("trigger")?,
    })
}

pub(super) async fn due_timers(pool: &PgPool, now: Instant, limit: u32) -> Result<Vec<DueTimer>> {
    let found = sqlx::query(
        "select run, idx, attempt, kind, wake_at from timers where wake_at <= $1
          order by wake_at, run, idx, kind limit $2",
    )
    .bind(now)
    .bind(i64::from(limit))
    .fetch_all(pool)
    .await?;
    found.iter().map(rows::due_timer).collect()
}

pub(super) async fn due_checkups(pool: &PgPool, now: Instant, limit: u32) -> Result<Vec<RunId>> {
    let found = sqlx::query("select id from runs where checkup_at <= $1 order by checkup_at, id limit $2")
        .bind(now)
        .bind(i64::from(limit))
        .fetch_all(pool)
        .await?;
    found.iter().map(|row| Ok(RunId(row.try_get("id")?))).collect()
}

pub(super) async fn postpone(pool: &PgPool, run: RunId, now: Instant, until: Instant) -> Result<()> {
    let mut transaction = pool.begin().await?;
    for statement in [
        "update runs set checkup_at = $3 where id = $1 and checkup_at <= $2",
        "update timers set wake_at = $3 where run = $1 and wake_at <= $2",
    ] {
        sqlx::query(statement).bind(run.0).bind(now).bind(until).execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    Ok(())
}

pub(super) async fn check_all(pool: &PgPool, now: Instant) -> Result<u64> {
    let written =
        sqlx::query(include_str!("../../queries/check_all_runs.sql")).bind(now).execute(pool).await?;
    Ok(written.rows_affected())
}

pub(super) async fn unsent(pool: &PgPool, before: Instant, limit: u32) -> Result<Vec<Unsent>> {
    let found = sqlx::query("select id, kind, body from outbox where created_at <= $1 order by id limit $2")
        .bind(before)
        .bind(i64::from(limit))
        .fetch_all(pool)
        .await?;
    let messages: Vec<Option<Unsent>> = found.iter().map(message).collect::<Result<_>>()?;
    Ok(messages.into_iter().flatten().collect())
}

/// The message of a row. One that only a newer version can read is left to it: it must not hold up the others.
fn message(row: &PgRow) -> Result<Option<Unsent>> {
    let (id, kind): (i64, &str) = (row.try_get("id")?, row.try_get("kind")?);
    let Json(body) = row.try_get::<Json<Value>, _>("body")?;
    match Message::decode(kind, body) {
        Ok(message) => Ok(Some(Unsent { id, message })),
        Err(error) => {
            tracing::error!(outbox.id = id, "Outbox message {id} stays unsent: {error}");
            Ok(None)
        }
    }
}

pub(super) async fn sent(pool: &PgPool, ids: &[i64]) -> Result<()> {
    if !ids.is_empty() {
        sqlx::query("delete from outbox where id = any($1)").bind(ids).execute(pool).await?;
    }
    Ok(())
}
