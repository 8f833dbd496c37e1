//! Who may do what, and who did: grants, service tokens, ended sessions, tenants by name, audit entries, idempotency
//! records and log filters. All of it is stored in Postgres; nothing here knows HTTP.
//!
//! Data that every request needs is cached for a few seconds, so a revocation takes effect everywhere within that time.

mod audit;
mod grants;
mod idempotency;
mod log_filters;
mod scope;
mod sessions;
mod tenants;
mod tokens;

use std::sync::Arc;

use auth::{Grant, TtlCache, service_token};
use chrono::TimeDelta;
use model::{Instant, TenantId};
use sqlx::postgres::PgPool;
use store::Postgres;

pub use audit::{AuditEntry, AuditFilter};
pub use grants::GrantRecord;
pub use idempotency::{Claim, IdempotencyKey, RecordedResponse};
pub use log_filters::LogFilter;
pub use scope::{IdentityFilter, Scope};
pub use store::{Bounded, Error, Result};
pub use tokens::{Bearer, NewToken, TokenRecord};

/// A revocation takes effect on every instance within this.
const CACHE_TTL: TimeDelta = TimeDelta::seconds(5);

const MAX_CACHED: usize = 1024;

/// The most rows that one statement prunes.
const MAX_PRUNED: i64 = 5_000;

/// The accounts of an instance; cheap to clone.
#[derive(Clone)]
pub struct Accounts(Arc<Inner>);

struct Inner {
    database: Postgres,
    audit: audit::Writer,
    /// Grants made over the API, by the names of an identity.
    grants: TtlCache<Vec<String>, Vec<Grant>>,
    /// The bearers of service tokens, by hash.
    bearers: TtlCache<service_token::Hash, (auth::Identity, Vec<Grant>)>,
    /// The hashes that no token has. They are not among the bearers: strangers invent as many as they like, and must not make an
    /// instance forget those who have a token.
    unknown: TtlCache<service_token::Hash, ()>,
    lookup: tokens::Lookup,
    /// Ids of tenants, which never change.
    tenants: TtlCache<String, TenantId>,
    /// Whether a session has been ended, by hash.
    ended_sessions: TtlCache<service_token::Hash, bool>,
}

impl Accounts {
    /// The accounts in a database.
    pub fn new(database: &Postgres) -> Self {
        Self(Arc::new(Inner {
            database: database.clone(),
            audit: audit::Writer::default(),
            grants: TtlCache::new(MAX_CACHED),
            bearers: TtlCache::new(MAX_CACHED),
            unknown: TtlCache::new(MAX_CACHED),
            lookup: tokens::Lookup::default(),
            tenants: TtlCache::new(MAX_CACHED),
            ended_sessions: TtlCache::new(MAX_CACHED),
        }))
    }

    /// Deletes a bounded number of audit entries and idempotency records from before these instants. Returns how many.
    pub async fn prune(&self, entries: Instant, records: Instant) -> Result<u64> {
        Ok(self.prune_audit_entries(entries).await? + self.prune_idempotency_records(records).await?)
    }

    fn pool(&self) -> &PgPool {
        self.0.database.pool()
    }

    /// Forgets the grants and tokens it remembers, since one of them has changed.
    fn forget(&self) {
        self.0.grants.clear();
        self.0.bearers.clear();
    }
}
