//! What is known about a run, and the questions that explanations ask of it.

use std::collections::{BTreeMap, BTreeSet};

use engine::Graph;
use model::{Event, EventKind, Failure, Instant, Run, Task, TaskIndex, TaskState};
use serde_json::{Value, json};

use super::{LISTED, words};

/// A run as its rows and events tell it at one instant.
pub struct Story<'a> {
    pub(super) graph: &'a Graph,
    pub(super) run: &'a Run,
    pub(super) now: Instant,
    pub(super) tasks: BTreeMap<TaskIndex, Task>,
    events: BTreeMap<TaskIndex, Vec<Event>>,
}

impl<'a> Story<'a> {
    /// The story of a run that has these tasks and to which these things happened, in order.
    pub fn new(graph: &'a Graph, run: &'a Run, tasks: Vec<Task>, events: Vec<Event>, now: Instant) -> Self {
        let known = tasks.into_iter().filter(|task| task.index.0 < graph.len());
        let tasks = known.map(|task| (task.index, task)).collect();
        let mut by_task: BTreeMap<TaskIndex, Vec<Event>> = BTreeMap::new();
        for event in events {
            if let Some(task) = event.task {
                by_task.entry(task).or_default().push(event);
            }
        }
        Self { graph, run, now, tasks, events: by_task }
    }

    /// Whether an event says why something is as it is.
    pub fn is_telling(event: &Event) -> bool {
        let when_only = [EventKind::TaskDispatched, EventKind::TaskRedispatched, EventKind::TaskStarted];
        event.task.is_some() && !when_only.contains(&event.kind)
    }

    pub(super) fn name(&self, task: TaskIndex) -> &'a str {
        &self.graph.spec(task).name
    }

    pub(super) fn state(&self, task: TaskIndex) -> TaskState {
        self.tasks.get(&task).map_or(TaskState::Pending, |task| task.state)
    }

    /// The last event of that kind that happened to a task.
    pub(super) fn last(&self, task: TaskIndex, kind: EventKind) -> Option<&Event> {
        self.events.get(&task)?.iter().rev().find(|event| event.kind == kind)
    }

    /// What the last event of that kind says beside itself.
    pub(super) fn data(&self, task: TaskIndex, kind: EventKind) -> &Value {
        self.last(task, kind).map_or(&Value::Null, |event| &event.data)
    }

    /// The attempts at a task that failed, as events, oldest first.
    pub(super) fn failed_attempts(&self, task: TaskIndex) -> impl Iterator<Item = &Event> {
        let events = self.events.get(&task).into_iter().flatten();
        events.filter(|event| matches!(event.kind, EventKind::TaskRetrying | EventKind::TaskFailed))
    }

    /// The same, for programs.
    pub(super) fn attempts(&self, task: TaskIndex) -> Value {
        let attempts = self.failed_attempts(task).map(|event| {
            let Event { at, attempt, data, .. } = event;
            let (class, message, decision) = (&data["class"], &data["message"], &data["reason"]);
            json!({"attempt": attempt, "at": at, "class": class, "message": message, "decision": decision})
        });
        attempts.collect()
    }

    /// How many attempts a task may take, as far as its definition says.
    pub(super) fn allowed_attempts(&self, task: TaskIndex) -> u32 {
        self.graph.spec(task).retry.max_retries.saturating_add(1)
    }

    /// The names of tasks, for a sentence.
    pub(super) fn names(&self, tasks: &[TaskIndex]) -> String {
        words::list(tasks.iter().map(|task| format!("`{}`", self.name(*task))))
    }

    /// The names of tasks and how they stand, for a sentence.
    pub(super) fn names_and_states(&self, tasks: &[TaskIndex]) -> String {
        let item = |task: &TaskIndex| format!("`{}` ({})", self.name(*task), words::state(self.state(*task)));
        words::list(tasks.iter().map(item))
    }

    /// The same, for programs.
    pub(super) fn standing(&self, tasks: impl IntoIterator<Item = TaskIndex>) -> Value {
        let item = |task: TaskIndex| json!({"task": self.name(task), "state": self.state(task)});
        tasks.into_iter().take(LISTED).map(item).collect()
    }

    /// What a task said when it failed.
    pub(super) fn failure(&self, task: TaskIndex) -> Option<&Failure> {
        self.tasks.get(&task)?.failure.as_ref()
    }

    /// The tasks that stand so, in the order in which they were written.
    pub(super) fn in_state(&self, wanted: impl Fn(TaskState) -> bool) -> Vec<TaskIndex> {
        self.tasks.values().filter(|task| wanted(task.state)).map(|task| task.index).collect()
    }

    /// Of the failed tasks that kept one from running, the one that failed first.
    pub(super) fn first_failed_above(&self, task: TaskIndex) -> Option<TaskIndex> {
        let above = |task| self.graph.parents(task).iter().copied();
        let bad = |state| matches!(state, TaskState::Failed | TaskState::UpstreamFailed);
        let reached = self.walk(task, above, bad);
        let failed = reached.into_iter().filter(|task| self.state(*task) == TaskState::Failed);
        failed.min_by_key(|task| (self.tasks[task].finished_at, *task))
    }

    /// The tasks that could not run because one failed.
    pub(super) fn kept_from_running_by(&self, task: TaskIndex) -> Vec<TaskIndex> {
        let below = |task| self.graph.dependants(task).iter().copied();
        self.walk(task, below, |state| state == TaskState::UpstreamFailed).into_iter().collect()
    }

    /// All tasks that can be reached over tasks in certain states, the first one left out.
    fn walk<I: Iterator<Item = TaskIndex>>(
        &self,
        from: TaskIndex,
        next: impl Fn(TaskIndex) -> I,
        passable: impl Fn(TaskState) -> bool,
    ) -> BTreeSet<TaskIndex> {
        let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(task) = open.pop() {
            let known = |task: &TaskIndex| self.tasks.contains_key(task) && passable(self.state(*task));
            open.extend(next(task).filter(known).filter(|task| reached.insert(*task)));
        }
        reached
    }
}
