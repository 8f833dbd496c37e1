//! The facts about a run, and the questions that explanations ask of them.

use std::collections::{BTreeMap, BTreeSet};

use model::{Event, EventKind, Failure, Instant, Run, Task, TaskIndex, TaskSpec, TaskState};
use runtime::Graph;
use serde_json::{Value, json};

use super::other_runs::Around;
use super::{MAX_LISTED, fan_out, summary, to_explain, words};

/// The rows and events of a run at one instant.
pub struct Story<'a> {
    pub(super) graph: &'a Graph,
    pub(super) run: &'a Run,
    pub(super) now: Instant,
    pub(super) around: Around,
    /// The tasks of the definition, and of the children of fan-outs the one that is asked for.
    pub(super) tasks: BTreeMap<TaskIndex, Task>,
    /// By task; none is the run itself.
    events: BTreeMap<Option<TaskIndex>, Vec<Event>>,
}

impl<'a> Story<'a> {
    /// The story of a run with these tasks and events, oldest event first.
    pub fn new(graph: &'a Graph, run: &'a Run, tasks: Vec<Task>, events: Vec<Event>, now: Instant) -> Self {
        let known = tasks.into_iter().filter(|task| graph.has(task.index, task.child));
        let tasks = known.map(|task| (task.index, task)).collect();
        let mut by_task: BTreeMap<Option<TaskIndex>, Vec<Event>> = BTreeMap::new();
        for event in events {
            by_task.entry(event.task).or_default().push(event);
        }
        Self { graph, run, now, around: Around::default(), tasks, events: by_task }
    }

    /// Adds the other runs that it depends on.
    pub fn among(self, around: Around) -> Self {
        Self { around, ..self }
    }

    /// Adds failures of its tasks.
    pub fn with(mut self, failures: BTreeMap<TaskIndex, Failure>) -> Self {
        for (index, failure) in failures {
            if let Some(task) = self.tasks.get_mut(&index) {
                task.failure = Some(failure);
            }
        }
        self
    }

    /// The tasks to explain, one of them or the most important, and how many more there are.
    pub(super) fn to_explain(&self, only: Option<TaskIndex>) -> (Vec<TaskIndex>, usize) {
        match only {
            Some(task) => (vec![task], 0),
            None => to_explain(self.tasks.values()),
        }
    }

    /// The tasks whose failures the explanation names.
    pub(super) fn failed(&self, only: Option<TaskIndex>) -> Vec<TaskIndex> {
        let explained = self.to_explain(only).0;
        let stopped = explained.iter().filter(|task| self.state(**task) == TaskState::UpstreamFailed);
        let causes: BTreeSet<TaskIndex> = stopped.filter_map(|task| self.first_failed_above(*task)).collect();
        explained.into_iter().chain(causes).chain(summary::first_to_fail(self)).collect()
    }

    /// Whether an event explains a state.
    pub fn explains_state(event: &Event) -> bool {
        let when_only = [EventKind::TaskDispatched, EventKind::TaskRedispatched, EventKind::TaskStarted];
        !when_only.contains(&event.kind)
    }

    pub(super) fn name(&self, task: TaskIndex) -> String {
        self.graph.name_at(task, self.tasks.get(&task).and_then(|task| task.child))
    }

    pub(super) fn spec(&self, task: TaskIndex) -> &'a TaskSpec {
        self.graph.spec_at(task, self.tasks.get(&task).and_then(|task| task.child))
    }

    /// The tasks that one depends on; a child of a fan-out depends on none.
    pub(super) fn parents(&self, task: TaskIndex) -> impl Iterator<Item = TaskIndex> + use<'a> {
        let own = (task.0 < self.graph.len()).then(|| self.graph.parents(task));
        own.into_iter().flatten().copied()
    }

    fn dependants(&self, task: TaskIndex) -> impl Iterator<Item = TaskIndex> + use<'a> {
        let own = (task.0 < self.graph.len()).then(|| self.graph.dependants(task));
        own.into_iter().flatten().copied()
    }

    /// The last event of that kind that happened to the run itself.
    pub(super) fn last_of_run(&self, kind: EventKind) -> Option<&Event> {
        self.of_run(kind).last()
    }

    /// The event by which the run timed out.
    pub(super) fn timeout_event(&self) -> Option<&Event> {
        let before = |event: &&Event| self.run.started_at.is_some_and(|start| event.at < start);
        self.last_of_run(EventKind::RunTimedOut).filter(|event| !before(event))
    }

    pub(super) fn of_run(&self, kind: EventKind) -> impl Iterator<Item = &Event> {
        self.events.get(&None).into_iter().flatten().filter(move |event| event.kind == kind)
    }

    pub(super) fn state(&self, task: TaskIndex) -> TaskState {
        self.tasks.get(&task).map_or(TaskState::Pending, |task| task.state)
    }

    /// The last event of that kind that happened to a task.
    pub(super) fn last(&self, task: TaskIndex, kind: EventKind) -> Option<&Event> {
        self.events.get(&Some(task))?.iter().rev().find(|event| event.kind == kind)
    }

    /// The data of the last event of that kind.
    pub(super) fn data(&self, task: TaskIndex, kind: EventKind) -> &Value {
        self.last(task, kind).map_or(&Value::Null, |event| &event.data)
    }

    /// The attempts at a task that failed, as events, oldest first.
    pub(super) fn failed_attempts(&self, task: TaskIndex) -> impl Iterator<Item = &Event> {
        let events = self.events.get(&Some(task)).into_iter().flatten();
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

    pub(super) fn attempts_allowed(&self, task: &Task) -> u32 {
        runtime::attempts_allowed(self.spec(task.index), task)
    }

    /// The event by which a person put a task into its state.
    pub(super) fn done_to(&self, task: &Task, kind: EventKind) -> Option<&Event> {
        self.last(task.index, kind).filter(|event| event.at >= task.since)
    }

    /// An instant, for a sentence.
    pub(super) fn moment(&self, at: Instant) -> String {
        words::moment(at, self.now)
    }

    /// Who did something, when, and why.
    pub(super) fn actor(&self, event: &Event) -> String {
        let reason = event.data["reason"].as_str().map(|reason| format!(": {}", words::quote(reason)));
        let by = event.actor.as_deref().unwrap_or("Ebbflow");
        format!("{by} at {}{}", self.moment(event.at), reason.unwrap_or_default())
    }

    /// The names of tasks, for a sentence.
    pub(super) fn names(&self, tasks: &[TaskIndex]) -> String {
        words::list(tasks.iter().map(|task| format!("`{}`", self.name(*task))))
    }

    /// The names and states of tasks, for a sentence.
    pub(super) fn names_and_states(&self, tasks: &[TaskIndex]) -> String {
        let state = |task: &TaskIndex| {
            let fan = self.tasks.get(task).and_then(fan_out::progress);
            fan.unwrap_or_else(|| words::state(self.state(*task)))
        };
        words::list(tasks.iter().map(|task| format!("`{}` ({})", self.name(*task), state(task))))
    }

    /// The same, for programs.
    pub(super) fn states(&self, tasks: impl IntoIterator<Item = TaskIndex>) -> Value {
        let item = |task: TaskIndex| json!({"task": self.name(task), "state": self.state(task)});
        tasks.into_iter().take(MAX_LISTED).map(item).collect()
    }

    /// The failure of a task.
    pub(super) fn failure(&self, task: TaskIndex) -> Option<&Failure> {
        self.tasks.get(&task)?.failure.as_ref()
    }

    /// The tasks of the definition in certain states, in the order of the file.
    pub(super) fn in_state(&self, wanted: impl Fn(TaskState) -> bool) -> Vec<TaskIndex> {
        let own = self.tasks.values().filter(|task| task.child.is_none());
        own.filter(|task| wanted(task.state)).map(|task| task.index).collect()
    }

    /// Of the failed tasks that kept one from running, the one that failed first.
    pub(super) fn first_failed_above(&self, task: TaskIndex) -> Option<TaskIndex> {
        let above = |task| self.parents(task);
        let bad = |state| matches!(state, TaskState::Failed | TaskState::UpstreamFailed);
        let reached = self.walk(task, above, bad);
        let failed = reached.into_iter().filter(|task| self.state(*task) == TaskState::Failed);
        failed.min_by_key(|task| (self.tasks[task].finished_at, *task))
    }

    /// The tasks that could not run because one failed.
    pub(super) fn kept_from_running_by(&self, task: TaskIndex) -> Vec<TaskIndex> {
        let below = |task| self.dependants(task);
        let kept = self.walk(task, below, |state| state == TaskState::UpstreamFailed);
        // Tasks that had not started when the run timed out were stopped by the timeout.
        let end = self.timeout_event().map(|event| event.at);
        kept.into_iter().filter(|task| end.is_none_or(|end| self.tasks[task].since < end)).collect()
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
