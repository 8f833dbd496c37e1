//! Signals that came before anyone waited for them.

use model::{Changes, RunId};
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{PgConnection, Row};

use super::rows::{column, json};
use super::saves::gather;
use crate::{Result, normal};

pub(super) async fn find(connection: &mut PgConnection, run: RunId, name: &str) -> Result<Option<Value>> {
    let found = sqlx::query("select payload from signals where run = $1 and name = $2")
        .bind(run.0)
        .bind(normal::text(name))
        .fetch_optional(connection)
        .await?;
    let payload = found.map(|row| row.try_get::<Json<Value>, _>("payload")).transpose()?;
    Ok(payload.map(|Json(payload)| payload))
}

/// Drops the signals that were taken, then keeps the new ones.
pub(super) async fn write(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    delete(connection, changes).await?;
    upsert(connection, changes).await
}

async fn delete(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    let mut rows = gather(changes, |each| each.taken_signals.iter());
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_unstable();
    sqlx::query(
        "delete from signals using unnest($1::uuid[], $2::text[]) as given (run, name)
          where signals.run = given.run and signals.name = given.name",
    )
    .bind(column(&rows, |(run, _)| run.0))
    .bind(column(&rows, |(_, name)| normal::text(name).into_owned()))
    .execute(connection)
    .await?;
    Ok(())
}

async fn upsert(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    let mut rows = gather(changes, |each| each.kept_signals.iter());
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|(run, signal)| (*run, &signal.name));
    sqlx::query(
        "insert into signals (run, name, payload)
         select run, name, payload::json
           from unnest($1::uuid[], $2::text[], $3::text[]) as given (run, name, payload)
         on conflict (run, name) do update set payload = excluded.payload",
    )
    .bind(column(&rows, |(run, _)| run.0))
    .bind(column(&rows, |(_, signal)| normal::text(&signal.name).into_owned()))
    .bind(column(&rows, |(_, signal)| json(&signal.payload)))
    .execute(connection)
    .await?;
    Ok(())
}
