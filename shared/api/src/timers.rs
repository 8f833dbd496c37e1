//! Pending timers: what will happen when, and why.

use axum::Json;
use axum::extract::State;
use host::Problem;
use model::{Instant, RunId, TimerKind};
use read::{TimerCursor, TimerFilter, TimerRecord};
use runtime::Graph;
use serde::{Deserialize, Serialize};

use crate::page::{Page, PageQuery, Wanted};
use crate::request::{Path, Query};
use crate::{Api, Caller, Links, error, runs};

/// Which timers to list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Only of this run.
    #[schemars(with = "Option<crate::openapi::shapes::Id>")]
    pub run: Option<RunId>,
    /// Only of this workflow.
    pub workflow: Option<String>,
    /// The maximum number of items.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<u32>,
    /// The `next_cursor` of an earlier page.
    pub cursor: Option<String>,
}

/// A timer that has not fired yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TimerView {
    /// The run it belongs to.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub run: RunId,
    /// The name of the run's workflow.
    pub workflow: String,
    /// The task; none for the run's own.
    pub task: Option<String>,
    /// The attempt that set it; 0 for the run's own.
    pub attempt: u32,
    /// `retry`, `sleep`, `timeout` or `deadline`.
    pub kind: String,
    /// When it is due.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub wake_at: Instant,
    /// Whether that has passed.
    pub overdue: bool,
    /// A description of the consequence, for people.
    pub why: String,
    /// The task or the run, in the API.
    pub link: String,
}

impl TimerView {
    fn new(record: TimerRecord, graph: Option<&Graph>, now: Instant) -> Self {
        let TimerRecord { run, workflow, child, timer, .. } = record;
        let known = |graph: &&Graph| timer.task.is_some_and(|task| graph.has(task, child));
        let task = timer.task.map(|task| match graph.filter(known) {
            Some(graph) => graph.name_at(task, child),
            None => format!("#{}", task.0),
        });
        let spec = graph.filter(known).zip(timer.task).map(|(graph, task)| graph.spec_at(task, child));
        let polls = spec.is_some_and(|spec| spec.pacing.is_some());
        Self {
            why: why(timer.kind, task.as_deref(), timer.attempt, polls),
            link: task.as_deref().map_or(Links::run_path(run), |task| Links::task_path(run, task)),
            overdue: timer.wake_at <= now,
            kind: timer.kind.name().into(),
            attempt: timer.attempt,
            wake_at: timer.wake_at,
            run,
            workflow,
            task,
        }
    }
}

/// Describes the consequence of a due timer.
fn why(kind: TimerKind, task: Option<&str>, attempt: u32, polls: bool) -> String {
    match (kind, task) {
        (TimerKind::Retry, Some(task)) => {
            format!("`{task}` is retried after attempt {attempt} failed")
        }
        (TimerKind::Sleep, Some(task)) if polls => format!("`{task}` polls again"),
        (TimerKind::Sleep, Some(task)) => format!("`{task}` wakes up"),
        (TimerKind::Timeout, Some(task)) => format!("`{task}` times out"),
        (TimerKind::Deadline, _) => "the run's deadline passes".into(),
        (TimerKind::Timeout | TimerKind::Retry | TimerKind::Sleep, None) => "the run times out".into(),
    }
}

/// A page of the pending timers, the next one first.
pub async fn list(api: &Api, caller: &Caller, query: &ListQuery) -> Result<Page<TimerView>, Problem> {
    let wanted = Wanted::<TimerCursor>::read(query.limit, query.cursor.as_deref())?;
    let filter = TimerFilter {
        run: query.run,
        workflow: query.workflow.clone(),
        after: wanted.after.clone(),
        limit: wanted.limit,
    };
    let Page { items, next_cursor } = Page::of(api.reader(caller).timers().list(&filter).await?);
    let mut views = Vec::with_capacity(items.len());
    for record in items {
        let graph = api.app.runtime.graph(record.version).await.map_err(error::runtime)?;
        views.push(TimerView::new(record, graph.as_deref(), api.app.now()));
    }
    Ok(Page { items: views, next_cursor })
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<TimerView>>, Problem> {
    list(&api, &caller, &query).await.map(Json)
}

pub(crate) async fn get_of_run(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<RunId>,
    Query(PageQuery { limit, cursor }): Query<PageQuery>,
) -> Result<Json<Page<TimerView>>, Problem> {
    runs::find(&api, &caller, id).await?;
    list(&api, &caller, &ListQuery { run: Some(id), workflow: None, limit, cursor }).await.map(Json)
}
