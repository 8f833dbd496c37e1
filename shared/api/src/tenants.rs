//! Tenants: their weights and limits.

use auth::TenantScope;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::{Instant, TenantId};
use read::TenantRecord;
use runtime::TenantChange;
use serde::{Deserialize, Deserializer, Serialize};

use crate::limits::MAX_SLOTS;
use crate::page::{Page, PageQuery, Wanted};
use crate::request::{self, Path, Query};
use crate::{Api, Caller, error};

/// The maximum weight of a tenant.
const MAX_WEIGHT: u32 = 1_000;

/// A tenant with its weight and limit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TenantView {
    /// The name of the tenant, which is unique.
    pub name: String,
    /// The weight while tenants wait for slots: turns in each round.
    pub weight: u32,
    /// The maximum number of its active tasks; null for no limit.
    pub max_active_tasks: Option<u32>,
    /// How many of its tasks are active.
    pub active_tasks: u32,
    /// How many of its tasks wait because of that limit.
    pub waiting_tasks: u32,
    /// When it was created.
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

/// Changes to a tenant. Omitted fields keep their values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TenantBody {
    /// The weight while tenants wait for slots: turns in each round, from 1 to 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000))]
    pub weight: Option<u32>,
    /// The maximum number of its active tasks; null for no limit.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>", range(max = 1_000_000))]
    pub max_active_tasks: Option<Option<u32>>,
}

/// Distinguishes a null from a field that was left out.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<u32>>, D::Error> {
    Option::<u32>::deserialize(from).map(Some)
}

/// The tenants in which the caller may read something, in the order of their creation.
pub async fn list(api: &Api, caller: &Caller, query: &PageQuery) -> Result<Page<TenantView>, Problem> {
    let wanted = Wanted::<TenantId>::read(query.limit, query.cursor.as_deref())?;
    let tenants = api.reader(caller).tenants().list(wanted.after, wanted.limit).await?;
    Ok(Page::of(tenants).map(TenantView::from))
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
    Ok(Json(api.reader(&caller).tenants().named(&name).await?.into()))
}

/// Changes a tenant's weight and limit. A tenant that does not exist is created. Tasks for which there is room begin.
pub(crate) async fn post_one(
    State(api): State<Api>,
    caller: Caller,
    Path(name): Path<String>,
    request::Json(body): request::Json<TenantBody>,
) -> Result<(StatusCode, Json<TenantView>), Problem> {
    check(&name, &body)?;
    let reader = api.reader(&caller);
    let status = match reader.tenants().named(&name).await {
        Err(read::Error::Denied(_)) => StatusCode::CREATED,
        found => found.map(|_| StatusCode::OK)?,
    };
    let change = TenantChange { weight: body.weight, max_active_tasks: body.max_active_tasks };
    api.app.runtime.tenants().change(&name, change).await.map_err(error::runtime)?;
    Ok((status, Json(reader.tenants().named(&name).await?.into())))
}

fn check(name: &str, body: &TenantBody) -> Result<(), Problem> {
    let refused = |code, words| Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, words));
    match TenantScope::named(name) {
        Ok(TenantScope::One(_)) => {}
        Ok(TenantScope::All) => return refused("bad_name", "`*` means every tenant; name one".to_owned()),
        Err(words) => return refused("bad_name", words),
    }
    if body.weight.is_some_and(|weight| !(1..=MAX_WEIGHT).contains(&weight)) {
        return refused("bad_weight", format!("`weight` must be between 1 and {MAX_WEIGHT}"));
    }
    if body.max_active_tasks.flatten().is_some_and(|slots| slots > MAX_SLOTS) {
        let words = format!("`max_active_tasks` must be between 0 and {MAX_SLOTS}, or null for no limit");
        return refused("bad_slots", words);
    }
    Ok(())
}
