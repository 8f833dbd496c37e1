//! Runs: start, list, get, events, cancel.

mod listing;

use auth::Permission::Operate;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use host::Problem;
use model::{Instant, RunId, RunState};
use read::{ListedRun, RunRecord};
use runtime::{Command, Origin, Replaces, Settled, StartRun};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::operate::ReasonBody;
use crate::page::{Page, Wanted};
use crate::request::{self, Path, Query};
use crate::views::{EventView, PreviewView, RunView};
use crate::{Api, Caller, Links, error, mutation, tasks, workflows};

pub use listing::{ListQuery, SORTS, list};
pub(crate) use listing::{check_label, get_list};

/// The maximum length of an idempotency key, in bytes.
pub(crate) const MAX_KEY: usize = 255;

/// The maximum number of runs of a concurrency group that are examined.
pub(crate) const MAX_GROUP_SHOWN: u32 = 100;

/// Which events of a run to list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventsQuery {
    /// The maximum number of items.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<u32>,
    /// The `next_cursor` of an earlier page.
    pub cursor: Option<String>,
}

/// The run to start.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StartBody {
    /// Its inputs; those with a default may be left out.
    pub inputs: Map<String, Value>,
    /// The date it is about, if it is about one.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    #[serde(default, deserialize_with = "model::instant::deserialize_option")]
    pub logical_date: Option<Instant>,
    /// Labels to find it by.
    pub labels: Map<String, Value>,
    /// How urgent it is within its tenant: from -100 to 100.
    pub priority: i32,
    /// Whether to replace a run of the same logical date: it is cancelled unless it has ended, and can still be read.
    pub replace_existing: bool,
}

/// Runs as callers see them.
pub(crate) async fn views(api: &Api, runs: Vec<ListedRun>) -> Result<Vec<RunView>, Problem> {
    let mut views = Vec::with_capacity(runs.len());
    for ListedRun { record, inputs } in runs {
        let preview = inputs.map(|inputs| PreviewView::new(inputs, Links::run_path(record.run.id)));
        views.push(RunView { inputs_preview: preview, ..view(api, record).await? });
    }
    Ok(views)
}

async fn view(api: &Api, record: RunRecord) -> Result<RunView, Problem> {
    let graph = match record.starter {
        Some(starter) => api.app.runtime.graph(starter.version).await.map_err(error::runtime)?,
        None => None,
    };
    Ok(RunView::new(record, graph.as_deref(), &api.links, api.app.now()))
}

/// The row of a run that the caller may follow.
pub async fn find(api: &Api, caller: &Caller, id: RunId) -> Result<RunRecord, Problem> {
    Ok(api.reader(caller).runs().summary(id).await?)
}

/// One run as callers see it.
pub async fn show(api: &Api, caller: &Caller, id: RunId) -> Result<RunView, Problem> {
    let record = find(api, caller, id).await?;
    show_found(api, caller, record).await
}

async fn show_found(api: &Api, caller: &Caller, record: RunRecord) -> Result<RunView, Problem> {
    let id = record.run.id;
    let group = api.reader(caller).runs().concurrency_group(&record.run, MAX_GROUP_SHOWN).await?;
    let mut view = view(api, record).await?;
    if let Some(waiting) = &mut view.waiting {
        let before = group.iter().take_while(|member| member.run != id);
        waiting.ahead = Some(before.filter(|member| member.waiting).count());
        let active = group.iter().filter(|member| !member.waiting);
        waiting.runs = Some(active.map(|member| member.run).collect());
    }
    Ok(view)
}

pub(crate) fn state_named(name: &str) -> Result<RunState, Problem> {
    RunState::named(name).ok_or_else(|| {
        let known = RunState::ALL.map(RunState::name).join(", ");
        Problem::bad_request(format!("unknown state `{name}`; expected one of {known}"))
    })
}

pub(crate) async fn get_one(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<RunId>,
) -> Result<Json<RunView>, Problem> {
    show(&api, &caller, id).await.map(Json)
}

pub(crate) async fn get_events(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<RunId>,
    Query(query): Query<EventsQuery>,
) -> Result<Json<Page<EventView>>, Problem> {
    let wanted = Wanted::<i64>::read(query.limit, query.cursor.as_deref())?;
    let run = api.reader(&caller).run(id).await?;
    let graph = tasks::graph(&api, &run.record().run).await?;
    let from = wanted.after.map_or(0, |last| last.saturating_add(1));
    let page = Page::of(run.events(from, wanted.limit).await?);
    Ok(Json(page.map(|(seq, event)| EventView::new(seq, event, Some(&graph)))))
}

/// Starts a run. The same idempotency key again starts nothing and returns the run that it started.
pub(crate) async fn post_start(
    State(api): State<Api>,
    caller: Caller,
    Path(workflow): Path<String>,
    headers: HeaderMap,
    request::Json(body): request::Json<StartBody>,
) -> Result<(StatusCode, HeaderMap, Json<RunView>), Problem> {
    let origin = Origin::Api { by: caller.name.clone() };
    let request = StartRun {
        inputs: body.inputs,
        labels: body.labels,
        logical_date: body.logical_date,
        priority: body.priority,
        ..StartRun::new(run_id(&headers, &caller, &workflow)?, caller.tenant, workflow, origin)
    };
    let workflow = request.workflow.clone();
    let started = match body.replace_existing {
        true => {
            let whose = if caller.may(Operate, &workflow) { Replaces::Any } else { Replaces::Own };
            api.app.runtime.start_in_place(request, &caller.name, whose).await
        }
        false => api.app.runtime.start(request).await,
    };
    match started {
        Ok(started) => {
            let status = if started.new { StatusCode::CREATED } else { StatusCode::OK };
            let id = started.record.run.id;
            host::label_run(id);
            let record = api.reader(&caller).runs().redacted(started.record);
            let run = show_found(&api, &caller, record).await?;
            // The run has a trace of its own, which the client can continue.
            let trace = HeaderValue::try_from(id.traceparent()).ok();
            let trace = trace.map(|trace| (HeaderName::from_static("traceparent"), trace));
            let replayed = (!started.new).then(mutation::replayed);
            let headers = trace.into_iter().chain([(header::LOCATION, location(id))]).chain(replayed);
            Ok((status, HeaderMap::from_iter(headers), Json(run)))
        }
        Err(runtime::Error::NoSuchWorkflow(_)) => {
            Err(workflows::no_such_workflow(&api, &caller, &workflow).await)
        }
        Err(runtime::Error::DateTaken(run)) if body.replace_existing => {
            let message = format!(
                "run {run} has this logical date, and you did not start it; only callers with the role operator, author or \
                 admin replace runs of others"
            );
            Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", message))
        }
        Err(error) => Err(refusal(&api, &caller, error).await),
    }
}

/// Why a run was not started, with the run that prevents it, if there is one.
async fn refusal(api: &Api, caller: &Caller, error: runtime::Error) -> Problem {
    let other = match &error {
        runtime::Error::DateTaken(run)
        | runtime::Error::KeyReused(run)
        | runtime::Error::ConcurrencyGroupTaken(run) => show(api, caller, *run).await.ok(),
        _ => None,
    };
    let problem = error::runtime(error);
    match other {
        Some(run) => problem.with(json!(run)),
        None => problem,
    }
}

fn location(run: RunId) -> HeaderValue {
    HeaderValue::try_from(Links::run_path(run)).expect("an id is made of digits, letters and dashes")
}

/// The id that follows from an idempotency key and its caller; without a key, a new one.
pub(crate) fn run_id(headers: &HeaderMap, caller: &Caller, workflow: &str) -> Result<RunId, Problem> {
    let key = mutation::key_of(headers)?;
    let Some(key) = key else { return Ok(RunId(Uuid::now_v7())) };
    // Neither a name nor a key has a line break, so no pair looks like another.
    Ok(RunId::from_key(caller.tenant, workflow, &format!("caller\n{}\n{key}", caller.name)))
}

/// Cancels a run. Cancelling a cancelled run again changes nothing.
pub(crate) async fn post_cancel(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<RunId>,
    request::Json(body): request::Json<ReasonBody>,
) -> Result<Json<RunView>, Problem> {
    find(&api, &caller, id).await?;
    let command = Command::Cancel { actor: caller.name.clone(), reason: body.reason };
    let settled = api.app.runtime.settle(id, command).await.map_err(error::runtime)?;
    let run = show(&api, &caller, id).await?;
    if settled == Settled::Applied || run.state == RunState::Cancelled {
        return Ok(Json(run));
    }
    let message = format!("run {id} has already {}", run.state.name());
    Err(Problem::new(StatusCode::CONFLICT, "already_ended", message).with(json!(run)))
}
