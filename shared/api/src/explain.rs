//! Why a run and its tasks are where they are, in plain words.
//!
//! [`explain`] is pure: the explanation follows from a [`Story`], the rows and events of a run. `story` answers questions
//! about them; the other modules turn the answers into sentences, each about some states.

mod ended;
mod fan_out;
mod other_runs;
mod skipped;
mod story;
mod summary;
mod waiting;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::State;
use host::Problem;
use model::{
    Event, Instant, Run, RunId, RunState, ServedQueues, Task, TaskIndex, TaskSpec, TaskState, Workflow,
};
use read::{RunReader, SlotWait};
use runtime::Graph;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::request::{Path, Query};
use crate::{Api, Caller, error, runs, tasks};

pub use other_runs::{Around, Other};
pub use story::Story;

/// The maximum number of tasks, or of names in the details of one, in an explanation; the others are counted.
const MAX_LISTED: usize = 50;

/// How many events are read at once.
const MAX_EVENTS: u32 = 1_000;

/// Why a run is where it is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Explanation {
    /// The id of the run.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub run: RunId,
    /// The current state of the run.
    #[schemars(with = "crate::openapi::shapes::RunStates")]
    pub state: RunState,
    /// Why, in a few sentences.
    pub summary: String,
    /// The tasks with something to explain: those that failed, were skipped or have not ended.
    pub tasks: Vec<TaskExplanation>,
    /// How many more such tasks there are.
    pub more: usize,
}

/// Why a task is where it is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskExplanation {
    /// The name of the task.
    pub task: String,
    /// The current state of the task.
    #[schemars(with = "crate::openapi::shapes::TaskStates")]
    pub state: TaskState,
    /// Why, in a few sentences.
    pub because: String,
    /// Since when the task is in this state.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub since: Instant,
    /// Until when it stays in this state, if that is known.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub until: Option<Instant>,
    /// The facts behind the sentences, for programs.
    pub details: Value,
}

/// The part of a run to explain.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainQuery {
    /// Only this task, and in more detail.
    pub task: Option<String>,
}

/// The explanation of one state of a task.
struct Explained {
    because: String,
    until: Option<Instant>,
    details: Value,
}

impl Explained {
    fn new(because: impl Into<String>, details: Value) -> Self {
        Self { because: because.into(), until: None, details }
    }

    fn until(self, until: Option<Instant>) -> Self {
        Self { until, ..self }
    }
}

/// Explains a run: all of it, or one task in more detail.
pub fn explain(story: &Story<'_>, only: Option<TaskIndex>) -> Explanation {
    let (wanted, more) = story.to_explain(only);
    let explained = |task: &Task| if only.is_some() { in_detail(story, task) } else { briefly(story, task) };
    Explanation {
        run: story.run.id,
        state: story.run.state,
        summary: summary::summary(story),
        tasks: wanted.iter().filter_map(|index| story.tasks.get(index)).map(explained).collect(),
        more,
    }
}

/// The tasks to explain, the most important first, and how many more there are.
fn to_explain<'a>(tasks: impl Iterator<Item = &'a Task>) -> (Vec<TaskIndex>, usize) {
    let mut wanted: Vec<(usize, TaskIndex)> =
        tasks.filter_map(|task| Some((rank(task.state)?, task.index))).collect();
    wanted.sort_unstable();
    let more = wanted.len().saturating_sub(MAX_LISTED);
    (wanted.into_iter().take(MAX_LISTED).map(|(_, index)| index).collect(), more)
}

/// The importance of a state, 0 for the most important; none where there is nothing to explain.
fn rank(state: TaskState) -> Option<usize> {
    use TaskState as S;
    const BY_IMPORTANCE: [TaskState; 10] = [
        S::Failed,
        S::UpForRetry,
        S::Running,
        S::Dispatched,
        S::Queued,
        S::Sleeping,
        S::Pending,
        S::UpstreamFailed,
        S::Cancelled,
        S::Skipped,
    ];
    BY_IMPORTANCE.iter().position(|other| *other == state)
}

fn briefly(story: &Story<'_>, task: &Task) -> TaskExplanation {
    let Explained { because, until, details } = match task.state {
        TaskState::Pending => waiting::pending(story, task),
        TaskState::Queued => waiting::queued(story, task),
        TaskState::Dispatched => waiting::dispatched(story, task),
        TaskState::Running => waiting::running(story, task),
        TaskState::Sleeping => waiting::sleeping(story, task),
        TaskState::UpForRetry => waiting::up_for_retry(story, task),
        TaskState::Succeeded => ended::succeeded(story, task),
        TaskState::Failed => ended::failed(story, task),
        TaskState::UpstreamFailed => ended::upstream_failed(story, task),
        TaskState::Skipped => skipped::skipped(story, task),
        TaskState::Cancelled => ended::cancelled(story, task),
        TaskState::Removed => Explained::new("It is no longer part of the run.", json!({})),
    };
    let name = story.name(task.index);
    TaskExplanation { task: name, state: task.state, because, since: task.since, until, details }
}

/// Like [`briefly`], with every earlier attempt and the tasks it depends on.
fn in_detail(story: &Story<'_>, task: &Task) -> TaskExplanation {
    let (mut explained, index) = (briefly(story, task), task.index);
    for attempt in story.failed_attempts(index).filter(|event| event.attempt < task.attempt) {
        let (number, when) = (attempt.attempt, words::moment(attempt.at, story.now));
        explained.because +=
            &format!(" Attempt {number} failed at {when}: {}.", words::failure_in(&attempt.data));
    }
    let spec = story.spec(index);
    explained.details["type"] = json!(spec.kind);
    explained.details["trigger_rule"] = json!(spec.trigger_rule);
    explained.details["depends_on"] = story.states(story.parents(index));
    explained.details["attempts"] = story.attempts(index);
    if let Some(child) = task.child {
        explained.details["fan_out"] = json!(story.name(child.of));
    }
    explained
}

/// Reads the rows and events of a run, and explains it.
pub async fn show(
    api: &Api,
    caller: &Caller,
    id: RunId,
    query: &ExplainQuery,
) -> Result<Explanation, Problem> {
    let only = match &query.task {
        Some(name) => Some(tasks::find(api, caller, id, name).await?.record.task),
        None => None,
    };
    let index = only.as_ref().map(|task| task.index);
    let reader = api.reader(caller).run(id).await?;
    let run = reader.record().run.clone();
    let graph = tasks::graph(api, &run).await?;
    let mut tasks = reader.outline().await?;
    // Children of fan-outs are left out, except one that was asked for.
    tasks.extend(only.filter(|task| task.child.is_some()));
    let quiet =
        index.is_none() && to_explain(tasks.iter()).0.is_empty() && !has_more_events(graph.workflow());
    let events = if quiet { Vec::new() } else { read_events(&reader, index, Story::explains_state).await? };
    let around = Around {
        concurrency_group: api.reader(caller).runs().concurrency_group(&run, runs::MAX_GROUP_SHOWN).await?,
        runs: others(api, &reader, &tasks, &events).await?,
        slot_waits: slot_waits(&reader, &tasks).await?,
        served: served(&reader, &graph, &tasks).await?,
    };
    let story = Story::new(&graph, &run, tasks, events, api.app.now()).among(around);
    let failures = reader.failures(&story.failed(index)).await?;
    Ok(explain(&story.with(failures), index))
}

/// Whether a run's events may have more to explain than its tasks.
fn has_more_events(workflow: &Workflow) -> bool {
    let calls_back = |task: &TaskSpec| !task.callbacks.is_empty();
    workflow.deadline_seconds.is_some()
        || !workflow.callbacks.is_empty()
        || workflow.tasks.iter().any(calls_back)
}

/// The runs that sleeping tasks wait for, of those that the caller may read.
async fn others(
    api: &Api,
    reader: &RunReader,
    tasks: &[Task],
    events: &[Event],
) -> Result<BTreeMap<RunId, Other>, Problem> {
    let asleep: BTreeSet<TaskIndex> =
        tasks.iter().filter(|task| task.state == TaskState::Sleeping).map(|task| task.index).collect();
    let waiting = events.iter().filter(|event| event.task.is_some_and(|task| asleep.contains(&task)));
    let wanted: BTreeSet<RunId> = waiting.filter_map(|event| other_runs::waited_for(&event.data)).collect();
    let mut found = BTreeMap::new();
    for id in wanted.into_iter().take(MAX_LISTED) {
        let Some(other) = reader.other(id).await? else { continue };
        let Run { workflow, state, waiting, version, .. } = other.record().run.clone();
        if let Some(graph) = api.app.runtime.graph(version).await.map_err(error::runtime)? {
            found.insert(id, Other { workflow, state, waiting, graph });
        }
    }
    Ok(found)
}

/// The positions of queued tasks in the wait queue.
async fn slot_waits(run: &RunReader, tasks: &[Task]) -> Result<BTreeMap<TaskIndex, SlotWait>, Problem> {
    let queued = tasks.iter().filter(|task| task.state == TaskState::Queued).map(|task| task.index);
    let mut found = BTreeMap::new();
    for task in queued.take(MAX_LISTED) {
        found.extend(run.slot_wait(task).await?.map(|wait| (task, wait)));
    }
    Ok(found)
}

/// The queues that workers serve, if a task waits for a worker to lease it.
async fn served(run: &RunReader, graph: &Graph, tasks: &[Task]) -> Result<Option<ServedQueues>, Problem> {
    let is_offered = |task: &Task| {
        task.state == TaskState::Dispatched
            && graph.has(task.index, task.child)
            && graph.spec_at(task.index, task.child).leased
    };
    match tasks.iter().any(is_offered) {
        true => Ok(Some(run.served_queues().await?)),
        false => Ok(None),
    }
}

/// The wanted events of a run, except those of the children of fan-outs other than `with`.
pub(crate) async fn read_events(
    run: &RunReader,
    with: Option<TaskIndex>,
    wanted: impl Fn(&Event) -> bool,
) -> Result<Vec<Event>, Problem> {
    let (mut events, mut from) = (Vec::new(), 0);
    loop {
        let page = run.own_events(with, from, MAX_EVENTS).await?;
        events.extend(page.items.into_iter().map(|(_, event)| event).filter(&wanted));
        let Some(last) = page.next else { return Ok(events) };
        from = last + 1;
    }
}

pub(crate) async fn get_explanation(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<RunId>,
    Query(query): Query<ExplainQuery>,
) -> Result<Json<Explanation>, Problem> {
    show(&api, &caller, id, &query).await.map(Json)
}
