//! Limits: the slots of pools, workflows, tenants and queues, and the tasks that hold or wait for one.

mod contenders;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::{BackfillId, Instant, Limit};
use read::{FairnessGroupRecord, LimitRecord};
use serde::{Deserialize, Serialize};

use crate::request::{self, Path};
use crate::{Api, Caller, error};

pub(crate) use contenders::get_detail;
pub use contenders::{ContenderView, LimitDetail, detail};

/// The name of a tenant's own limit in paths.
const OWN: &str = "own";

/// The maximum length of a limit's name.
const MAX_NAME: usize = 100;

/// The maximum number of slots of a limit.
pub(crate) const MAX_SLOTS: u32 = 1_000_000;

/// The limits that a tenant's tasks need slots of.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LimitList {
    /// By kind and name.
    pub items: Vec<LimitView>,
}

/// A limit on active tasks and its use.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LimitView {
    /// `pool`, `workflow`, `tenant` or `queue`.
    pub kind: String,
    /// The name of what it limits; `own` for the tenant.
    pub name: String,
    /// The number of slots; null for no limit.
    pub slots: Option<u32>,
    /// How many are taken or granted.
    pub used: u32,
    /// How many tasks are in its wait queue.
    pub waiting: u32,
    /// Since when the task that has waited longest waits.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub oldest: Option<Instant>,
    /// The tenants and backfills that share a queue; empty for other kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fairness_groups: Vec<ShareView>,
}

/// A tenant, or one of its backfills, in the wait queue of a queue.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ShareView {
    /// Whether it is the caller's own.
    pub own: bool,
    /// The backfill, if it is one of the caller's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::openapi::shapes::Id>")]
    pub backfill: Option<BackfillId>,
    /// The tenant's turns in each round.
    pub weight: u32,
    /// For a backfill: turns for every ten of the tenant's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backfill_weight: Option<u32>,
    /// How many of its tasks wait.
    pub waiting: u32,
    /// Since when the task that has waited longest waits.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub oldest: Option<Instant>,
    /// The share of slots it is entitled to while it waits, of 1.
    pub entitled: f64,
    /// The share of slots it got from the wait queue, of 1.
    pub received: f64,
}

/// The number of slots to give a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitBody {
    /// The number; null for no limit.
    #[schemars(range(max = 1_000_000))]
    pub slots: Option<u32>,
}

/// Every limit of the caller's tenant.
pub async fn show(api: &Api, caller: &Caller) -> Result<LimitList, Problem> {
    let reader = api.reader(caller);
    let mut items = Vec::new();
    for record in reader.slots().limits().await? {
        let groups = match &record.limit {
            Limit::Queue(_) => reader.slots().fairness_groups(&record.limit).await?,
            _ => Vec::new(),
        };
        items.push(view(record, shares(groups)));
    }
    Ok(LimitList { items })
}

fn view(record: LimitRecord, fairness_groups: Vec<ShareView>) -> LimitView {
    let name = Some(record.limit.name()).filter(|name| !name.is_empty()).unwrap_or(OWN);
    LimitView {
        kind: record.limit.kind().into(),
        name: name.into(),
        slots: record.slots,
        used: record.used,
        waiting: record.waiting,
        oldest: record.oldest,
        fairness_groups,
    }
}

fn shares(groups: Vec<FairnessGroupRecord>) -> Vec<ShareView> {
    let part = |own: f64, all: f64| if all > 0.0 { own / all } else { 0.0 };
    let weights: f64 =
        groups.iter().filter(|group| group.waiting > 0).map(|group| group.weight.turns()).sum();
    let received: f64 = groups.iter().map(|group| group.received as f64).sum();
    let share = |group: FairnessGroupRecord| ShareView {
        own: group.own,
        backfill: group.backfill,
        weight: group.weight.tenant,
        backfill_weight: group.weight.backfill,
        waiting: group.waiting,
        oldest: group.oldest,
        entitled: if group.waiting > 0 { part(group.weight.turns(), weights) } else { 0.0 },
        received: part(group.received as f64, received),
    };
    groups.into_iter().map(share).collect()
}

pub(crate) async fn get_list(State(api): State<Api>, caller: Caller) -> Result<Json<LimitList>, Problem> {
    show(&api, &caller).await.map(Json)
}

/// Sets the number of slots of a limit. Tasks that hold one keep it; waiting tasks for which there is room begin.
pub(crate) async fn post_slots(
    State(api): State<Api>,
    caller: Caller,
    Path((kind, name)): Path<(String, String)>,
    request::Json(body): request::Json<LimitBody>,
) -> Result<Json<LimitList>, Problem> {
    let limit = named(&caller, &kind, &name)?;
    if matches!(limit, Limit::Workflow(..)) {
        let message =
            "a workflow's definition sets this limit: change its `max_active_tasks` and register it";
        return Err(Problem::new(StatusCode::CONFLICT, "defined_by_the_workflow", message));
    }
    if body.slots.is_some_and(|slots| slots > MAX_SLOTS) {
        let message = format!("`slots` must be from 0 to {MAX_SLOTS}, or null for no limit");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_slots", message));
    }
    api.app.runtime.slots().resize(&limit, body.slots).await.map_err(error::runtime)?;
    show(&api, &caller).await.map(Json)
}

/// The limit that a path names.
fn named(caller: &Caller, kind: &str, name: &str) -> Result<Limit, Problem> {
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if name.len() > MAX_NAME || !name.chars().all(plain) {
        let message =
            format!("a limit's name must have at most {MAX_NAME} lowercase letters, digits and `-`");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_name", message));
    }
    match kind {
        "pool" => Ok(Limit::Pool(caller.tenant, name.into())),
        "queue" => Ok(Limit::Queue(name.into())),
        "tenant" if name == OWN => Ok(Limit::Tenant(caller.tenant)),
        "tenant" => Err(Problem::not_found(format!("a tenant's limit is named `{OWN}`, not `{name}`"))),
        "workflow" => Ok(Limit::Workflow(caller.tenant, name.into())),
        _ => {
            let kinds = "pool, queue, tenant or workflow";
            Err(Problem::not_found(format!("unknown kind of limit `{kind}`: {kinds}")))
        }
    }
}
