//! Tenants: who shares this instance, what each has coming, and saying how much that is.

use auth::Permission::Read;
use auth::{TenantScope, WorkflowScope, may};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::{Instant, Limit, TenantId};
use serde::{Deserialize, Deserializer, Serialize};
use store::{TenantFilter, TenantRecord};

use crate::limits::MAX_SLOTS;
use crate::page::{Page, PageQuery, Wanted};
use crate::request::{self, Path, Query};
use crate::{Api, Caller, error};

/// No tenant comes more often in a round.
const HEAVIEST: u32 = 1_000;

/// A tenant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TenantView {
    /// Its name.
    pub name: String,
    /// The weight while tenants wait for slots: turns in each round.
    pub weight: u32,
    /// How many of its tasks may be under way at the same time; none if there is no bound.
    pub max_active_tasks: Option<u32>,
    /// How many are.
    pub active_tasks: u32,
    /// How many wait because of that bound.
    pub waiting_tasks: u32,
    /// When it came into being.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub created_at: Instant,
}

impl From<TenantRecord> for TenantView {
    fn from(record: TenantRecord) -> Self {
        Self {
            name: record.name,
            weight: record.weight,
            max_active_tasks: record.slots,
            active_tasks: record.used,
            waiting_tasks: record.waiting,
            created_at: record.created_at,
        }
    }
}

/// What a tenant shall have coming. What is not named stays as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TenantBody {
    /// The weight while tenants wait for slots: turns in each round, from 1 to 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000))]
    pub weight: Option<u32>,
    /// How many of its tasks may be under way at the same time; null for no bound.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>", range(max = 1_000_000))]
    pub max_active_tasks: Option<Option<u32>>,
}

/// Tells a null that was written from a field that was left out.
fn said<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<u32>>, D::Error> {
    Option::<u32>::deserialize(from).map(Some)
}

/// The tenants that the caller has to do with, in the order in which they came into being.
pub async fn list(api: &Api, caller: &Caller, query: &PageQuery) -> Result<Page<TenantView>, Problem> {
    let wanted = Wanted::<i32>::read(query.limit, query.cursor.as_deref())?;
    let filter =
        TenantFilter { names: visible(caller), after: wanted.after.map(TenantId), limit: wanted.rows() };
    let rows = api.app.runtime.store().tenants(&filter).await.map_err(error::store)?;
    Ok(wanted.page(rows, |record| record.id.0).map(TenantView::from))
}

/// The names of the tenants that a caller may read in; none for all there are.
fn visible(caller: &Caller) -> Option<Vec<String>> {
    let reading = caller.grants.iter().filter(|grant| grant.role.has(Read));
    let mut names = Vec::new();
    for grant in reading {
        match &grant.tenant {
            TenantScope::All => return None,
            TenantScope::One(name) => names.push(name.clone()),
        }
    }
    Some(names)
}

/// One tenant, or words that say that there is none.
pub async fn find(api: &Api, caller: &Caller, name: &str) -> Result<TenantRecord, Problem> {
    let missing = || Problem::not_found(format!("there is no tenant `{name}`"));
    if may(&caller.grants, Read, Some(name), WorkflowScope::Some).is_err() {
        return Err(missing());
    }
    named(api, name).await?.ok_or_else(missing)
}

async fn named(api: &Api, name: &str) -> Result<Option<TenantRecord>, Problem> {
    let filter = TenantFilter { names: Some(vec![name.to_owned()]), after: None, limit: 1 };
    Ok(api.app.runtime.store().tenants(&filter).await.map_err(error::store)?.pop())
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<TenantView>>, Problem> {
    list(&api, &caller, &query).await.map(Json)
}

pub(crate) async fn get_one(
    State(api): State<Api>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<TenantView>, Problem> {
    find(&api, &caller, &name).await.map(|record| Json(record.into()))
}

/// Says what a tenant has coming. One that is not there comes into being. Who waits and finds room begins.
pub(crate) async fn post_one(
    State(api): State<Api>,
    _: Caller,
    Path(name): Path<String>,
    request::Json(body): request::Json<TenantBody>,
) -> Result<(StatusCode, Json<TenantView>), Problem> {
    check(&name, &body)?;
    let (runtime, store) = (&api.app.runtime, api.app.runtime.store());
    let status = match named(&api, &name).await? {
        Some(_) => StatusCode::OK,
        None => StatusCode::CREATED,
    };
    let id = store.tenant(&name, api.app.now()).await.map_err(error::store)?;
    if let Some(weight) = body.weight {
        store.set_weight(id, weight).await.map_err(error::store)?;
    }
    if let Some(slots) = body.max_active_tasks {
        runtime.slots().resize(&Limit::Tenant(id), slots).await.map_err(error::runtime)?;
    }
    let record = named(&api, &name).await?;
    let record = record.ok_or_else(|| Problem::unavailable("the tenant cannot be read; retry"))?;
    Ok((status, Json(record.into())))
}

fn check(name: &str, body: &TenantBody) -> Result<(), Problem> {
    let refused = |code, words| Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, words));
    match TenantScope::named(name) {
        Ok(TenantScope::One(_)) => {}
        Ok(TenantScope::All) => return refused("bad_name", "`*` means every tenant: name one".to_owned()),
        Err(words) => return refused("bad_name", words),
    }
    if body.weight.is_some_and(|weight| !(1..=HEAVIEST).contains(&weight)) {
        return refused("bad_weight", format!("`weight` must be between 1 and {HEAVIEST}"));
    }
    if body.max_active_tasks.flatten().is_some_and(|slots| slots > MAX_SLOTS) {
        let words = format!("`max_active_tasks` must be between 0 and {MAX_SLOTS}, or null for no limit");
        return refused("bad_slots", words);
    }
    Ok(())
}
