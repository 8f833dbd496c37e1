//! Idempotency records: responses that are sent again when a request is repeated with the same key.

use model::{Instant, TenantId};
use serde_json::json;
use sqlx::Row;
use sqlx::types::Json;

use crate::{Accounts, MAX_PRUNED, Result};

/// A key and its owner. Callers do not share keys, so no one receives a response meant for another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdempotencyKey {
    /// The tenant that the request is for.
    pub tenant: TenantId,
    /// The caller who chose the key.
    pub actor: String,
    /// The key that the caller chose.
    pub key: String,
}

/// A response that can be sent again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedResponse {
    /// The status of the response.
    pub status: u16,
    /// The headers worth repeating, in order.
    pub headers: Vec<(String, String)>,
    /// The body of the response.
    pub body: Vec<u8>,
}

/// The result of claiming a key for a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Claim {
    /// The key is claimed: the request must be executed.
    New,
    /// Another request with this key is in progress.
    InProgress,
    /// The request was executed before.
    Answered(RecordedResponse),
    /// The key was used for a different request.
    Mismatch,
}

impl Accounts {
    /// Claims a key for a request. A claim from before `stale` without a response is taken to be dead, and records from
    /// before `expired` do not count.
    pub async fn claim_key(
        &self,
        key: &IdempotencyKey,
        fingerprint: &str,
        now: Instant,
        stale: Instant,
        expired: Instant,
    ) -> Result<Claim> {
        let claimed = sqlx::query(include_str!("../queries/claim_key.sql"))
            .bind(key.tenant.0)
            .bind(store::storable(&key.actor))
            .bind(store::storable(&key.key))
            .bind(fingerprint)
            .bind(now)
            .bind(stale)
            .bind(expired)
            .fetch_optional(self.pool())
            .await?;
        if claimed.is_some() {
            return Ok(Claim::New);
        }
        let found = sqlx::query(
            "select fingerprint, status, headers, body from idempotency_records
              where tenant = $1 and actor = $2 and key = $3",
        )
        .bind(key.tenant.0)
        .bind(store::storable(&key.actor))
        .bind(store::storable(&key.key))
        .fetch_optional(self.pool())
        .await?;
        // A record released since then was in progress until just now.
        let Some(row) = found else { return Ok(Claim::InProgress) };
        if row.try_get::<String, _>("fingerprint")? != fingerprint {
            return Ok(Claim::Mismatch);
        }
        let Some(status) = row.try_get::<Option<i32>, _>("status")? else { return Ok(Claim::InProgress) };
        let Json(headers) = row.try_get("headers")?;
        Ok(Claim::Answered(RecordedResponse { status: status as u16, headers, body: row.try_get("body")? }))
    }

    /// Records the response to the request with a key; `None` releases the key.
    pub async fn record_response(
        &self,
        key: &IdempotencyKey,
        response: Option<&RecordedResponse>,
    ) -> Result<()> {
        let statement = match response {
            Some(_) => {
                "update idempotency_records set status = $4, headers = $5::text::json, body = $6
                  where tenant = $1 and actor = $2 and key = $3"
            }
            None => "delete from idempotency_records where tenant = $1 and actor = $2 and key = $3",
        };
        let query = sqlx::query(statement)
            .bind(key.tenant.0)
            .bind(store::storable(&key.actor))
            .bind(store::storable(&key.key));
        let query = match response {
            Some(response) => query
                .bind(i32::from(response.status))
                .bind(json!(response.headers).to_string())
                .bind(response.body.clone()),
            None => query,
        };
        query.execute(self.pool()).await?;
        Ok(())
    }

    pub(crate) async fn prune_idempotency_records(&self, before: Instant) -> Result<u64> {
        let gone = sqlx::query(
            "delete from idempotency_records where (tenant, actor, key) in
                 (select tenant, actor, key from idempotency_records where taken_at < $1
                   order by taken_at limit $2)",
        )
        .bind(before)
        .bind(MAX_PRUNED)
        .execute(self.pool())
        .await?;
        Ok(gone.rows_affected())
    }
}
