//! What is due: timers and check-ups, and when the next of anything is.

use model::{Instant, RunId};
use sqlx::{PgPool, Row};

use super::beginning::begin;
use super::rows;
use crate::{Agenda, DueTimer, Result};

pub(super) async fn agenda(pool: &PgPool, now: Instant) -> Result<Agenda> {
    let row = sqlx::query(include_str!("../../queries/read_agenda.sql")).bind(now).fetch_one(pool).await?;
    Ok(Agenda {
        timer: row.try_get("timer")?,
        next_timer: row.try_get("next_timer")?,
        schedule: row.try_get("schedule")?,
        backfill: row.try_get("backfill")?,
        checkup: row.try_get("checkup")?,
        unsent: row.try_get("unsent")?,
        granted: row.try_get("granted")?,
        room: row.try_get("room")?,
        worker: row.try_get("worker")?,
        retention: row.try_get("retention")?,
        trigger: row.try_get("trigger")?,
        neglected: row.try_get("neglected")?,
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
    let mut transaction = begin(pool).await?;
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
