//! A slice: the part of a run that a decision touches, and what the decision changed in it.
//!
//! It holds the run and the few tasks that a decision needs. The caller adds tasks as the slice asks
//! for them ([`Need`]), until it asks no more; then [`RunSlice::close`] gives back what to write and what to
//! announce. Completing a task needs that task and its direct dependants, however large the run is.

mod parts;

use std::collections::BTreeMap;

use chrono::TimeDelta;
use model::{
    BreakerGate, BreakerKey, Changes, Event, EventKind, Instant, Message, Run, RunState, Task, TaskEvent,
    TaskIndex, TaskKey, TaskSpec, TaskState,
};
use serde_json::Value;

use parts::{Draft, Messages, NextRecheck, OpenWork, SlotDemand, TimerChanges};

use crate::breaker::AttemptEnd;
use crate::{Graph, close, oversee, propagate};

/// How long the sweep leaves a run alone before it rechecks it: less than its tick, so that a recheck due just after
/// one tick is done by the next.
pub(crate) const RECHECK_AFTER: TimeDelta = TimeDelta::seconds(45);

/// The rows that a slice lacks to continue.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Need {
    /// Tasks whose rows must be added.
    pub tasks: Vec<TaskIndex>,
    /// Tasks settled here and not by a worker, whose rendered settings are wanted.
    pub directives: Vec<TaskIndex>,
}

impl Need {
    /// Whether the slice can be closed.
    pub fn is_nothing(&self) -> bool {
        self.tasks.is_empty() && self.directives.is_empty()
    }
}

/// A decision: rows for one transaction, and messages for after it.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision {
    /// The rows to write.
    pub changes: Changes,
    /// The messages to publish after the commit. They follow from the rows, so the sweep can publish them again.
    pub messages: Vec<Message>,
}

/// The part of a run that a decision touches.
#[derive(Debug)]
pub struct RunSlice<'g> {
    pub(crate) graph: &'g Graph,
    pub(crate) now: Instant,
    pub(crate) run: Run,
    /// The rows that were loaded or created.
    pub(crate) tasks: BTreeMap<TaskIndex, Task>,
    /// The branches that switches chose: in this slice, or earlier if all tasks are loaded.
    pub(crate) chosen: BTreeMap<TaskIndex, Vec<TaskIndex>>,
    /// Whether the run is ended from outside: then the end of a task says nothing about its work.
    pub(crate) abandoned: bool,
    pub(crate) open: OpenWork,
    pub(crate) slots: SlotDemand,
    pub(crate) draft: Draft,
    pub(crate) timers: TimerChanges,
    pub(crate) messages: Messages,
    pub(crate) recheck: NextRecheck,
    /// The ends of attempts that count for breakers.
    pub(crate) attempt_ends: Vec<AttemptEnd>,
    /// The breakers that are not closed, of those that may refuse a claim here.
    pub(crate) gates: BTreeMap<BreakerKey, BreakerGate>,
}

impl<'g> RunSlice<'g> {
    /// The slice of a run that exists; tasks are added as they are asked for.
    pub fn of(graph: &'g Graph, run: Run, now: Instant) -> Self {
        Self {
            graph,
            now,
            run,
            tasks: BTreeMap::new(),
            chosen: BTreeMap::new(),
            abandoned: false,
            open: OpenWork::default(),
            slots: SlotDemand::default(),
            draft: Draft::default(),
            timers: TimerChanges::default(),
            messages: Messages::default(),
            recheck: NextRecheck::default(),
            attempt_ends: Vec::new(),
            gates: BTreeMap::new(),
        }
    }

    /// The slice of a new run of the graph: all its tasks, those without parents already on their way, unless it waits
    /// for others in its concurrency group.
    pub fn create(graph: &'g Graph, run: Run, by: &str) -> Self {
        let now = run.created_at;
        let mut slice = Self::of(graph, run, now);
        slice.tasks = graph.indices().map(|index| (index, Task::pending(index, now))).collect();
        graph.indices().for_each(|index| slice.draft.create(index));
        slice.recheck.at(now + RECHECK_AFTER);
        slice.record(EventKind::RunCreated, None, Some(by), Value::Null);
        oversee::set_deadline(&mut slice);
        if !slice.run.waiting {
            graph.indices().for_each(|index| propagate::consider(&mut slice, index));
        }
        slice
    }

    /// Adds a task's row. One that is here already stays as it is here.
    pub fn add(&mut self, task: Task) {
        self.tasks.entry(task.index).or_insert(task);
    }

    /// Whether a task's row is here.
    pub fn knows(&self, task: TaskIndex) -> bool {
        self.tasks.contains_key(&task)
    }

    /// The graph of the run's version.
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// The run as it stands in this slice.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// A task's definition: its own, or for a child of a fan-out, what the fan-out says.
    pub fn spec(&self, task: TaskIndex) -> &'g TaskSpec {
        self.graph.spec_at(task, self.tasks.get(&task).and_then(|task| task.child))
    }

    /// A task's name: its own, or for a child of a fan-out, that of the fan-out with the child's position.
    pub fn name(&self, task: TaskIndex) -> String {
        self.graph.name_at(task, self.tasks.get(&task).and_then(|task| task.child))
    }

    /// A task's row, if it is here.
    pub fn task(&self, task: TaskIndex) -> Option<&Task> {
        self.tasks.get(&task)
    }

    /// A task and its direct dependants; only itself for one that is not of the definition.
    pub fn neighbourhood(&self, task: TaskIndex) -> impl Iterator<Item = TaskIndex> + use<'g> {
        let dependants = if task.0 < self.graph.len() { self.graph.dependants(task) } else { &[] };
        std::iter::once(task).chain(dependants.iter().copied())
    }

    /// The items of children that this slice creates, which no reader of the store can see yet.
    pub fn fresh_items(&self) -> &[(TaskIndex, Value)] {
        self.draft.items()
    }

    /// The outputs recorded in this slice, which no reader of the store can see yet.
    pub fn fresh_outputs(&self) -> &[(TaskIndex, Value)] {
        self.draft.outputs()
    }

    /// Whether a task's output in the store counts no longer.
    pub fn has_withdrawn(&self, task: TaskIndex) -> bool {
        self.draft.has_withdrawn(task)
    }

    /// Moves a task if the event fits, and counts and records it. A refused event changes nothing.
    pub(crate) fn apply(&mut self, index: TaskIndex, event: TaskEvent) -> Result<(), model::IllegalMove> {
        let task = self.tasks.get_mut(&index).expect("the task was asked for and added");
        let from = task.state;
        task.on(event, self.now)?;
        let to = task.state;
        self.run.counts.moved(from, to);
        self.draft.change(index);
        self.slots.moved(index, from);
        if matches!(from, TaskState::Sleeping | TaskState::UpForRetry) {
            self.timers.unset(Some(index));
            if self.spec(index).global.is_some() {
                self.draft.end_wait(index);
            }
            // While the task only waited, no recheck was due soon; now a message may get lost again. Never later than the
            // recheck that is set: a run that keeps waking must not keep postponing it.
            self.recheck.by(self.now + RECHECK_AFTER);
        }
        if to.is_final() || to == TaskState::UpForRetry {
            // It has moved on, whatever its directive would have been.
            self.open.directed(index);
        }
        if to.is_final() {
            close::finished(self, index, from, to);
        }
        Ok(())
    }

    /// Moves a task where the event cannot but fit, and records it.
    pub(crate) fn must(&mut self, index: TaskIndex, event: TaskEvent, kind: EventKind, data: Value) {
        self.apply(index, event).expect("the event fits the state");
        self.record(kind, Some(index), None, data);
    }

    /// Appends an event about the run or about the current attempt of a task.
    pub(crate) fn record(
        &mut self,
        kind: EventKind,
        task: Option<TaskIndex>,
        actor: Option<&str>,
        data: Value,
    ) {
        let row = task.map(|index| &self.tasks[&index]);
        let (attempt, child) = (row.map_or(0, |row| row.attempt), row.and_then(|row| row.child));
        let actor = actor.map(str::to_owned);
        self.draft.record(Event { at: self.now, kind, task, child, attempt, actor, data });
        self.run.events += 1;
    }

    /// The event that was recorded last, to say more about it.
    pub(crate) fn last_event(&mut self) -> &mut Event {
        self.draft.last_event()
    }

    /// One task of this run.
    pub fn key(&self, task: TaskIndex) -> TaskKey {
        TaskKey { run: self.run.id, task }
    }

    /// Whether nothing new may begin for now.
    pub(crate) fn is_paused(&self) -> bool {
        self.run.state == RunState::Paused
    }
}
