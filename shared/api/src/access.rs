//! Who calls, and what they may do.

mod credentials;
mod grants;
mod guard;
mod proxy;
mod quotas;
mod rates;
mod reach;
mod session;
mod tenants;
mod timeouts;
mod tokens;

use std::sync::Arc;

use accounts::Bearer;
use auth::{Authenticator, Grant, Identity, Policy, Seal};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use host::Problem;
use host::config::ApiConfig;
use model::Queues;

use crate::{Api, Caller};

pub use credentials::Credentials;
pub use grants::{GrantBody, GrantView};
pub(crate) use grants::{delete_grant, get_grants, post_grant};
pub(crate) use guard::guard;
pub use proxy::is_same_origin;
pub use rates::Rates;
pub(crate) use reach::check_reach;
pub use session::{CSRF_HEADER, LOGIN_PREFIX, LOGIN_TTL, SESSION_TTL, Session, Sessions, TENANT_COOKIE};
pub use tokens::{TokenBody, TokenView};
pub(crate) use tokens::{delete_token, get_tokens, post_token};

/// Authenticates callers; cheap to clone.
#[derive(Clone)]
pub struct Access(Arc<Inner>);

struct Inner {
    gate: Authenticator,
    policy: Policy,
    sessions: Option<Sessions>,
    counted: rates::Counted,
    workflow_quota: Option<u32>,
    queues: Queues,
}

impl Access {
    /// Accepts the tokens that the gate accepts. The policy and grants made over the API say who may do what.
    pub fn new(gate: Authenticator, policy: Policy) -> Self {
        Self(Arc::new(Inner {
            gate,
            policy,
            sessions: None,
            counted: rates::Counted::default(),
            workflow_quota: None,
            queues: Queues::default(),
        }))
    }

    /// The access rules of a function's configuration.
    pub fn configured(config: &ApiConfig) -> Result<Self, auth::Error> {
        let bound = |rate: u32| (rate > 0).then_some(rate);
        let rates = Rates { caller: bound(config.rate_per_caller), tenant: bound(config.rate_per_tenant) };
        let access = Self::new(config.authenticator()?, config.policy.clone())
            .with_rates(rates)
            .with_workflow_quota(bound(config.workflow_quota));
        let (Some(sign_in), Some(settings)) = (config.sign_in()?, &config.sign_in) else { return Ok(access) };
        let seal = Seal::new(settings.session_key.as_bytes());
        Ok(access.with_sessions(Sessions::new(sign_in, seal)))
    }

    /// The caller of a request, in the tenant that they choose.
    pub async fn caller(&self, api: &Api, parts: &Parts) -> Result<Caller, Problem> {
        self.check_not_forged(parts)?;
        if let Some(person) = self.proxied(api, parts).await? {
            return Ok(person);
        }
        let sent = parts.headers.contains_key(header::AUTHORIZATION);
        let Some((session, csrf)) = self.session(parts, api.app.now()).filter(|_| !sent) else {
            let (identity, grants) = self.bearer(api, parts).await?;
            return self.admit(api, identity, grants, wanted_tenant(parts)?).await;
        };
        self.check_sent_by_us(parts, &csrf)?;
        self.visitor(api, parts, session).await
    }

    /// A person who is signed in, in the tenant that they choose. The caller checks that they sent the request.
    pub async fn visitor(&self, api: &Api, parts: &Parts, session: Session) -> Result<Caller, Problem> {
        self.check_not_ended(api, &session).await?;
        self.person(api, parts, session.identity).await
    }

    async fn person(&self, api: &Api, parts: &Parts, identity: Identity) -> Result<Caller, Problem> {
        let grants = self.grants_of(api, &identity).await?;
        // A browser chooses its tenant by a cookie, which counts only while the person has a role there.
        let chosen = session::cookie(parts, session::TENANT_COOKIE);
        let chosen = chosen.filter(|name| grants.iter().any(|grant| grant.tenant.covers(Some(name))));
        let wanted = wanted_tenant(parts)?.or(chosen);
        self.admit(api, identity, grants, wanted).await
    }

    /// An authenticated identity in a tenant; refused without a role there.
    async fn admit(
        &self,
        api: &Api,
        identity: Identity,
        grants: Vec<Grant>,
        wanted: Option<&str>,
    ) -> Result<Caller, Problem> {
        let tenant_name = tenants::choose(&identity.name, &grants, wanted)?;
        let tenant = tenants::find(api, &tenant_name, &grants).await?;
        Ok(Caller { tenant, tenant_name, name: identity.name, grants: grants.into() })
    }

    async fn bearer(&self, api: &Api, parts: &Parts) -> Result<(Identity, Vec<Grant>), Problem> {
        let token = bearer(parts).ok_or(auth::Error::Missing)?;
        if token.starts_with(auth::service_token::PREFIX) {
            return match api.accounts.bearer(token, api.app.now()).await? {
                Bearer::Known(identity, grants) => Ok((identity, grants)),
                Bearer::Expired => Err(auth::Error::Expired.into()),
                Bearer::Unknown => Err(Problem::unauthorized("unknown or revoked token")),
            };
        }
        let identity = match self.logged_in(token, api.app.now()) {
            Some(session) => {
                self.check_not_ended(api, &session).await?;
                session.identity
            }
            None => self.0.gate.identify(token, api.app.now()).await?,
        };
        let grants = self.grants_of(api, &identity).await?;
        Ok((identity, grants))
    }

    /// The grants of an identity, from the policy and from the API.
    async fn grants_of(&self, api: &Api, identity: &Identity) -> Result<Vec<Grant>, Problem> {
        let mut grants = self.0.policy.grants_of(identity);
        grants.extend(api.accounts.grants_of(identity, api.app.now()).await?);
        Ok(grants)
    }
}

/// The token of a request's `Authorization` header.
fn bearer(parts: &Parts) -> Option<&str> {
    let header = parts.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The tenant that the caller chooses.
fn wanted_tenant(parts: &Parts) -> Result<Option<&str>, Problem> {
    let Some(value) = parts.headers.get("x-ebb-tenant") else { return Ok(None) };
    let name = value.to_str().ok().filter(|name| !name.is_empty());
    name.map(Some).ok_or_else(|| Problem::bad_request("`X-Ebb-Tenant` must be the name of a tenant"))
}

fn forbidden(words: impl Into<String>) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "forbidden", words)
}
