//! Triggers: list, get, pause and resume.

use axum::Json;
use axum::extract::State;
use host::Problem;
use model::{Instant, RunId, TriggerKey, TriggerOn};
use read::{TriggerEvent, TriggerRecord};
use runtime::TriggerPause;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::page::{Page, Wanted, WorkflowPageQuery};
use crate::request::{self, Path, Query};
use crate::{Api, Caller, error};

/// The maximum number of events in a response.
const MAX_EVENTS: u32 = 20;

/// The reason for a pause.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "TriggerPauseBody")]
pub struct PauseBody {
    /// The reason, for other people.
    #[serde(default, deserialize_with = "request::brief")]
    #[schemars(length(max = 1000))]
    pub reason: Option<String>,
}

/// A trigger and its present state.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "TriggerDetail")]
pub struct TriggerView {
    /// The workflow that it starts runs of.
    pub workflow: String,
    /// Its name within the workflow.
    pub name: String,
    /// `event`, `webhook`, `workflow` or `sensor`.
    pub kind: String,
    /// The source of its events.
    pub on: Value,
    /// Its filter, if it has one.
    pub filter: Option<String>,
    /// The last event that it received.
    pub last_event: Option<EventView>,
    /// The position up to which its sensor has read.
    pub watermark: Value,
    /// How many polls of its sensor failed in a row.
    pub failures: u32,
    /// When its sensor polls next, or when an event it holds back starts a run.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub next_at: Option<Instant>,
    /// Since when it is paused.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub paused_at: Option<Instant>,
    /// Why it is paused.
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
    /// When the trigger received the event.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub at: Instant,
    /// A short description of the event.
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
pub async fn list(
    api: &Api,
    caller: &Caller,
    query: &WorkflowPageQuery,
) -> Result<Page<TriggerView>, Problem> {
    let wanted = Wanted::<(String, String)>::read(query.limit, query.cursor.as_deref())?;
    let triggers =
        api.reader(caller).triggers().list(query.workflow.clone(), wanted.after, wanted.limit).await?;
    Ok(Page::of(triggers).map(|record| TriggerView::new(record, Vec::new())))
}

/// One trigger with its last events.
pub async fn show(api: &Api, caller: &Caller, key: &TriggerKey) -> Result<TriggerView, Problem> {
    match api.reader(caller).triggers().get(&key.workflow, &key.name, MAX_EVENTS).await {
        Err(read::Error::Denied(auth::Denied::NotFound(_))) => Err(no_such(key)),
        found => found.map(|(record, events)| TriggerView::new(record, events)).map_err(Problem::from),
    }
}

fn no_such(key: &TriggerKey) -> Problem {
    Problem::not_found(format!("workflow `{}` has no trigger `{}`", key.workflow, key.name))
}

async fn shown(
    api: &Api,
    caller: &Caller,
    key: &TriggerKey,
    known: Result<bool, runtime::Error>,
) -> Result<Json<TriggerView>, Problem> {
    match known.map_err(error::runtime)? {
        true => show(api, caller, key).await.map(Json),
        false => Err(no_such(key)),
    }
}

fn key(caller: &Caller, (workflow, name): (String, String)) -> TriggerKey {
    TriggerKey { tenant: caller.tenant, workflow, name }
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<WorkflowPageQuery>,
) -> Result<Json<Page<TriggerView>>, Problem> {
    list(&api, &caller, &query).await.map(Json)
}

pub(crate) async fn get_one(
    State(api): State<Api>,
    caller: Caller,
    Path(names): Path<(String, String)>,
) -> Result<Json<TriggerView>, Problem> {
    show(&api, &caller, &key(&caller, names)).await.map(Json)
}

/// Pauses a trigger: events that arrive meanwhile start nothing.
pub(crate) async fn post_pause(
    State(api): State<Api>,
    caller: Caller,
    Path(names): Path<(String, String)>,
    request::Json(body): request::Json<PauseBody>,
) -> Result<Json<TriggerView>, Problem> {
    let why = body.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let pause = TriggerPause { at: api.app.now(), reason: format!("{} paused it{why}", caller.name) };
    let key = key(&caller, names);
    let known = api.app.runtime.triggers().pause(&key, Some(&pause)).await;
    shown(&api, &caller, &key, known).await
}

/// Resumes a trigger. A sensor polls at once and continues from its watermark.
pub(crate) async fn post_resume(
    State(api): State<Api>,
    caller: Caller,
    Path(names): Path<(String, String)>,
) -> Result<Json<TriggerView>, Problem> {
    let key = key(&caller, names);
    let known = api.app.runtime.triggers().resume(&key).await;
    shown(&api, &caller, &key, known).await
}
