//! The audit log: what was asked to be changed through the API, and what became of it.

use async_trait::async_trait;
use model::{Instant, TenantId};
use serde_json::Value;

use crate::Result;

/// Something that somebody changed, or was refused to change.
#[derive(Clone, PartialEq, Debug)]
pub struct Deed {
    /// Whose things it was about.
    pub tenant: TenantId,
    /// When.
    pub at: Instant,
    /// Who.
    pub actor: String,
    /// The address that the request came from.
    pub origin: Option<String>,
    /// The addresses that it claims to have come by before.
    pub forwarded: Option<String>,
    /// The program that sent it, as it calls itself.
    pub agent: Option<String>,
    /// What was asked for: the name of the endpoint.
    pub action: String,
    /// Of what: the address of the request.
    pub target: String,
    /// The idempotency key, if there was one.
    pub key: Option<String>,
    /// How it was answered.
    pub status: u16,
    /// How the thing stood before, in short.
    pub before: Option<Value>,
    /// How it stood after.
    pub after: Option<Value>,
}

/// Which deeds to read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeedFilter {
    /// Only of this person or program.
    pub actor: Option<String>,
    /// Only of this endpoint.
    pub action: Option<String>,
    /// Only those with this text in their address.
    pub text: Option<String>,
    /// Only from this instant on.
    pub from: Option<Instant>,
    /// Only before this instant.
    pub to: Option<Instant>,
    /// Only older ones than this.
    pub after: Option<i64>,
    /// At most so many.
    pub limit: u32,
}

/// The audit log of a store. There is no way to change what is in it.
#[async_trait]
pub trait DeedStore: Send + Sync {
    /// Adds a deed.
    async fn note_deed(&self, deed: &Deed) -> Result<()>;

    /// Deeds of a tenant, newest first, with their numbers.
    async fn deeds(&self, tenant: TenantId, filter: &DeedFilter) -> Result<Vec<(i64, Deed)>>;

    /// Deletes deeds from before an instant, a bounded number at a time. Answers how many.
    async fn forget_deeds(&self, before: Instant) -> Result<u64>;
}

/// No more are deleted at once.
pub(crate) const FORGOTTEN_AT_ONCE: u32 = 5_000;
