//! Grants that are made over the API.

use accounts::GrantRecord;
use auth::Principal;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::Instant;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::tokens::{scope, seen_by};
use crate::page::{Page, PageQuery, Wanted};
use crate::request::{self, Path, Query};
use crate::{Api, Caller};

/// A role to grant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantBody {
    /// The grantee: `ada@example.com`, `@example.com` or `group:NAME`.
    pub who: String,
    /// The role to grant.
    pub role: String,
    /// The tenant by name, or `*` for all; by default the caller's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// A pattern of workflow names; by default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflows: Option<String>,
}

/// A grant as callers see it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GrantView {
    /// The id of the grant.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub id: Uuid,
    /// The grantee: an account, a domain or a group.
    pub who: String,
    /// The role that they have.
    pub role: String,
    /// The tenant, or `*` for all.
    pub tenant: String,
    /// A pattern of workflow names.
    pub workflows: String,
    /// When it was granted.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub created_at: Instant,
    /// The account or service token that granted it.
    pub created_by: String,
}

impl From<GrantRecord> for GrantView {
    fn from(record: GrantRecord) -> Self {
        Self {
            id: record.id,
            who: record.who,
            role: record.scope.role,
            tenant: record.scope.tenant_name.unwrap_or_else(|| "*".into()),
            workflows: record.scope.workflows,
            created_at: record.created_at,
            created_by: record.created_by,
        }
    }
}

pub(crate) async fn get_grants(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<GrantView>>, Problem> {
    let wanted = Wanted::<Uuid>::read(query.limit, query.cursor.as_deref())?;
    let filter = seen_by(&caller, wanted.after, wanted.rows());
    let rows = api.accounts.grants(&filter).await?;
    Ok(Json(wanted.page(rows, |record| record.id).map(GrantView::from)))
}

/// Gives a role. Giving it again changes nothing.
pub(crate) async fn post_grant(
    State(api): State<Api>,
    caller: Caller,
    request::Json(body): request::Json<GrantBody>,
) -> Result<(StatusCode, Json<GrantView>), Problem> {
    let invalid = |words| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_grant", words);
    let who: Principal = body.who.parse().map_err(invalid)?;
    let (tenant, workflows) = (body.tenant.as_deref(), body.workflows.as_deref());
    let scope = scope(&api, &caller, &body.role, tenant, workflows).await?;
    let (id, created_at) = (Uuid::now_v7(), api.app.now());
    let record = GrantRecord { id, who: who.to_string(), scope, created_at, created_by: caller.name.clone() };
    let there = api.accounts.add_grant(&record).await?;
    let new = there.id == id;
    if new {
        tracing::info!("{} made {} {}", caller.name, there.who, there.scope.role);
    }
    let status = if new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(there.into())))
}

/// Takes a grant back.
pub(crate) async fn delete_grant(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<Json<GrantView>, Problem> {
    let gone = api.accounts.remove_grant(&seen_by(&caller, None, 1), id).await?;
    let gone = gone.ok_or_else(|| Problem::not_found(format!("there is no grant {id}")))?;
    tracing::info!("{} took {} back from {}", caller.name, gone.scope.role, gone.who);
    Ok(Json(gone.into()))
}
