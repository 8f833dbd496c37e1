//! Limits: the slots of pools, workflows, tenants and queues, and the tasks that hold or wait for one.

mod contenders;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::{BackfillId, Instant, Limit};
use read::{FairnessGroupRecord, FairnessGroups, LimitCursor, LimitRecord};
use serde::{Deserialize, Serialize};

use crate::page::{Page, Wanted};
use crate::request::{self, Path, Query};
use crate::{Api, Caller, error};

pub(crate) use contenders::get_detail;
pub use contenders::{ContenderView, LimitDetail, detail};

/// The name of a tenant's own limit in paths.
const OWN: &str = "own";

/// The maximum length of a limit's name.
const MAX_NAME: usize = 100;

/// The maximum number of slots of a limit.
pub(crate) const MAX_SLOTS: u32 = 1_000_000;

/// The kinds of limits that are listed; breakers have a list of their own.
const KINDS: [&str; 4] = ["pool", "queue", "tenant", "workflow"];

/// Which page of the list of limits to show.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitQuery {
    /// Only of this kind: `pool`, `queue`, `tenant` or `workflow`.
    pub kind: Option<String>,
    /// The maximum number of items.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<u32>,
    /// The `next_cursor` of an earlier page.
    pub cursor: Option<String>,
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
    /// The tenants and backfills that share a queue; empty for other kinds. At most 100: those that wait come first.
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

/// A page of the limits that tasks of the caller's tenant need slots of, by kind and name.
pub async fn list(api: &Api, caller: &Caller, query: &LimitQuery) -> Result<Page<LimitView>, Problem> {
    let wanted = Wanted::<LimitCursor>::read(query.limit, query.cursor.as_deref())?;
    let kinds: Vec<&str> = match query.kind.as_deref() {
        Some(kind) if !KINDS.contains(&kind) => {
            let message =
                format!("`kind` is `{}`; expected one of {}", kind.escape_debug(), KINDS.join(", "));
            return Err(Problem::bad_request(message));
        }
        Some(kind) => vec![kind],
        None => KINDS.to_vec(),
    };
    let reader = api.reader(caller);
    let found = reader.slots().limits_and_groups(&kinds, wanted.after.as_ref(), wanted.limit).await?;
    Ok(Page::of(found).map(|(record, groups)| view(record, shares(groups))))
}

/// One limit, if it exists.
pub(crate) async fn find(api: &Api, caller: &Caller, limit: &Limit) -> Result<Option<LimitView>, Problem> {
    let reader = api.reader(caller);
    let Some(record) = reader.slots().limit(limit).await? else { return Ok(None) };
    let groups = reader.slots().groups_of(limit).await?;
    Ok(Some(view(record, shares(groups))))
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

fn shares(groups: FairnessGroups) -> Vec<ShareView> {
    let part = |own: f64, all: f64| if all > 0.0 { own / all } else { 0.0 };
    let FairnessGroups { shown, received, turns } = groups;
    let share = |group: FairnessGroupRecord| ShareView {
        own: group.own,
        backfill: group.backfill,
        weight: group.weight.tenant,
        backfill_weight: group.weight.backfill,
        waiting: group.waiting,
        oldest: group.oldest,
        entitled: if group.waiting > 0 { part(group.weight.turns(), turns) } else { 0.0 },
        received: part(group.received as f64, received as f64),
    };
    shown.into_iter().map(share).collect()
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<LimitQuery>,
) -> Result<Json<Page<LimitView>>, Problem> {
    list(&api, &caller, &query).await.map(Json)
}

/// Sets the number of slots of a limit. Tasks that hold one keep it; waiting tasks for which there is room begin.
pub(crate) async fn post_slots(
    State(api): State<Api>,
    caller: Caller,
    Path((kind, name)): Path<(String, String)>,
    request::Json(body): request::Json<LimitBody>,
) -> Result<Json<LimitView>, Problem> {
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
    let known = find(&api, &caller, &limit).await?;
    known.map(Json).ok_or_else(|| Problem::not_found("the limit has been removed meanwhile"))
}

/// The limit that a path names.
pub(crate) fn named(caller: &Caller, kind: &str, name: &str) -> Result<Limit, Problem> {
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
