//! Triggers: what starts runs by itself, what it heard of last, and letting it pause or go on.

use auth::Permission::Read;
use axum::Json;
use axum::extract::State;
use host::Problem;
use model::{Instant, RunId, TriggerKey, TriggerOn};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{TriggerEvent, TriggerFilter, TriggerPause, TriggerRecord};

use crate::page::{Page, Wanted};
use crate::request::{self, Path, Query};
use crate::{Api, Caller, error};

/// So many of the events that a trigger heard of are shown.
const SHOWN: u32 = 20;

/// Which triggers to list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Only of this workflow.
    pub workflow: Option<String>,
    /// The maximum number of items.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<u32>,
    /// The `next_cursor` of an earlier page.
    pub cursor: Option<String>,
}

/// Why a trigger shall pause.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "TriggerPauseBody")]
pub struct PauseBody {
    /// For whoever wonders.
    pub reason: Option<String>,
}

/// A trigger.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "TriggerDetail")]
pub struct TriggerView {
    /// The workflow that it starts runs of.
    pub workflow: String,
    /// Its name there.
    pub name: String,
    /// `event`, `webhook`, `workflow` or `sensor`.
    pub kind: String,
    /// What it is waiting for.
    pub on: Value,
    /// Its filter, if it has one.
    pub filter: Option<String>,
    /// Its last event.
    pub last_event: Option<EventView>,
    /// What its sensor has seen.
    pub watermark: Value,
    /// How many polls of its sensor failed in a row.
    pub failures: u32,
    /// When its sensor polls next, or when an event it holds back starts a run.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub next_at: Option<Instant>,
    /// Since when it does nothing.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub paused_at: Option<Instant>,
    /// Why it does nothing.
    pub paused_reason: Option<String>,
    /// Where a webhook's requests go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Its events, latest first; only where a single trigger is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventView>,
}

/// An event of a trigger.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "TriggerEventView")]
pub struct EventView {
    /// When.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub at: Instant,
    /// What it was.
    pub what: String,
    /// The run that it started.
    #[schemars(with = "Option<crate::openapi::shapes::Id>")]
    pub run: Option<RunId>,
}

impl From<TriggerEvent> for EventView {
    fn from(event: TriggerEvent) -> Self {
        Self { at: event.at, what: event.what, run: event.run }
    }
}

impl TriggerView {
    fn new(record: TriggerRecord, events: Vec<TriggerEvent>) -> Self {
        let TriggerKey { workflow, name, .. } = record.key;
        let endpoint = matches!(record.trigger.on, TriggerOn::Webhook { .. })
            .then(|| format!("/api/v1/hooks/{workflow}/{name}"));
        Self {
            kind: record.trigger.kind().into(),
            on: json!(record.trigger.on),
            filter: record.trigger.filter,
            last_event: record.last.map(EventView::from),
            watermark: record.watermark,
            failures: record.failures,
            next_at: record.due_at,
            paused_at: record.paused.as_ref().map(|pause| pause.at),
            paused_reason: record.paused.map(|pause| pause.reason),
            endpoint,
            events: events.into_iter().map(EventView::from).collect(),
            workflow,
            name,
        }
    }
}

/// A page of triggers, by workflow and name.
pub async fn list(api: &Api, caller: &Caller, query: &ListQuery) -> Result<Page<TriggerView>, Problem> {
    let wanted = Wanted::<(String, String)>::read(query.limit, query.cursor.as_deref())?;
    let filter =
        TriggerFilter { workflow: query.workflow.clone(), after: wanted.after.clone(), limit: wanted.rows() };
    let rows = api.app.runtime.store().triggers(caller.tenant, &filter).await.map_err(error::store)?;
    let page = wanted.page(rows, |record| (record.key.workflow.clone(), record.key.name.clone()));
    let page = page.only(|record| caller.may(Read, &record.key.workflow));
    Ok(page.map(|record| TriggerView::new(record, Vec::new())))
}

/// One trigger, with what it heard of.
pub async fn show(api: &Api, key: &TriggerKey) -> Result<TriggerView, Problem> {
    let store = api.app.runtime.store();
    let record = store.trigger(key).await.map_err(error::store)?.ok_or_else(|| no_such(key))?;
    let events = store.trigger_events(key, SHOWN).await.map_err(error::store)?;
    Ok(TriggerView::new(record, events))
}

fn no_such(key: &TriggerKey) -> Problem {
    Problem::not_found(format!("workflow `{}` has no trigger `{}`", key.workflow, key.name))
}

async fn pause(
    api: &Api,
    key: &TriggerKey,
    pause: Option<TriggerPause>,
) -> Result<Json<TriggerView>, Problem> {
    if !api.app.runtime.triggers().pause(key, pause.as_ref()).await.map_err(error::runtime)? {
        return Err(no_such(key));
    }
    show(api, key).await.map(Json)
}

fn key(caller: &Caller, (workflow, name): (String, String)) -> TriggerKey {
    TriggerKey { tenant: caller.tenant, workflow, name }
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<TriggerView>>, Problem> {
    list(&api, &caller, &query).await.map(Json)
}

pub(crate) async fn get_one(
    State(api): State<Api>,
    caller: Caller,
    Path(names): Path<(String, String)>,
) -> Result<Json<TriggerView>, Problem> {
    show(&api, &key(&caller, names)).await.map(Json)
}

/// Lets a trigger do nothing until it is resumed: events that come meanwhile start nothing.
pub(crate) async fn post_pause(
    State(api): State<Api>,
    caller: Caller,
    Path(names): Path<(String, String)>,
    request::Json(body): request::Json<PauseBody>,
) -> Result<Json<TriggerView>, Problem> {
    let why = body.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let reason = format!("{} paused it{why}", caller.name);
    pause(&api, &key(&caller, names), Some(TriggerPause { at: api.app.now(), reason })).await
}

/// Lets a trigger go on. A sensor looks at once, and begins with what it has seen before.
pub(crate) async fn post_resume(
    State(api): State<Api>,
    caller: Caller,
    Path(names): Path<(String, String)>,
) -> Result<Json<TriggerView>, Problem> {
    let key = key(&caller, names);
    let active = api.app.runtime.store().active(key.tenant, &key.workflow).await.map_err(error::store)?;
    if active.is_some_and(|active| active.paused) {
        return Err(error::runtime(runtime::Error::Paused(key.workflow)));
    }
    pause(&api, &key, None).await
}
