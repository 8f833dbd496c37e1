//! Answers that are kept for a while.

use async_trait::async_trait;
use model::Instant;
use sqlx::Row;
use sqlx::types::Json;

use super::{Postgres, rows};
use crate::deeds::FORGOTTEN_AT_ONCE;
use crate::{Known, Receipt, ReceiptKey, ReceiptStore, Result, normal};

#[async_trait]
impl ReceiptStore for Postgres {
    async fn take_key(
        &self,
        key: &ReceiptKey,
        fingerprint: &str,
        now: Instant,
        stale: Instant,
        expired: Instant,
    ) -> Result<Known> {
        let taken = sqlx::query(include_str!("../../queries/take_key.sql"))
            .bind(key.tenant.0)
            .bind(normal::text(&key.actor))
            .bind(normal::text(&key.key))
            .bind(fingerprint)
            .bind(now)
            .bind(stale)
            .bind(expired)
            .fetch_optional(&self.pool)
            .await?;
        if taken.is_some() {
            return Ok(Known::New);
        }
        let found = sqlx::query(
            "select fingerprint, status, headers, body from receipts where tenant = $1 and actor = $2 and key = $3",
        )
        .bind(key.tenant.0)
        .bind(normal::text(&key.actor))
        .bind(normal::text(&key.key))
        .fetch_optional(&self.pool)
        .await?;
        // It may have been let go in between: then somebody saw to it until just now.
        let Some(row) = found else { return Ok(Known::UnderWay) };
        if row.try_get::<String, _>("fingerprint")? != fingerprint {
            return Ok(Known::Other);
        }
        let Some(status) = row.try_get::<Option<i32>, _>("status")? else { return Ok(Known::UnderWay) };
        let Json(headers) = row.try_get("headers")?;
        Ok(Known::Answered(Receipt { status: status as u16, headers, body: row.try_get("body")? }))
    }

    async fn keep_receipt(&self, key: &ReceiptKey, receipt: Option<&Receipt>) -> Result<()> {
        let statement = match receipt {
            Some(_) => {
                "update receipts set status = $4, headers = $5::text::json, body = $6
                  where tenant = $1 and actor = $2 and key = $3"
            }
            None => "delete from receipts where tenant = $1 and actor = $2 and key = $3",
        };
        let query = sqlx::query(statement)
            .bind(key.tenant.0)
            .bind(normal::text(&key.actor))
            .bind(normal::text(&key.key));
        let query = match receipt {
            Some(receipt) => query
                .bind(i32::from(receipt.status))
                .bind(rows::json(&receipt.headers))
                .bind(receipt.body.clone()),
            None => query,
        };
        query.execute(&self.pool).await?;
        Ok(())
    }

    async fn forget_receipts(&self, before: Instant) -> Result<u64> {
        let gone = sqlx::query(
            "delete from receipts where (tenant, actor, key) in
                 (select tenant, actor, key from receipts where taken_at < $1 order by taken_at limit $2)",
        )
        .bind(before)
        .bind(i64::from(FORGOTTEN_AT_ONCE))
        .execute(&self.pool)
        .await?;
        Ok(gone.rows_affected())
    }
}
