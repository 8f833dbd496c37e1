//! Service tokens, grants and sessions that were ended: what is known of who may do what.

use async_trait::async_trait;
use model::{Instant, TenantId};
use uuid::Uuid;

use crate::Result;

/// A role in a tenant or in all of them. What roles and patterns mean is not the store's business.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoleRecord {
    /// The role's name.
    pub role: String,
    /// The tenant; none for all of them.
    pub tenant: Option<TenantId>,
    /// The tenant's name. Not written: it follows from the tenant.
    pub tenant_name: Option<String>,
    /// A pattern of workflows.
    pub workflows: String,
}

/// A service token, without the token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenRecord {
    /// Its id.
    pub id: Uuid,
    /// The hash of the token.
    pub hash: [u8; 32],
    /// What it is for.
    pub name: String,
    /// What its bearer may do.
    pub scope: RoleRecord,
    /// When it was made.
    pub created_at: Instant,
    /// Who made it.
    pub created_by: String,
    /// Until when it is good.
    pub expires_at: Instant,
    /// When and by whom it was revoked, if it was.
    pub revoked: Option<(Instant, String)>,
}

/// A role that somebody was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GrantRecord {
    /// Its id.
    pub id: Uuid,
    /// Whom it is for: an address, a domain or a group.
    pub who: String,
    /// What they may do.
    pub scope: RoleRecord,
    /// When it was given.
    pub created_at: Instant,
    /// Who gave it.
    pub created_by: String,
}

/// Which tokens or grants to list, by id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdentityFilter {
    /// Those of this tenant.
    pub tenant: TenantId,
    /// Those of all tenants, too.
    pub everywhere: bool,
    /// After this one.
    pub after: Option<Uuid>,
    /// At most so many.
    pub limit: u32,
}

impl IdentityFilter {
    /// Whether one of that tenant is meant.
    pub(crate) fn takes(&self, tenant: Option<TenantId>) -> bool {
        match tenant {
            Some(tenant) => tenant == self.tenant,
            None => self.everywhere,
        }
    }
}

/// What is known of service tokens and grants.
#[async_trait]
pub trait Identities {
    /// Keeps a new token.
    async fn add_token(&self, token: &TokenRecord) -> Result<()>;

    /// The token of that hash, revoked or expired as it may be.
    async fn token_by_hash(&self, hash: &[u8; 32]) -> Result<Option<TokenRecord>>;

    /// Tokens, in the order in which they were made.
    async fn tokens(&self, filter: &IdentityFilter) -> Result<Vec<TokenRecord>>;

    /// Revokes a token of those that the filter takes. Revoking twice changes nothing. Answers the token, if there is one.
    async fn revoke_token(
        &self,
        filter: &IdentityFilter,
        id: Uuid,
        by: &str,
        at: Instant,
    ) -> Result<Option<TokenRecord>>;

    /// Keeps a grant. One that is there already stays as it is. Answers the one that is there.
    async fn add_grant(&self, grant: &GrantRecord) -> Result<GrantRecord>;

    /// What was given to any of these.
    async fn grants_of(&self, who: &[String]) -> Result<Vec<GrantRecord>>;

    /// Grants, in the order in which they were given.
    async fn grants(&self, filter: &IdentityFilter) -> Result<Vec<GrantRecord>>;

    /// Takes a grant back, of those that the filter takes. Answers the grant, if there was one.
    async fn remove_grant(&self, filter: &IdentityFilter, id: Uuid) -> Result<Option<GrantRecord>>;

    /// Ends the session of that hash, which would have ended by itself at `until`. Those that would have by now are
    /// forgotten.
    async fn end_session(&self, hash: &[u8; 32], until: Instant, now: Instant) -> Result<()>;

    /// Whether the session of that hash was ended before its time.
    async fn session_ended(&self, hash: &[u8; 32]) -> Result<bool>;
}
