//! Service tokens and grants.

use async_trait::async_trait;
use model::{Instant, TenantId};
use uuid::Uuid;

use super::Memory;
use super::tables::Tables;
use crate::{GrantRecord, Identities, IdentityFilter, Result, RoleRecord, TokenRecord, normal};

impl Tables {
    fn scoped(&self, scope: &RoleRecord) -> RoleRecord {
        let name = |tenant: TenantId| match tenant {
            TenantId::DEFAULT => Some("default".to_owned()),
            _ => self.tenants.get((tenant.0 - TenantId::DEFAULT.0 - 1) as usize).map(|row| row.name.clone()),
        };
        RoleRecord {
            role: normal::text(&scope.role).into_owned(),
            tenant: scope.tenant,
            tenant_name: scope.tenant.and_then(name),
            workflows: normal::text(&scope.workflows).into_owned(),
        }
    }
}

/// Those that a filter takes, in order of their ids.
fn page<T: Clone>(
    rows: &std::collections::BTreeMap<Uuid, T>,
    filter: &IdentityFilter,
    tenant: impl Fn(&T) -> Option<TenantId>,
) -> Vec<T> {
    let after = |id: &Uuid| filter.after.is_none_or(|after| *id > after);
    let taken = rows.iter().filter(|(id, row)| after(id) && filter.takes(tenant(row)));
    taken.map(|(_, row)| row.clone()).take(filter.limit as usize).collect()
}

#[async_trait]
impl Identities for Memory {
    async fn add_token(&self, token: &TokenRecord) -> Result<()> {
        let mut tables = self.shared.tables();
        let scope = tables.scoped(&token.scope);
        let (name, created_by) = (normal::text(&token.name), normal::text(&token.created_by));
        let (name, created_by) = (name.into_owned(), created_by.into_owned());
        tables.tokens.insert(token.id, TokenRecord { name, created_by, scope, ..token.clone() });
        Ok(())
    }

    async fn token_by_hash(&self, hash: &[u8; 32]) -> Result<Option<TokenRecord>> {
        Ok(self.shared.tables().tokens.values().find(|token| token.hash == *hash).cloned())
    }

    async fn tokens(&self, filter: &IdentityFilter) -> Result<Vec<TokenRecord>> {
        Ok(page(&self.shared.tables().tokens, filter, |token| token.scope.tenant))
    }

    async fn revoke_token(
        &self,
        filter: &IdentityFilter,
        id: Uuid,
        by: &str,
        at: Instant,
    ) -> Result<Option<TokenRecord>> {
        let mut tables = self.shared.tables();
        let token = tables.tokens.get_mut(&id).filter(|token| filter.takes(token.scope.tenant));
        Ok(token.map(|token| {
            token.revoked.get_or_insert_with(|| (at, normal::text(by).into_owned()));
            token.clone()
        }))
    }

    async fn add_grant(&self, new: &GrantRecord) -> Result<GrantRecord> {
        let mut tables = self.shared.tables();
        let (who, created_by) = (normal::text(&new.who), normal::text(&new.created_by));
        let (who, created_by) = (who.into_owned(), created_by.into_owned());
        let grant = GrantRecord { who, created_by, scope: tables.scoped(&new.scope), ..new.clone() };
        let same = |other: &&GrantRecord| other.who == grant.who && other.scope == grant.scope;
        if let Some(there) = tables.grants.values().find(same) {
            return Ok(there.clone());
        }
        tables.grants.insert(grant.id, grant.clone());
        Ok(grant)
    }

    async fn grants_of(&self, who: &[String]) -> Result<Vec<GrantRecord>> {
        let tables = self.shared.tables();
        Ok(tables.grants.values().filter(|grant| who.contains(&grant.who)).cloned().collect())
    }

    async fn grants(&self, filter: &IdentityFilter) -> Result<Vec<GrantRecord>> {
        Ok(page(&self.shared.tables().grants, filter, |grant| grant.scope.tenant))
    }

    async fn remove_grant(&self, filter: &IdentityFilter, id: Uuid) -> Result<Option<GrantRecord>> {
        let mut tables = self.shared.tables();
        let meant = tables.grants.get(&id).is_some_and(|grant| filter.takes(grant.scope.tenant));
        Ok(if meant { tables.grants.remove(&id) } else { None })
    }

    async fn end_session(&self, hash: &[u8; 32], until: Instant, now: Instant) -> Result<()> {
        let mut tables = self.shared.tables();
        tables.ended_sessions.retain(|_, until| *until > now);
        let kept = tables.ended_sessions.entry(*hash).or_insert(until);
        *kept = until.max(*kept);
        Ok(())
    }

    async fn session_ended(&self, hash: &[u8; 32]) -> Result<bool> {
        Ok(self.shared.tables().ended_sessions.contains_key(hash))
    }
}
