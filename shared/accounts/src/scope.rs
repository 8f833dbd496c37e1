//! The scope of a grant or a token: a role, where, and for which workflows.

use auth::{Grant, Pattern, TenantScope};
use model::TenantId;
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::Result;

/// A role in one tenant or in all of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scope {
    /// The name of the role.
    pub role: String,
    /// The tenant; `None` for all of them.
    pub tenant: Option<TenantId>,
    /// The tenant's name. Not written: it follows from the tenant.
    pub tenant_name: Option<String>,
    /// A pattern of workflow names.
    pub workflows: String,
}

impl Scope {
    pub(crate) fn read(row: &PgRow) -> Result<Self> {
        Ok(Self {
            role: row.try_get("role")?,
            tenant: row.try_get::<Option<i32>, _>("tenant")?.map(TenantId),
            tenant_name: row.try_get("tenant_name")?,
            workflows: row.try_get("workflows")?,
        })
    }

    /// The grant that permissions are decided by; `None` for a role that this release does not know.
    pub(crate) fn grant(&self) -> Option<Grant> {
        let tenant = match (&self.tenant, &self.tenant_name) {
            (None, _) => TenantScope::All,
            (Some(_), name) => TenantScope::One(name.clone()?),
        };
        let (role, workflows) = (self.role.parse().ok()?, Pattern::new(&self.workflows).ok()?);
        Some(Grant { role, tenant, workflows })
    }
}

/// Which tokens or grants an administrator sees, by id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdentityFilter {
    /// Those of this tenant.
    pub tenant: TenantId,
    /// Those that reach all tenants, too.
    pub everywhere: bool,
    /// Only those after this id.
    pub after: Option<Uuid>,
    /// The maximum number of items.
    pub limit: u32,
}
