//! Workers: list, drain, kill.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::{WorkerCommand, WorkerCommandKind, WorkerId};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{ClaimedTask, WorkerRecord};

use crate::page::{Page, PageQuery, Wanted};
use crate::request::{self, Path, Query};
use crate::views::{BreakerView, ClaimedView, WorkerState, WorkerView};
use crate::{Api, Caller, Links, error};

/// The reason for ending a worker.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerCommandBody {
    /// The reason, in words.
    #[serde(default, deserialize_with = "crate::request::brief")]
    #[schemars(length(max = 1000))]
    pub reason: Option<String>,
}

/// Workers that are known, by id, with what they hold of the caller's work.
pub async fn list(api: &Api, caller: &Caller, query: &PageQuery) -> Result<Page<WorkerView>, Problem> {
    let wanted = Wanted::<WorkerId>::read(query.limit, query.cursor.as_deref())?;
    let store = api.app.runtime.store();
    let rows = store.workers(caller.tenant, wanted.after, wanted.rows()).await.map_err(error::store)?;
    let Page { items, next_cursor } = wanted.page(rows, |record| record.id);
    let mut views = Vec::with_capacity(items.len());
    for record in items {
        views.push(view(api, record).await?);
    }
    Ok(Page { items: views, next_cursor })
}

async fn view(api: &Api, record: WorkerRecord) -> Result<WorkerView, Problem> {
    let state = WorkerState::of(&record, api.app.now());
    let mut attempts = Vec::with_capacity(record.holds.len());
    for task in &record.holds {
        attempts.push(held(api, task).await?);
    }
    let WorkerRecord { id, facts, heard_at, order, .. } = record;
    let facts = facts.as_ref();
    Ok(WorkerView {
        id,
        state,
        function: facts.map(|facts| facts.function.clone()),
        queue: facts.and_then(|facts| facts.queue.clone()),
        host: facts.map(|facts| facts.host.clone()),
        version: facts.map(|facts| facts.version.clone()),
        since: facts.map(|facts| facts.since),
        heard_at,
        order,
        attempts,
        breakers: facts
            .map(|facts| facts.breakers.iter().map(BreakerView::from).collect())
            .unwrap_or_default(),
    })
}

async fn held(api: &Api, task: &ClaimedTask) -> Result<ClaimedView, Problem> {
    let (run, index) = (task.held.key.run, task.held.key.task);
    let graph = api.app.runtime.graph(task.version).await.map_err(error::runtime)?;
    let name =
        graph.filter(|graph| graph.has(index, task.child)).map(|graph| graph.name_at(index, task.child));
    let name = name.ok_or_else(|| Problem::internal(&format!("run {run} has no task {}", index.0)))?;
    let link = Links::task_path(run, &name);
    Ok(ClaimedView { run, task: name, attempt: task.held.attempt, started_at: task.started_at, link })
}

/// Tells a worker to end. Telling it the same again changes nothing.
async fn order(
    api: &Api,
    caller: &Caller,
    id: WorkerId,
    kind: WorkerCommandKind,
    body: WorkerCommandBody,
) -> Result<Json<WorkerView>, Problem> {
    let no_such =
        || Problem::not_found(format!("there is no worker {id}; it may have left, or it holds no attempts"));
    let order = WorkerCommand { kind, actor: caller.name.clone(), reason: body.reason, at: api.app.now() };
    let store = api.app.runtime.store();
    let stands = store.command_worker(id, &order).await.map_err(error::store)?.ok_or_else(no_such)?;
    if stands.kind != kind {
        let message =
            format!("worker {id} already has the command {} from {}", stands.kind.name(), stands.actor);
        return Err(Problem::new(StatusCode::CONFLICT, "already_told", message).with(json!(stands)));
    }
    let record = store.worker(caller.tenant, id).await.map_err(error::store)?.ok_or_else(no_such)?;
    view(api, record).await.map(Json)
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<WorkerView>>, Problem> {
    list(&api, &caller, &query).await.map(Json)
}

/// Has a worker take no more work, finish what it holds and end.
pub(crate) async fn post_drain(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<WorkerId>,
    request::Json(body): request::Json<WorkerCommandBody>,
) -> Result<Json<WorkerView>, Problem> {
    order(&api, &caller, id, WorkerCommandKind::Drain, body).await
}

/// Has a worker stop and hand back all that it holds at once, and end.
pub(crate) async fn post_kill(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<WorkerId>,
    request::Json(body): request::Json<WorkerCommandBody>,
) -> Result<Json<WorkerView>, Problem> {
    order(&api, &caller, id, WorkerCommandKind::Kill, body).await
}
