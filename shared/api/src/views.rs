//! The shapes that callers rely on. More fields may be added; none is taken away or given another meaning.

use std::collections::BTreeMap;

use engine::Graph;
use model::{
    AttemptRecord, Event, EventKind, Failure, Fan, InputSpec, Instant, RunId, RunState, Task, TaskState,
    WorkerId, Workflow,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{RunRecord, TaskRecord, WorkflowRecord};

use crate::Links;

/// Where a thing can be had and looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LinksView {
    /// The thing itself, in the API.
    #[serde(rename = "self")]
    pub this: String,
    /// Its page.
    pub console: String,
    /// Its log.
    pub logs: String,
    /// Its trace.
    pub trace: String,
}

/// A run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunView {
    /// Its id.
    pub id: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// The version's number within the workflow.
    pub version: i32,
    /// Whose it is.
    pub tenant: i32,
    /// Where it stands.
    pub state: RunState,
    /// What caused it.
    pub trigger: TriggerView,
    /// Its inputs, complete.
    pub inputs: Map<String, Value>,
    /// Labels to find it by.
    pub labels: Map<String, Value>,
    /// The date it is about, where one was given.
    pub logical_date: Option<Instant>,
    /// When it was created.
    pub created_at: Instant,
    /// When its first task was given a place.
    pub started_at: Option<Instant>,
    /// When its last task ended.
    pub finished_at: Option<Instant>,
    /// How many tasks are in each state that any is in.
    pub counts: BTreeMap<TaskState, u32>,
    /// Why it failed.
    pub error: Option<String>,
    /// Where it can be looked at.
    pub links: LinksView,
}

/// What caused a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TriggerView {
    /// `api`, `message`, …
    pub kind: String,
    /// Who.
    pub by: String,
}

impl RunView {
    /// A run as it stands at `now`.
    pub fn new(record: RunRecord, links: &Links, now: Instant) -> Self {
        let (run, facts) = (record.run, record.facts);
        Self {
            links: links.of_run(&run, now),
            counts: run.counts.present().collect(),
            id: run.id,
            workflow: run.workflow,
            version: record.version_number,
            tenant: run.tenant.0,
            state: run.state,
            trigger: TriggerView { kind: facts.trigger_kind, by: facts.trigger_by },
            inputs: facts.inputs,
            labels: facts.labels,
            logical_date: facts.logical_date,
            created_at: run.created_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
            error: run.error,
        }
    }
}

/// A task of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TaskView {
    /// Its name.
    pub name: String,
    /// The task type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it stands.
    pub state: TaskState,
    /// The current attempt; 0 before the first.
    pub attempt: u32,
    /// So many attempts are allowed.
    pub max_attempts: u32,
    /// The lane that executes it.
    pub queue: String,
    /// The task that it is a child of.
    pub parent: Option<String>,
    /// Which child of its parent it is.
    pub index: Option<u32>,
    /// How far its children have come, if it is a fan-out; each of them is had by `?parent=`.
    pub children: Option<ChildrenView>,
    /// When it was created.
    pub created_at: Instant,
    /// When its current attempt started.
    pub started_at: Option<Instant>,
    /// When it ended.
    pub finished_at: Option<Instant>,
    /// What it delivered.
    pub output: Option<Value>,
    /// What went wrong last.
    pub error: Option<ErrorView>,
    /// What it waits for.
    pub waiting: Option<WaitingView>,
    /// Where it can be looked at.
    pub links: LinksView,
}

/// How far the children of a fan-out have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChildrenView {
    /// How many there are.
    pub count: u32,
    /// How many have begun.
    pub begun: u32,
    /// How many succeeded.
    pub succeeded: u32,
    /// How many failed.
    pub failed: u32,
    /// How many were not needed any more.
    pub skipped: u32,
}

impl From<Fan> for ChildrenView {
    fn from(fan: Fan) -> Self {
        let model::task::Tally { succeeded, failed, skipped, .. } = fan.ended;
        Self { count: fan.total, begun: fan.released - skipped, succeeded, failed, skipped }
    }
}

/// What went wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ErrorView {
    /// What kind of trouble.
    pub class: String,
    /// In words.
    pub message: String,
    /// The exit code, where a process ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

impl From<Failure> for ErrorView {
    fn from(failure: Failure) -> Self {
        Self { class: failure.class.name().into(), message: failure.message, exit_code: failure.exit_code }
    }
}

/// What a task waits for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WaitingView {
    /// `upstream`, `queue` or `timer`.
    pub reason: String,
    /// Since when.
    pub since: Instant,
    /// Until when, where that is known.
    pub until: Option<Instant>,
}

impl WaitingView {
    fn new(record: &TaskRecord) -> Option<Self> {
        let reason = match record.task.state {
            TaskState::Pending => "upstream",
            TaskState::Queued | TaskState::Dispatched => "queue",
            TaskState::Sleeping | TaskState::UpForRetry => "timer",
            _ => return None,
        };
        let until = record.timer.as_ref().map(|timer| timer.wake_at);
        Some(Self { reason: reason.into(), since: record.task.since, until })
    }
}

impl TaskView {
    /// A task as it stands, with what its definition says of it.
    pub fn new(record: TaskRecord, graph: &Graph, created_at: Instant, links: LinksView) -> Self {
        let waiting = WaitingView::new(&record);
        let task = record.task;
        let spec = graph.spec_at(task.index, task.child);
        Self {
            name: graph.name_at(task.index, task.child),
            kind: spec.kind.clone(),
            state: task.state,
            attempt: task.attempt,
            max_attempts: spec.retry.max_retries.saturating_add(1),
            queue: spec.queue.clone(),
            parent: task.child.map(|child| graph.spec(child.of).name.clone()),
            index: task.child.map(|child| child.item),
            children: task.fan.map(ChildrenView::from),
            created_at,
            started_at: task.started_at,
            finished_at: task.finished_at,
            output: record.output,
            error: task.failure.map(ErrorView::from),
            waiting,
            links,
        }
    }
}

/// One attempt at a task.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AttemptView {
    /// Its number, from 1.
    pub attempt: u32,
    /// Where it stands, or how it ended.
    pub state: TaskState,
    /// Who holds it or held it.
    pub worker: Option<WorkerId>,
    /// When a worker took it.
    pub started_at: Option<Instant>,
    /// When it ended.
    pub finished_at: Option<Instant>,
    /// What went wrong.
    pub error: Option<ErrorView>,
    /// What was decided about another try, in words.
    pub decision: Option<String>,
}

impl From<AttemptRecord> for AttemptView {
    fn from(record: AttemptRecord) -> Self {
        Self {
            attempt: record.attempt,
            state: record.state,
            worker: record.worker,
            started_at: record.started_at,
            finished_at: Some(record.finished_at),
            error: record.failure.map(ErrorView::from),
            decision: Some(record.decision).filter(|decision| !decision.is_empty()),
        }
    }
}

impl From<Task> for AttemptView {
    /// The attempt in hand, which is in the task's own row.
    fn from(task: Task) -> Self {
        Self {
            attempt: task.attempt,
            state: task.state,
            worker: task.worker,
            started_at: task.started_at,
            finished_at: task.finished_at,
            error: task.failure.map(ErrorView::from),
            decision: None,
        }
    }
}

/// One event of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EventView {
    /// Its number within the run, from 0.
    pub seq: i64,
    /// When it happened.
    pub at: Instant,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// The name of the task it happened to.
    pub task: Option<String>,
    /// The attempt, where one is meant.
    pub attempt: Option<u32>,
    /// Who caused it; none for the engine itself.
    pub actor: Option<String>,
    /// What else is worth knowing.
    pub data: Value,
}

impl EventView {
    /// An event of a run of this graph.
    pub fn new(seq: i64, event: Event, graph: &Graph) -> Self {
        let named = |index| graph.has(index, event.child).then(|| graph.name_at(index, event.child));
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
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkflowView {
    /// Its name.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// For finding it.
    pub tags: Vec<String>,
    /// The active version's number.
    pub version: i32,
    /// The active version's content hash.
    pub hash: String,
    /// Whether it was taken out of use.
    pub archived: bool,
    /// Its typed inputs.
    pub inputs: Vec<InputSpec>,
    /// How many tasks it has.
    pub tasks: usize,
    /// When it was first registered.
    pub created_at: Instant,
    /// When it last changed.
    pub updated_at: Instant,
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
        }
    }
}

/// A workflow in full.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkflowDetail {
    /// What a list says of it.
    #[serde(flatten)]
    pub summary: WorkflowView,
    /// The definition, every reference resolved.
    pub definition: Workflow,
    /// The text it was written as.
    pub source: String,
    /// Its newest runs, newest first.
    pub recent_runs: Vec<RunView>,
}

/// What became of a definition that was registered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RegisteredView {
    /// The workflow's name.
    pub name: String,
    /// The version that is active now.
    pub version: i32,
    /// Whether it was made by this request.
    pub new: bool,
    /// Whether it became active by this request: a new one, an older one, or one that was archived.
    pub changed: bool,
}
