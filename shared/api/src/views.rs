//! The shapes that callers rely on. More fields may be added; none is taken away or given another meaning.

mod progress;
mod tasks;
mod workers;

use std::collections::BTreeMap;

use model::{Event, EventKind, InputSpec, Instant, Run, RunId, RunState, TaskState, Workflow};
use read::{Excerpt, RunRecord, Starter, WorkflowRecord};
use runtime::Graph;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Links;
use crate::schedules::{NextView, PauseView};
use crate::workflows::StatisticsView;

pub use progress::{MetricView, PointView, ProgressView};
pub use tasks::{AttemptView, ChildrenView, ErrorView, OtherRunView, TaskView, WaitingView};
pub use workers::{BreakerView, ClaimedView, QueueWorkersView, WorkerState, WorkerView};

/// Links to a resource and its pages.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LinksView {
    /// The resource itself, in the API.
    #[serde(rename = "self")]
    pub this: String,
    /// Its page in the console.
    pub console: String,
    /// Its entries in the logging service.
    pub logs: String,
    /// Its trace in the tracing service.
    pub trace: String,
}

/// The beginning of a value that is too long for a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PreviewView {
    /// The length of the whole value, in bytes of JSON.
    pub bytes: u64,
    /// How its JSON begins.
    pub text: String,
    /// The path of the resource that has the whole value.
    pub link: String,
}

impl PreviewView {
    /// An excerpt of a value that is read in full at `link`.
    pub(crate) fn new(excerpt: Excerpt, link: String) -> Self {
        Self { bytes: excerpt.bytes, text: excerpt.text, link }
    }
}

/// Why a request was refused.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProblemView {
    /// A stable code of the error, for programs.
    pub error_code: String,
    /// The same for people.
    pub message: String,
    /// Additional details about the error.
    pub details: Value,
    /// Identifies this response in the log.
    pub request_id: String,
    /// When it was answered.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub timestamp: Instant,
}

/// A run of a workflow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunView {
    /// The id of the run.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub id: RunId,
    /// The name of its workflow.
    pub workflow: String,
    /// The version's number within the workflow.
    pub version: i32,
    /// The id of its tenant.
    pub tenant: i32,
    /// The current state of the run.
    #[schemars(with = "crate::openapi::shapes::RunStates")]
    pub state: RunState,
    /// The trigger that started it.
    pub trigger: TriggerView,
    /// Its inputs, defaults included. In a list, inputs of more than 4 KiB are empty, and `inputs_preview` stands for them.
    pub inputs: Map<String, Value>,
    /// The beginning of inputs that are too long for a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs_preview: Option<PreviewView>,
    /// Labels to find it by.
    pub labels: Map<String, Value>,
    /// The date it is about, where one was given.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub logical_date: Option<Instant>,
    /// The schedule that it belongs to, if one started it.
    pub schedule: Option<String>,
    /// The start of its data interval, if a schedule started it.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub data_interval_start: Option<Instant>,
    /// The end of its data interval, if a schedule started it.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub data_interval_end: Option<Instant>,
    /// When it was created.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub created_at: Instant,
    /// When its first task got a slot.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub started_at: Option<Instant>,
    /// When its last task ended.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub finished_at: Option<Instant>,
    /// How many tasks are in each state that any is in, children of fan-outs included.
    #[schemars(with = "BTreeMap<String, u32>")]
    pub counts: BTreeMap<TaskState, u32>,
    /// The task that started it, if one did.
    pub parent: Option<ParentView>,
    /// Runs of the same workflow and key share a limit; empty where all runs of the workflow do, none where there is no
    /// limit.
    pub concurrency_key: Option<String>,
    /// Why it waits, if its concurrency group has no room.
    pub waiting: Option<TurnView>,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// Links to pages and logs.
    pub links: LinksView,
}

/// The trigger that started a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TriggerView {
    /// The kind of trigger: `api`, `message`, …
    pub kind: String,
    /// The account, service token, schedule or task that started it.
    pub by: String,
}

/// The task that started a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ParentView {
    /// The run that the task is of.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub run: RunId,
    /// The task's name; null if its run was deleted.
    pub task: Option<String>,
    /// Its attempt: another one starts another run.
    pub attempt: u32,
    /// Whether it waits for the run to end.
    pub waits: bool,
    /// That run, in the API.
    pub link: String,
}

impl ParentView {
    fn new(run: &Run, starter: Option<Starter>, graph: Option<&Graph>) -> Option<Self> {
        let parent = run.parent?;
        let named = |(starter, graph): (Starter, &Graph)| {
            let index = parent.key.task;
            graph.has(index, starter.child).then(|| graph.name_at(index, starter.child))
        };
        Some(Self {
            run: parent.key.run,
            task: starter.zip(graph).and_then(named),
            attempt: parent.attempt,
            waits: parent.waits,
            link: Links::run_path(parent.key.run),
        })
    }
}

/// The concurrency group that a run waits for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TurnView {
    /// The reason: always `concurrency`.
    pub reason: String,
    /// Since when it waits.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub since: Instant,
    /// The runs in progress with the same key. Only for a single run, not in lists.
    #[schemars(with = "Option<Vec<crate::openapi::shapes::Id>>")]
    pub runs: Option<Vec<RunId>>,
    /// How many wait ahead of it. Only for a single run, not in lists.
    pub ahead: Option<usize>,
}

impl TurnView {
    fn new(run: &Run) -> Option<Self> {
        let held = run.waiting && !run.state.is_final();
        held.then(|| Self { reason: "concurrency".into(), since: run.created_at, runs: None, ahead: None })
    }
}

impl RunView {
    /// A run at `now`; `graph` is that of the run whose task started it.
    pub fn new(record: RunRecord, graph: Option<&Graph>, links: &Links, now: Instant) -> Self {
        let (run, facts) = (record.run, record.facts);
        Self {
            links: links.of_run(&run, now),
            parent: ParentView::new(&run, record.starter, graph),
            waiting: TurnView::new(&run),
            concurrency_key: run.concurrency_group,
            counts: run.counts.present().collect(),
            id: run.id,
            workflow: run.workflow,
            version: record.version_number,
            tenant: run.tenant.0,
            state: run.state,
            trigger: TriggerView { kind: facts.trigger_kind, by: facts.trigger_by },
            inputs: facts.inputs,
            inputs_preview: None,
            labels: facts.labels,
            logical_date: facts.logical_date,
            data_interval_start: facts.planned.as_ref().map(|planned| planned.interval.start),
            data_interval_end: facts.planned.as_ref().map(|planned| planned.interval.end),
            schedule: facts.planned.map(|planned| planned.schedule),
            created_at: run.created_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
            error: run.error,
        }
    }
}

/// One event of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct EventView {
    /// Its number within the run, from 0.
    pub seq: i64,
    /// When the event happened.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub at: Instant,
    /// The type of the event.
    #[serde(rename = "type")]
    #[schemars(with = "crate::openapi::shapes::Word")]
    pub kind: EventKind,
    /// The name of the task it happened to.
    pub task: Option<String>,
    /// The attempt it is about, if any.
    pub attempt: Option<u32>,
    /// Who caused it; none for the engine itself.
    pub actor: Option<String>,
    /// Additional details about the event.
    pub data: Value,
}

impl EventView {
    /// An event of a run of this graph, which has the names of its tasks.
    pub fn new(seq: i64, event: Event, graph: Option<&Graph>) -> Self {
        let named = |index| {
            let graph = graph.filter(|graph| graph.has(index, event.child))?;
            Some(graph.name_at(index, event.child))
        };
        Self {
            seq,
            at: event.at,
            kind: event.kind,
            task: event.task.and_then(named),
            attempt: Some(event.attempt).filter(|attempt| *attempt > 0),
            actor: event.actor,
            data: event.data,
        }
    }
}

/// A workflow in a list.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkflowView {
    /// The name of the workflow.
    pub name: String,
    /// A description for people.
    pub description: Option<String>,
    /// Tags to find it by.
    pub tags: Vec<String>,
    /// The active version's number.
    pub version: i32,
    /// The active version's content hash.
    pub hash: String,
    /// Whether it was taken out of use.
    pub archived: bool,
    /// The inputs of its runs, with their types.
    #[schemars(with = "Vec<crate::openapi::shapes::Input>")]
    pub inputs: Vec<InputSpec>,
    /// How many tasks it has.
    pub tasks: usize,
    /// When it was first registered.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub created_at: Instant,
    /// When it last changed.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub updated_at: Instant,
    /// Who paused it, if it is paused.
    #[serde(default)]
    pub pause: Option<PauseView>,
}

impl From<&WorkflowRecord> for WorkflowView {
    fn from(record: &WorkflowRecord) -> Self {
        let workflow = &record.version.workflow;
        Self {
            name: record.name.clone(),
            description: workflow.description.clone(),
            tags: workflow.tags.clone(),
            version: record.version.number,
            hash: record.version.hash.clone(),
            archived: record.archived,
            inputs: workflow.inputs.clone(),
            tasks: workflow.tasks.len(),
            created_at: record.created_at,
            updated_at: record.updated_at,
            pause: record.pause.clone().map(PauseView::from),
        }
    }
}

/// A workflow in full.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkflowDetail {
    /// The fields of a list item.
    #[serde(flatten)]
    pub summary: WorkflowView,
    /// The definition, every reference resolved.
    #[schemars(with = "crate::openapi::shapes::Definition")]
    pub definition: Workflow,
    /// The text it was written as.
    pub source: String,
    /// Its newest runs, newest first.
    pub recent_runs: Vec<RunView>,
    /// Statistics of its last runs.
    #[serde(default)]
    pub statistics: StatisticsView,
    /// The next instants of its schedules, in order; none while it is paused.
    #[serde(default)]
    pub next: Vec<NextView>,
}

/// A workflow after the registration of its definition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RegisteredView {
    /// The name of the workflow.
    pub name: String,
    /// The version that is active now.
    pub version: i32,
    /// Whether this request created it.
    pub new: bool,
    /// Whether it became active by this request: a new one, an older one, or one that was archived.
    pub changed: bool,
}
