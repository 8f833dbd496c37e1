//! The audit log: what was to be changed through the API, by whom, and with what result. Entries are never changed.

mod writer;

use model::{Instant, TenantId};
use serde_json::Value;
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::types::Json;

use store::MAX_PAGE_BYTES;

use crate::{Accounts, Bounded, MAX_PRUNED, Result};

pub(crate) use writer::Writer;

/// A change that someone made, or was refused.
#[derive(Clone, PartialEq, Debug)]
pub struct AuditEntry {
    /// The tenant it concerns.
    pub tenant: TenantId,
    /// When it was made.
    pub at: Instant,
    /// The person or program that made it.
    pub actor: String,
    /// The address that the request came from.
    pub origin: Option<String>,
    /// The addresses in `X-Forwarded-For`.
    pub forwarded: Option<String>,
    /// The `User-Agent` header of the request.
    pub agent: Option<String>,
    /// The id of the operation.
    pub action: String,
    /// The path of the request.
    pub target: String,
    /// The idempotency key, if there was one.
    pub key: Option<String>,
    /// The status of the response.
    pub status: u16,
    /// The state before, in short.
    pub before: Option<Value>,
    /// The state after, in short.
    pub after: Option<Value>,
}

impl AuditEntry {
    /// The same, in texts that Postgres can hold.
    fn storable(&self) -> Self {
        let text = |given: &String| store::storable(given).into_owned();
        Self {
            actor: text(&self.actor),
            origin: self.origin.as_ref().map(text),
            forwarded: self.forwarded.as_ref().map(text),
            agent: self.agent.as_ref().map(text),
            target: text(&self.target),
            key: self.key.as_ref().map(text),
            ..self.clone()
        }
    }
}

/// Which entries to read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AuditFilter {
    /// Only of this person or program.
    pub actor: Option<String>,
    /// Only of this operation.
    pub action: Option<String>,
    /// Only with this text in the path.
    pub text: Option<String>,
    /// Only from this instant on.
    pub from: Option<Instant>,
    /// Only before this instant.
    pub to: Option<Instant>,
    /// Only older than this entry.
    pub after: Option<i64>,
    /// The maximum number of entries.
    pub limit: u32,
}

impl Accounts {
    /// Adds an entry to the audit log.
    pub async fn record(&self, entry: &AuditEntry) -> Result<()> {
        self.0.audit.write(self.pool(), entry.storable()).await
    }

    /// Entries of a tenant with their numbers, newest first.
    pub async fn audit_entries(
        &self,
        tenant: TenantId,
        filter: &AuditFilter,
    ) -> Result<Bounded<(i64, AuditEntry)>> {
        let found = sqlx::query(include_str!("../queries/list_audit_entries.sql"))
            // Planned for each call: which index serves depends on which filters are given.
            .persistent(false)
            .bind(tenant.0)
            .bind(filter.actor.as_deref().map(store::storable))
            .bind(filter.action.as_deref().map(store::storable))
            .bind(filter.text.as_deref().map(store::storable))
            .bind(filter.from)
            .bind(filter.to)
            .bind(filter.after)
            .bind(i64::from(filter.limit))
            .fetch(self.pool());
        store::bounded::rows(found, MAX_PAGE_BYTES).await?.try_map(|row| read(&row))
    }

    pub(crate) async fn prune_audit_entries(&self, before: Instant) -> Result<u64> {
        let mut transaction = self.0.database.transaction().await?;
        // The table refuses deletions but for these.
        sqlx::query("set local ebbflow.retention = 'on'").execute(&mut *transaction).await?;
        let gone = sqlx::query(
            "delete from audit_entries
              where id = any(array(select id from audit_entries where at < $1 order by at limit $2))",
        )
        .bind(before)
        .bind(MAX_PRUNED)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(gone.rows_affected())
    }
}

fn read(row: &PgRow) -> Result<(i64, AuditEntry)> {
    let status: i32 = row.try_get("status")?;
    let entry = AuditEntry {
        tenant: TenantId(row.try_get("tenant")?),
        at: row.try_get("at")?,
        actor: row.try_get("actor")?,
        origin: row.try_get("origin")?,
        forwarded: row.try_get("forwarded")?,
        agent: row.try_get("agent")?,
        action: row.try_get("action")?,
        target: row.try_get("target")?,
        key: row.try_get("key")?,
        status: status as u16,
        before: row.try_get::<Option<Json<_>>, _>("before")?.map(|Json(value)| value),
        after: row.try_get::<Option<Json<_>>, _>("after")?.map(|Json(value)| value),
    };
    Ok((row.try_get("id")?, entry))
}
