//! Who asks: somebody who was let in.

use std::sync::Arc;

use auth::{DEFAULT_TENANT, Grant, Pattern, Reach, Role};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use host::Problem;
use model::TenantId;

use crate::Api;

/// Who asks, for whom, and what they may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Whose work they see and steer.
    pub tenant: TenantId,
    /// The same by name.
    pub tenant_name: String,
    /// Their own name, as it stands in events.
    pub name: String,
    /// What they may do, and where.
    pub grants: Arc<[Grant]>,
}

impl Caller {
    /// Whoever sits at this machine, where pages are open: it is theirs, and so is everything on it.
    pub fn local() -> Self {
        let grant = Grant { role: Role::Admin, tenant: Reach::All, workflows: Pattern::all() };
        Self {
            tenant: TenantId::DEFAULT,
            tenant_name: DEFAULT_TENANT.to_owned(),
            name: "local".into(),
            grants: [grant].into(),
        }
    }
}

impl FromRequestParts<Api> for Caller {
    type Rejection = Problem;

    /// Whoever the guard let in. Without one, whoever the request says; what they may do is then for the handler to ask.
    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        match parts.extensions.get::<Self>() {
            Some(caller) => Ok(caller.clone()),
            None => api.access.caller(api, parts).await,
        }
    }
}
