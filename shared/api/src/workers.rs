//! Workers: list, drain, kill.

use auth::Permission::{Operate, Read};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::{WorkerCommand, WorkerCommandKind, WorkerId};
use read::{ClaimedTask, WorkerRecord};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::execution::UsageView;
use crate::page::{Page, PageQuery, Wanted};
use crate::request::{self, Path, Query};
use crate::views::{BreakerView, ClaimedView, QueueWorkersView, WorkerState, WorkerView};
use crate::{Api, Caller, Links, error};

/// The reason for ending a worker.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerCommandBody {
    /// The reason, for people.
    #[serde(default, deserialize_with = "crate::request::brief")]
    #[schemars(length(max = 1000))]
    pub reason: Option<String>,
}

/// The known workers, by id, with the attempts that they hold of the caller's tenant.
pub async fn list(api: &Api, caller: &Caller, query: &PageQuery) -> Result<Page<WorkerView>, Problem> {
    let wanted = Wanted::<WorkerId>::read(query.limit, query.cursor.as_deref())?;
    let workers = api.reader(caller).workers(Read)?;
    let workers = workers.list(api.app.now(), wanted.after, wanted.limit).await?;
    let Page { items, next_cursor } = Page::of(workers);
    let mut views = Vec::with_capacity(items.len());
    for record in items {
        views.push(view(api, record).await?);
    }
    Ok(Page { items: views, next_cursor })
}

async fn view(api: &Api, record: WorkerRecord) -> Result<WorkerView, Problem> {
    let state = WorkerState::of(&record, api.app.runtime.workers().liveness(), api.app.now());
    let mut attempts = Vec::with_capacity(record.holds.len());
    for task in &record.holds {
        attempts.push(held(api, task).await?);
    }
    let WorkerRecord { id, facts, heartbeat_at, command, dead_at, tasks_done, holding, .. } = record;
    let facts = facts.as_ref();
    let remote = facts.and_then(|facts| facts.remote.as_ref());
    Ok(WorkerView {
        id,
        state,
        function: facts.map(|facts| facts.function.clone()),
        queue: facts.and_then(|facts| facts.queue.clone()),
        host: facts.map(|facts| facts.host.clone()),
        version: facts.map(|facts| facts.version.clone()),
        since: facts.map(|facts| facts.since),
        heartbeat_at,
        command,
        attempts,
        holding,
        name: remote.map(|remote| remote.name.clone()),
        slots: remote.map(|remote| remote.slots),
        labels: remote.map(|remote| remote.labels.0.clone()).unwrap_or_default(),
        types: remote.and_then(|remote| remote.types.clone()),
        usage: remote.and_then(|remote| remote.usage).map(UsageView::from),
        tasks_done: remote.map(|_| tasks_done.unsigned_abs()),
        dead_at,
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

/// Gives a worker a command. Giving the same command again changes nothing.
async fn command(
    api: &Api,
    caller: &Caller,
    id: WorkerId,
    kind: WorkerCommandKind,
    body: WorkerCommandBody,
) -> Result<Json<WorkerView>, Problem> {
    let no_such =
        || Problem::not_found(format!("there is no worker {id}; it may have left, or it holds no attempts"));
    let workers = api.reader(caller).workers(Operate)?;
    // A worker that the caller cannot see does not exist for them.
    workers.find(api.app.now(), id).await?.ok_or_else(no_such)?;
    let command = WorkerCommand { kind, actor: caller.name.clone(), reason: body.reason, at: api.app.now() };
    let in_force = api.app.runtime.workers().command(id, &command).await.map_err(error::runtime)?;
    let in_force = in_force.ok_or_else(no_such)?;
    if in_force.kind != kind {
        let message =
            format!("worker {id} already has the command {} from {}", in_force.kind.name(), in_force.actor);
        return Err(Problem::new(StatusCode::CONFLICT, "already_commanded", message).with(json!(in_force)));
    }
    view(api, workers.find(api.app.now(), id).await?.ok_or_else(no_such)?).await.map(Json)
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<WorkerView>>, Problem> {
    list(&api, &caller, &query).await.map(Json)
}

/// The workers of each queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkerStats {
    /// One entry for each queue that has workers or waiting tasks.
    pub items: Vec<QueueWorkersView>,
}

/// Counts the workers of each queue, and what waits for them.
pub(crate) async fn get_stats(State(api): State<Api>, caller: Caller) -> Result<Json<WorkerStats>, Problem> {
    let stats = api.reader(&caller).workers(Read)?.count(api.app.now()).await?;
    Ok(Json(WorkerStats { items: stats.into_iter().map(QueueWorkersView::from).collect() }))
}

/// Has a worker take no more work, finish what it holds and end.
pub(crate) async fn post_drain(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<WorkerId>,
    request::Json(body): request::Json<WorkerCommandBody>,
) -> Result<Json<WorkerView>, Problem> {
    command(&api, &caller, id, WorkerCommandKind::Drain, body).await
}

/// Has a worker stop and hand back all that it holds at once, and end.
pub(crate) async fn post_kill(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<WorkerId>,
    request::Json(body): request::Json<WorkerCommandBody>,
) -> Result<Json<WorkerView>, Problem> {
    command(&api, &caller, id, WorkerCommandKind::Kill, body).await
}
