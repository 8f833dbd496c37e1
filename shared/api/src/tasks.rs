//! Tasks of a run: list, get, attempts, output.

use std::collections::BTreeSet;
use std::sync::Arc;

use accounts::Bounded;
use axum::Json;
use axum::extract::State;
use host::Problem;
use model::{Event, Limit, Run, RunId, Task, TaskIndex, TaskKey, TaskSpec, TaskState};
use read::{ListedTask, RunReader, SlotWait, TaskRecord};
use runtime::Graph;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::page::{Page, PageQuery, Wanted};
use crate::request::{Path, Query};
use crate::views::{AttemptView, OtherRunView, PreviewView, ProgressView, TaskView};
use crate::{Api, Caller, Links, error, explain};

/// Which tasks of a run to list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Only the children of this fan-out; without it, the tasks of the definition.
    pub parent: Option<String>,
    /// The maximum number of items.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<u32>,
    /// The `next_cursor` of an earlier page.
    pub cursor: Option<String>,
}

/// A task of a run, with what is needed to show it.
pub(crate) struct Found {
    pub(crate) run: Run,
    pub(crate) graph: Arc<Graph>,
    pub(crate) record: TaskRecord,
    /// Related resources of the run.
    pub(crate) reader: RunReader,
}

impl Found {
    pub(crate) fn spec(&self) -> &TaskSpec {
        self.graph.spec_at(self.record.task.index, self.record.task.child)
    }

    pub(crate) fn key(&self) -> TaskKey {
        TaskKey { run: self.run.id, task: self.record.task.index }
    }
}

/// The graph of a run's version.
pub(crate) async fn graph(api: &Api, run: &Run) -> Result<Arc<Graph>, Problem> {
    let graph = api.app.runtime.graph(run.version).await.map_err(error::runtime)?;
    graph.ok_or_else(|| Problem::internal(&format!("version {} of run {} is gone", run.version.0, run.id)))
}

/// Tasks of a run in the order in which they were written, or the children of one in the order of its list.
pub async fn list(
    api: &Api,
    caller: &Caller,
    id: RunId,
    query: &ListQuery,
) -> Result<Page<TaskView>, Problem> {
    let wanted = Wanted::<TaskIndex>::read(query.limit, query.cursor.as_deref())?;
    let reader = api.reader(caller).run(id).await?;
    let graph = graph(api, &reader.record().run).await?;
    let parent = query.parent.as_deref().map(|name| fan_out(&graph, id, name)).transpose()?;
    let Page { items, next_cursor } = Page::of(reader.tasks(parent, wanted.after, wanted.limit).await?);
    let indices: Vec<TaskIndex> = items.iter().map(|listed| listed.record.task.index).collect();
    let progress = reader.progress(&indices).await?;
    let mut views = Vec::with_capacity(items.len());
    for ListedTask { record, output } in items {
        let reported = progress.get(&record.task.index).map_or(&[][..], Vec::as_slice);
        let reported = ProgressView::of_task(reported, record.task.attempt, record.task.voided);
        let mut task = view(api, &reader, &graph, record).await?;
        task.progress = reported.map(ProgressView::brief);
        let path = || format!("{}/output", Links::task_path(id, &task.name));
        task.output_preview = output.map(|output| PreviewView::new(output, path()));
        views.push(task);
    }
    Ok(Page { items: views, next_cursor })
}

/// The output of a task.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OutputView {
    /// The number of its last attempt.
    pub attempt: u32,
    /// The output; null if the task succeeded without one, or if retention deleted it.
    pub output: Value,
}

/// One task of a run, or an error that suggests a similar name.
pub(crate) async fn find(api: &Api, caller: &Caller, id: RunId, name: &str) -> Result<Found, Problem> {
    find_in(api, api.reader(caller).run(id).await?, name).await
}

/// One task of a run that the caller may know of.
pub(crate) async fn find_in(api: &Api, reader: RunReader, name: &str) -> Result<Found, Problem> {
    let run = reader.record().run.clone();
    let (id, graph) = (run.id, graph(api, &run).await?);
    let record = match (graph.index_of(name), child_named(&graph, name)) {
        (Some(index), _) => reader.task(None, index).await?,
        (None, Some((parent, position))) => reader.child(parent, position).await?,
        (None, None) => None,
    };
    match record {
        Some(record) => Ok(Found { run, graph, record, reader }),
        None => Err(no_such_task(&graph, id, name)),
    }
}

/// The fan-out and the position that a child's name consists of.
fn child_named(graph: &Graph, name: &str) -> Option<(TaskIndex, usize)> {
    let (parent, place) = name.rsplit_once("__")?;
    Some((graph.index_of(parent)?, place.parse().ok()?))
}

fn fan_out(graph: &Graph, id: RunId, name: &str) -> Result<TaskIndex, Problem> {
    let index = graph.index_of(name).ok_or_else(|| no_such_task(graph, id, name))?;
    if graph.spec(index).fan_out.is_none() {
        return Err(Problem::bad_request(format!("`{name}` is not a fan-out, so it has no children")));
    }
    Ok(index)
}

fn no_such_task(graph: &Graph, id: RunId, name: &str) -> Problem {
    let names = graph.workflow().tasks.iter().map(|task| task.name.as_str());
    Problem::not_found(format!("run {id} has no task `{name}`{}", error::did_you_mean(name, names)))
}

async fn view(api: &Api, reader: &RunReader, graph: &Graph, record: TaskRecord) -> Result<TaskView, Problem> {
    let run = &reader.record().run;
    let name = graph.name_at(record.task.index, record.task.child);
    let links = api.links.of_task(run, &name, api.app.now());
    let elsewhere = elsewhere(api, reader, graph, &record).await?;
    let breaker = breaker_wait(reader, graph, &record).await?;
    let mut view = TaskView::new(record, graph, run.created_at, elsewhere, links);
    if let (Some(waiting), Some(wait)) = (&mut view.waiting, breaker) {
        (waiting.reason, waiting.until) = (wait.limit.kind().to_owned(), wait.until);
    }
    Ok(view)
}

/// The wait of a queued task for its circuit breaker. Only tasks that have one cost a read.
async fn breaker_wait(
    reader: &RunReader,
    graph: &Graph,
    record: &TaskRecord,
) -> Result<Option<SlotWait>, Problem> {
    let task = &record.task;
    let has_breaker = graph.spec_at(task.index, task.child).breaker.is_some();
    if task.state != TaskState::Queued || !has_breaker {
        return Ok(None);
    }
    let wait = reader.slot_wait(task.index).await?;
    Ok(wait.filter(|wait| matches!(wait.limit, Limit::Breaker(..)) && !wait.granted))
}

/// The run, or the task of it, that a task waits for.
async fn elsewhere(
    api: &Api,
    reader: &RunReader,
    graph: &Graph,
    record: &TaskRecord,
) -> Result<Option<OtherRunView>, Problem> {
    let (run, task) = (&reader.record().run, &record.task);
    if let Some(owner) = record.shared_with {
        let name = name_of(api, reader, owner).await?;
        return Ok(Some(OtherRunView::new(owner.run, name)));
    }
    let waits = task.state == TaskState::Sleeping && graph.spec_at(task.index, task.child).kind.starts_run();
    let started = || RunId::of_task(TaskKey { run: run.id, task: task.index }, task.attempt);
    Ok(waits.then(|| OtherRunView::new(started(), None)))
}

/// The name of a task of another run, if the caller may read it.
async fn name_of(api: &Api, reader: &RunReader, key: TaskKey) -> Result<Option<String>, Problem> {
    let Some(other) = reader.other(key.run).await? else { return Ok(None) };
    let graph = graph(api, &other.record().run).await?;
    Ok(graph.has(key.task, None).then(|| graph.name_at(key.task, None)))
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<RunId>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<TaskView>>, Problem> {
    list(&api, &caller, id, &query).await.map(Json)
}

pub(crate) async fn get_one(
    State(api): State<Api>,
    caller: Caller,
    Path((id, task)): Path<(RunId, String)>,
) -> Result<Json<TaskView>, Problem> {
    let found = find(&api, &caller, id, &task).await?;
    let Task { index, attempt, voided, .. } = found.record.task;
    let mut view = view(&api, &found.reader, &found.graph, found.record).await?;
    let reported = found.reader.progress_of_attempts(index).await?;
    view.progress = ProgressView::of_task(&reported, attempt, voided);
    Ok(Json(view))
}

/// Attempts, oldest first: those kept as history, then the current one.
pub(crate) async fn get_attempts(
    State(api): State<Api>,
    caller: Caller,
    Path((id, task)): Path<(RunId, String)>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<AttemptView>>, Problem> {
    let wanted = Wanted::<u32>::read(query.limit, query.cursor.as_deref())?;
    let found = find(&api, &caller, id, &task).await?;
    let (task, after) = (found.record.task.index, wanted.after.unwrap_or(0));
    let over = found.reader.attempts(task, after, wanted.rows()).await?;
    let cut = over.next.is_some();
    let mut items: Vec<AttemptView> = over.items.into_iter().map(AttemptView::from).collect();
    let current = found.record.task.clone();
    let last = items.last().map_or(after, |last| last.attempt);
    if !cut && current.attempt > last {
        items.push(AttemptView::from(current));
    }
    let Page { mut items, next_cursor } = wanted.bounded_page(Bounded { items, cut }, |item| item.attempt);
    let shown: BTreeSet<u32> = items.iter().map(|item| item.attempt).collect();
    let own = |event: &Event| event.task == Some(task) && shown.contains(&event.attempt);
    let events = explain::read_events(&found.reader, Some(task), own).await?;
    let reported = found.reader.progress_of_attempts(task).await?;
    for item in &mut items {
        item.complete(&events);
        let reported = reported.iter().find(|reported| reported.attempt == item.attempt);
        item.progress = reported.cloned().map(ProgressView::from);
        let name = found.graph.name_at(found.record.task.index, found.record.task.child);
        item.links = Some(api.links.of_attempt(&found.run, &name, item.attempt, api.app.now()));
    }
    Ok(Json(Page { items, next_cursor }))
}

/// Returns the output of a task; 404 until it has succeeded.
pub(crate) async fn get_output(
    State(api): State<Api>,
    caller: Caller,
    Path((id, task)): Path<(RunId, String)>,
) -> Result<Json<OutputView>, Problem> {
    let record = find(&api, &caller, id, &task).await?.record;
    let state = record.task.state;
    match (record.output, state) {
        (None, TaskState::Succeeded) => {
            Ok(Json(OutputView { attempt: record.task.attempt, output: Value::Null }))
        }
        (None, _) => {
            let message = format!("task `{task}` has no output; it is {}", state.name());
            Err(Problem::not_found(message))
        }
        (Some(output), _) => Ok(Json(OutputView { attempt: record.task.attempt, output })),
    }
}
