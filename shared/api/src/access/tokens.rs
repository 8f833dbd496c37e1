//! Service tokens: made, listed, revoked; shown once and never again.

use accounts::{IdentityFilter, NewToken, Scope, TokenRecord};
use auth::{Pattern, TenantScope};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::TimeDelta;
use host::Problem;
use model::{Instant, TenantId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::forbidden;
use crate::page::{Page, PageQuery, Wanted};
use crate::request::{self, Path, Query};
use crate::{Api, Caller};

/// The maximum lifetime of a token, in days.
const MAX_DAYS: i64 = 366;

/// The default lifetime of a token, in days.
const DEFAULT_DAYS: i64 = 90;

/// No name of a token is longer, in characters.
const MAX_NAME: usize = 100;

/// The scope and lifetime of a new token.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenBody {
    /// The purpose of the token. Events and audit entries name it.
    pub name: String,
    /// The role of its bearer.
    pub role: String,
    /// The tenant by name, or `*` for all; by default the caller's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// A pattern of workflow names; by default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflows: Option<String>,
    /// The days until it expires; by default 90.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<i64>,
}

/// A service token as callers see it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TokenView {
    /// The id of the token.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub id: Uuid,
    /// The purpose of the token.
    pub name: String,
    /// The role of its bearer.
    pub role: String,
    /// The tenant, or `*` for all.
    pub tenant: String,
    /// A pattern of workflow names.
    pub workflows: String,
    /// `active`, `expired` or `revoked`.
    pub state: String,
    /// When it was created.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub created_at: Instant,
    /// The account or service token that created it.
    pub created_by: String,
    /// When it expires by itself.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub expires_at: Instant,
    /// When it was revoked.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub revoked_at: Option<Instant>,
    /// The account or service token that revoked it.
    pub revoked_by: Option<String>,
    /// The token itself; only in the response that created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl TokenView {
    fn new(record: TokenRecord, now: Instant) -> Self {
        let state = match () {
            () if record.revoked.is_some() => "revoked",
            () if record.expires_at <= now => "expired",
            () => "active",
        };
        let (revoked_at, revoked_by) = record.revoked.unzip();
        Self {
            id: record.id,
            name: record.name,
            role: record.scope.role,
            tenant: record.scope.tenant_name.unwrap_or_else(|| "*".into()),
            workflows: record.scope.workflows,
            state: state.into(),
            created_at: record.created_at,
            created_by: record.created_by,
            expires_at: record.expires_at,
            revoked_at,
            revoked_by,
            token: None,
        }
    }
}

/// A role that the caller wants to give, if they may.
pub(super) async fn scope(
    api: &Api,
    caller: &Caller,
    role: &str,
    tenant: Option<&str>,
    workflows: Option<&str>,
) -> Result<Scope, Problem> {
    let invalid = |words| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_scope", words);
    let role: auth::Role = role.parse().map_err(invalid)?;
    let workflows = Pattern::new(workflows.unwrap_or("*")).map_err(invalid)?;
    let reach = TenantScope::named(tenant.unwrap_or(&caller.tenant_name)).map_err(invalid)?;
    auth::may(&caller.grants, auth::Permission::Administer, reach.tenant(), auth::WorkflowScope::Whole)
        .map_err(forbidden)?;
    let tenant = match reach.tenant() {
        None => None,
        Some(name) if name == caller.tenant_name => Some(caller.tenant),
        // An admin of all tenants may grant a role in a tenant that does not exist yet.
        Some(name) => api.accounts.tenant(name, true, api.app.now()).await?,
    };
    let tenant_name = reach.tenant().map(ToOwned::to_owned);
    Ok(Scope { role: role.name().into(), tenant, tenant_name, workflows: workflows.as_str().into() })
}

/// What a caller who administers sees: that of their tenant, and of all tenants if they are admin of all.
pub(super) fn seen_by(caller: &Caller, after: Option<Uuid>, limit: u32) -> IdentityFilter {
    let everywhere = caller.may_everywhere(auth::Permission::Administer);
    let tenant: TenantId = caller.tenant;
    IdentityFilter { tenant, everywhere, after, limit }
}

pub(crate) async fn get_tokens(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<TokenView>>, Problem> {
    let wanted = Wanted::<Uuid>::read(query.limit, query.cursor.as_deref())?;
    let filter = seen_by(&caller, wanted.after, wanted.rows());
    let rows = api.accounts.tokens(&filter).await?;
    let (page, now) = (wanted.page(rows, |record| record.id), api.app.now());
    Ok(Json(page.map(|record| TokenView::new(record, now))))
}

/// Creates a token. Only this response has it; the database keeps its hash.
pub(crate) async fn post_token(
    State(api): State<Api>,
    caller: Caller,
    request::Json(body): request::Json<TokenBody>,
) -> Result<(StatusCode, Json<TokenView>), Problem> {
    let invalid = |words: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_token", words);
    if body.name.is_empty() || body.name.chars().count() > MAX_NAME || body.name.chars().any(char::is_control)
    {
        return Err(invalid(format!("`name` must have 1 to {MAX_NAME} characters")));
    }
    let days = body.days.unwrap_or(DEFAULT_DAYS);
    if !(1..=MAX_DAYS).contains(&days) {
        return Err(invalid(format!("`days` must be between 1 and {MAX_DAYS}, not {days}")));
    }
    let (tenant, workflows) = (body.tenant.as_deref(), body.workflows.as_deref());
    let scope = scope(&api, &caller, &body.role, tenant, workflows).await?;
    let now = api.app.now();
    let expires_at = now + TimeDelta::days(days);
    let new = NewToken { name: body.name, scope, created_by: caller.name.clone(), expires_at };
    let (token, record) = api.accounts.create_token(new, now).await?;
    tracing::info!("{} made service token {} ({})", caller.name, record.id, record.name);
    let view = TokenView { token: Some(token), ..TokenView::new(record, now) };
    Ok((StatusCode::CREATED, Json(view)))
}

/// Revokes a token. Revoking a revoked token again changes nothing.
pub(crate) async fn delete_token(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<Json<TokenView>, Problem> {
    let (filter, now) = (seen_by(&caller, None, 1), api.app.now());
    let revoked = api.accounts.revoke_token(&filter, id, &caller.name, now).await?;
    let revoked = revoked.ok_or_else(|| Problem::not_found(format!("there is no token {id}")))?;
    tracing::info!("{} revoked service token {id} ({})", caller.name, revoked.name);
    Ok(Json(TokenView::new(revoked, now)))
}
