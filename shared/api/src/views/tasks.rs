//! Tasks of a run, and attempts at them.

use model::{
    AttemptRecord, Event, EventKind, Failure, Fan, Instant, RunId, Task, TaskKind, TaskState, WaitsFor,
    WorkerId,
};
use read::TaskRecord;
use runtime::Graph;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{LinksView, PreviewView, ProgressView};
use crate::Links;

/// A task of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskView {
    /// The name of the task.
    pub name: String,
    /// The type of the task.
    #[serde(rename = "type")]
    pub kind: String,
    /// The current state of the task.
    #[schemars(with = "crate::openapi::shapes::TaskStates")]
    pub state: TaskState,
    /// The current attempt; 0 before the first.
    pub attempt: u32,
    /// The attempts allowed in all, including those after a lost worker and those handed back.
    pub max_attempts: u32,
    /// The queue it is executed from.
    pub queue: String,
    /// The task that it is a child of.
    pub parent: Option<String>,
    /// Which child of its parent it is.
    pub index: Option<u32>,
    /// The progress of its children, if it is a fan-out. List them with `?parent=`.
    pub children: Option<ChildrenView>,
    /// When it was created.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub created_at: Instant,
    /// When its current attempt started.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub started_at: Option<Instant>,
    /// When the task ended; null until then.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub finished_at: Option<Instant>,
    /// The output. In a list, an output of more than 4 KiB is null, and `output_preview` stands for it.
    pub output: Option<Value>,
    /// The beginning of an output that is too long for a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_preview: Option<PreviewView>,
    /// The error of its last failed attempt.
    pub error: Option<ErrorView>,
    /// The reason why it waits.
    pub waiting: Option<WaitingView>,
    /// The progress that its current attempt reported, with the phase of the newest checkpoint.
    #[serde(default)]
    pub progress: Option<ProgressView>,
    /// Links to pages and logs.
    pub links: LinksView,
}

/// How far the children of a fan-out have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChildrenView {
    /// How many there are.
    pub count: u32,
    /// How many have begun.
    pub begun: u32,
    /// How many have ended.
    pub ended: u32,
    /// How many of these succeeded.
    pub succeeded: u32,
    /// How many of these failed.
    pub failed: u32,
    /// How many of these were skipped.
    pub skipped: u32,
}

impl From<Fan> for ChildrenView {
    fn from(fan: Fan) -> Self {
        let model::task::Tally { done, succeeded, failed, skipped } = fan.ended;
        Self {
            count: fan.total,
            begun: fan.released.saturating_sub(skipped),
            ended: done,
            succeeded,
            failed,
            skipped,
        }
    }
}

/// Why an attempt or a task failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ErrorView {
    /// The error class, for programs.
    pub class: String,
    /// The error message for people.
    pub message: String,
    /// The exit code, where a process ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the process, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Details that the program added in its file `EBB_FAILURE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
}

impl From<Failure> for ErrorView {
    fn from(failure: Failure) -> Self {
        let Failure { class, message, exit_code, signal, detail, retry_after_seconds: _ } = failure;
        Self { class: class.name().into(), message, exit_code, signal, detail }
    }
}

/// The reason why a task waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WaitingView {
    /// `upstream`, `turn` (a child of a fan-out), `queue`, `breaker` (a circuit breaker), `timer`, `signal`, `approval`, `children` (a fan-out), `run`
    /// (one that it started) or `shared` (a task of another run that does the same work).
    pub reason: String,
    /// Since when it waits.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub since: Instant,
    /// Until when it waits, if that is known.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub until: Option<Instant>,
    /// The other run, where it waits for one.
    pub run: Option<OtherRunView>,
}

/// Another run, or a task of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OtherRunView {
    /// The id of the run.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub id: RunId,
    /// The name of the task, if it waits for one task of the run.
    pub task: Option<String>,
    /// The run or the task, in the API.
    pub link: String,
}

impl OtherRunView {
    /// A run, or a task of it.
    pub fn new(id: RunId, task: Option<String>) -> Self {
        let link = task.as_deref().map_or_else(|| Links::run_path(id), |task| Links::task_path(id, task));
        Self { id, task, link }
    }
}

impl WaitingView {
    fn new(record: &TaskRecord, kind: &TaskKind, run: Option<OtherRunView>) -> Option<Self> {
        let task = &record.task;
        let reason = match task.state {
            TaskState::Pending if task.child.is_some() => "turn",
            TaskState::Pending => "upstream",
            TaskState::Queued | TaskState::Dispatched => "queue",
            TaskState::Sleeping if record.shared_with.is_some() => "shared",
            TaskState::Sleeping => kind.waits_for().unwrap_or(WaitsFor::Timer).name(),
            TaskState::UpForRetry => "timer",
            _ => return None,
        };
        let until = record.timer.as_ref().map(|timer| timer.wake_at);
        Some(Self { reason: reason.into(), since: task.since, until, run })
    }
}

impl TaskView {
    /// A task with its definition's settings and the other run that it waits for, if it does.
    pub fn new(
        record: TaskRecord,
        graph: &Graph,
        created_at: Instant,
        elsewhere: Option<OtherRunView>,
        links: LinksView,
    ) -> Self {
        let spec = graph.spec_at(record.task.index, record.task.child);
        let waiting = WaitingView::new(&record, &spec.kind, elsewhere);
        let task = record.task;
        Self {
            name: graph.name_at(task.index, task.child),
            kind: spec.kind.to_string(),
            state: task.state,
            attempt: task.attempt,
            max_attempts: runtime::attempts_allowed(spec, &task),
            queue: spec.queue.clone(),
            parent: task.child.map(|child| graph.spec(child.of).name.clone()),
            index: task.child.map(|child| child.item),
            children: task.fan.map(ChildrenView::from),
            created_at,
            started_at: task.started_at,
            finished_at: task.finished_at,
            output: record.output,
            output_preview: None,
            error: task.failure.map(ErrorView::from),
            waiting,
            progress: None,
            links,
        }
    }
}

/// One attempt at a task.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AttemptView {
    /// Its number, from 1.
    pub attempt: u32,
    /// The current or final state.
    #[schemars(with = "crate::openapi::shapes::TaskStates")]
    pub state: TaskState,
    /// The worker that holds or held it.
    #[schemars(with = "Option<crate::openapi::shapes::Id>")]
    pub worker: Option<WorkerId>,
    /// When a worker claimed it.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub started_at: Option<Instant>,
    /// When it ended; null until then.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub finished_at: Option<Instant>,
    /// The error, if it failed.
    pub error: Option<ErrorView>,
    /// Why the task is retried or not, for people.
    pub decision: Option<String>,
    /// The delay before the next attempt in milliseconds, if one follows.
    #[serde(default)]
    pub delay_ms: Option<i64>,
    /// When the next attempt may begin, if one follows.
    #[serde(default)]
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub next_attempt_at: Option<Instant>,
    /// The progress that it reported.
    #[serde(default)]
    pub progress: Option<ProgressView>,
    /// Links to pages and logs.
    #[serde(default)]
    pub links: Option<LinksView>,
}

impl AttemptView {
    /// Adds what only the task's events have: a task's row keeps neither the worker nor the decision of its last attempt.
    pub(crate) fn complete(&mut self, events: &[Event]) {
        for event in events.iter().filter(|event| event.attempt == self.attempt) {
            let data = &event.data;
            match event.kind {
                EventKind::TaskStarted if self.worker.is_none() => {
                    self.worker = WorkerId::deserialize(&data["worker"]).ok();
                }
                EventKind::TaskFailed if self.decision.is_none() => {
                    self.decision = data["reason"].as_str().map(str::to_owned);
                }
                _ => {}
            }
        }
    }
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
            delay_ms: record.next_attempt_at.map(|next| (next - record.finished_at).num_milliseconds()),
            next_attempt_at: record.next_attempt_at,
            progress: None,
            links: None,
        }
    }
}

impl From<Task> for AttemptView {
    /// The current attempt, which is in the task's own row. There, `failure` may still be that of the attempt before.
    fn from(task: Task) -> Self {
        Self {
            attempt: task.attempt,
            state: task.state,
            worker: task.worker,
            started_at: task.started_at,
            finished_at: task.finished_at,
            error: task.failure.filter(|_| task.state == TaskState::Failed).map(ErrorView::from),
            decision: None,
            delay_ms: None,
            next_attempt_at: None,
            progress: None,
            links: None,
        }
    }
}
