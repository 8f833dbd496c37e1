//! How far attempts have come.

use async_trait::async_trait;
use model::TaskKey;
use sqlx::Row;
use sqlx::types::Json;

use super::Postgres;
use super::rows::{int, json, number};
use crate::{Checkpoint, Checkpoints, Result};

#[async_trait]
impl Checkpoints for Postgres {
    async fn keep_checkpoint(&self, key: TaskKey, checkpoint: &Checkpoint) -> Result<bool> {
        let written = sqlx::query(
            "insert into checkpoints (run, idx, attempt, at, data) values ($1, $2, $3, $4, $5::text::json)
                 on conflict (run, idx) do update
                 set attempt = excluded.attempt, at = excluded.at, data = excluded.data
               where checkpoints.attempt <= excluded.attempt",
        )
        .bind(key.run.0)
        .bind(int(key.task.0))
        .bind(int(checkpoint.attempt))
        .bind(checkpoint.at)
        .bind(json(&checkpoint.data))
        .execute(&self.pool)
        .await?;
        Ok(written.rows_affected() == 1)
    }

    async fn checkpoint(&self, key: TaskKey) -> Result<Option<Checkpoint>> {
        let found = sqlx::query("select attempt, at, data from checkpoints where run = $1 and idx = $2")
            .bind(key.run.0)
            .bind(int(key.task.0))
            .fetch_optional(&self.pool)
            .await?;
        let Some(row) = found else { return Ok(None) };
        let Json(data) = row.try_get("data")?;
        Ok(Some(Checkpoint { attempt: number(&row, "attempt")?, at: row.try_get("at")?, data }))
    }
}
