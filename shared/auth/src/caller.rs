//! Callers: authenticated identities, acting in one tenant.

use std::sync::Arc;

use model::TenantId;

use crate::{DEFAULT_TENANT, Grant, Pattern, Permission, Role, TenantScope, WorkflowScope, may};

/// An authenticated caller, the tenant they act in, and what they may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The tenant whose work they see and change.
    pub tenant: TenantId,
    /// The name of the tenant.
    pub tenant_name: String,
    /// The caller's own name, as events and audit entries record it.
    pub name: String,
    /// The grants that decide what they may do.
    pub grants: Arc<[Grant]>,
}

/// Why a caller is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Denied {
    /// The caller may not even see it, so it does not exist for them.
    #[error("there is no {0}")]
    NotFound(String),
    /// The caller may see it, but lacks the permission.
    #[error("{0}")]
    Forbidden(String),
}

impl Caller {
    /// The caller of a console without sign-in, on the user's own machine: an admin of everything.
    pub fn local() -> Self {
        let grant = Grant { role: Role::Admin, tenant: TenantScope::All, workflows: Pattern::all() };
        Self {
            tenant: TenantId::DEFAULT,
            tenant_name: DEFAULT_TENANT.to_owned(),
            name: "local".into(),
            grants: [grant].into(),
        }
    }

    /// Whether they have a permission for a workflow of their tenant.
    pub fn may(&self, permission: Permission, workflow: &str) -> bool {
        may(&self.grants, permission, Some(&self.tenant_name), WorkflowScope::One(workflow)).is_ok()
    }

    /// Rejects callers without that permission for a workflow. `what` names the resource in the message.
    pub fn check(&self, permission: Permission, workflow: &str, what: &str) -> Result<(), Denied> {
        let about = WorkflowScope::One(workflow);
        let Err(words) = may(&self.grants, permission, Some(&self.tenant_name), about) else { return Ok(()) };
        match self.may(Permission::Follow, workflow) {
            true => Err(Denied::Forbidden(words)),
            false => Err(Denied::NotFound(what.to_owned())),
        }
    }

    /// Rejects a filter that is wider than their grants: a caller with grants for some workflows must name one.
    pub fn check_filter(&self, permission: Permission, workflow: Option<&str>) -> Result<(), Denied> {
        match (self.check_tenant(permission), workflow) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(name)) => self.check(permission, name, &format!("workflow `{name}`")),
            (Err(words), None) => Err(Denied::Forbidden(format!("name a workflow: {words}"))),
        }
    }

    /// Rejects callers without that permission for at least one workflow of their tenant.
    pub fn check_some(&self, permission: Permission) -> Result<(), Denied> {
        self.check_about(permission, Some(&self.tenant_name), WorkflowScope::Some)
    }

    /// Rejects callers without that permission for all workflows of their tenant.
    pub fn check_tenant(&self, permission: Permission) -> Result<(), Denied> {
        self.check_about(permission, Some(&self.tenant_name), WorkflowScope::Whole)
    }

    /// Rejects callers without that permission in every tenant.
    pub fn check_instance(&self, permission: Permission) -> Result<(), Denied> {
        self.check_about(permission, None, WorkflowScope::Whole)
    }

    /// Whether they have a permission in every tenant.
    pub fn may_everywhere(&self, permission: Permission) -> bool {
        self.check_instance(permission).is_ok()
    }

    fn check_about(
        &self,
        permission: Permission,
        tenant: Option<&str>,
        about: WorkflowScope<'_>,
    ) -> Result<(), Denied> {
        may(&self.grants, permission, tenant, about).map_err(Denied::Forbidden)
    }
}
