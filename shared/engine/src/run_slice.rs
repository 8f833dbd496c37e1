//! A slice: the part of a run that a decision touches, and what the decision changed in it.
//!
//! It holds the run and the few tasks that a decision needs. The caller adds tasks as the slice asks
//! for them ([`Need`]), until it asks no more; then [`RunSlice::close`] gives back what to write and what to
//! announce. Completing a task needs that task and its direct dependants, however large the run is.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use model::change::Recheck;
use model::run::RunEvent;
use model::{
    AttemptRecord, Changes, Counts, Event, EventKind, Instant, Message, Parent, Run, RunId, RunState, Signal,
    Task, TaskEvent, TaskIndex, TaskKey, TaskSpec, TaskState, TenantId, Timer, TimerKind, VersionId,
};
use serde_json::Value;

use crate::Graph;

/// How long the sweep leaves a run alone before it looks whether something got lost: less than its tick, so that a
/// check-up due just after one tick is not left to the next but one.
pub(crate) const RECHECK_AFTER: TimeDelta = TimeDelta::seconds(45);

/// What a slice cannot go on without.
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

/// What a decision came to: rows for one transaction, and messages for after it.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision {
    /// What to write.
    pub changes: Changes,
    /// What to publish after the commit. Each follows from the rows written: the sweep can say it again.
    pub announcements: Vec<Message>,
}

/// A run to create.
#[derive(Clone, PartialEq, Debug)]
pub struct NewRun {
    /// The id it shall have.
    pub id: RunId,
    /// For whom.
    pub tenant: TenantId,
    /// Its version.
    pub version: VersionId,
    /// The task that starts it, if one does.
    pub parent: Option<Parent>,
    /// How many runs it is below the one that nobody's task or callback started.
    pub depth: u32,
    /// Its concurrency key, if its workflow has one.
    pub concurrency_group: Option<String>,
    /// Whether it must wait until others in its group have ended.
    pub waiting: bool,
    /// Added to the priority of each of its tasks.
    pub priority: i32,
}

/// The part of a run that a decision touches.
#[derive(Debug)]
pub struct RunSlice<'g> {
    pub(crate) graph: &'g Graph,
    pub(crate) now: Instant,
    pub(crate) run: Run,
    pub(crate) tasks: BTreeMap<TaskIndex, Task>,
    /// Tasks that ended here and whose dependants have not been told.
    pub(crate) ended: Vec<TaskIndex>,
    /// Those of them whose dependants' rows are not here yet.
    pub(crate) untold: Vec<TaskIndex>,
    /// Tasks settled here that wait for their directive.
    pub(crate) undirected: BTreeSet<TaskIndex>,
    /// Fan-outs whose next children may have their turn.
    pub(crate) turning: BTreeSet<TaskIndex>,
    /// Queued tasks that ask for a slot.
    pub(crate) asking: BTreeSet<TaskIndex>,
    /// Queued tasks that give up where they stand in line.
    pub(crate) leaving: BTreeSet<TaskIndex>,
    /// What the tasks that moved here were before.
    pub(crate) before: BTreeMap<TaskIndex, TaskState>,
    /// Whether the run is being ended from outside: what ends now says nothing about the work itself.
    pub(crate) abandoned: bool,
    pub(crate) changed: BTreeSet<TaskIndex>,
    /// Tasks that are created here.
    pub(crate) new_tasks: BTreeSet<TaskIndex>,
    pub(crate) items: Vec<(TaskIndex, Value)>,
    pub(crate) outputs: Vec<(TaskIndex, Value)>,
    /// Tasks whose earlier output counts no longer.
    pub(crate) withdrawn: BTreeSet<TaskIndex>,
    pub(crate) attempts: Vec<AttemptRecord>,
    /// The branches that switches chose, here or, where all tasks are looked at, before.
    pub(crate) chosen: BTreeMap<TaskIndex, Vec<TaskIndex>>,
    pub(crate) kept_signals: Vec<Signal>,
    pub(crate) taken_signals: Vec<String>,
    pub(crate) events: Vec<Event>,
    pub(crate) timers: BTreeMap<(Option<TaskIndex>, TimerKind), Timer>,
    pub(crate) unset_timers: BTreeSet<Option<TaskIndex>>,
    pub(crate) shares_ended: Vec<(TaskIndex, bool)>,
    pub(crate) waits_over: Vec<TaskIndex>,
    pub(crate) outbox: Vec<Message>,
    pub(crate) announcements: Vec<Message>,
    pub(crate) recheck: Recheck,
    /// How old an unanswered message must be to count as lost, for a recheck.
    pub(crate) patience: TimeDelta,
}

impl<'g> RunSlice<'g> {
    /// The slice of a run that exists; tasks are added as they are asked for.
    pub fn of(graph: &'g Graph, run: Run, now: Instant) -> Self {
        Self {
            graph,
            now,
            run,
            tasks: BTreeMap::new(),
            ended: Vec::new(),
            untold: Vec::new(),
            undirected: BTreeSet::new(),
            turning: BTreeSet::new(),
            asking: BTreeSet::new(),
            leaving: BTreeSet::new(),
            before: BTreeMap::new(),
            abandoned: false,
            changed: BTreeSet::new(),
            new_tasks: BTreeSet::new(),
            items: Vec::new(),
            outputs: Vec::new(),
            withdrawn: BTreeSet::new(),
            attempts: Vec::new(),
            chosen: BTreeMap::new(),
            kept_signals: Vec::new(),
            taken_signals: Vec::new(),
            events: Vec::new(),
            timers: BTreeMap::new(),
            unset_timers: BTreeSet::new(),
            shares_ended: Vec::new(),
            waits_over: Vec::new(),
            outbox: Vec::new(),
            announcements: Vec::new(),
            recheck: Recheck::Keep,
            patience: TimeDelta::zero(),
        }
    }

    /// The slice of a run to create: all its tasks, those without parents already on their way, unless it
    /// is held.
    pub fn create(graph: &'g Graph, new_run: NewRun, by: &str, now: Instant) -> Self {
        let run = Run {
            id: new_run.id,
            tenant: new_run.tenant,
            workflow: graph.workflow().name.clone(),
            version: new_run.version,
            state: RunState::Queued,
            revision: 0,
            counts: Counts::all_pending(graph.len()),
            failures: 0,
            events: 0,
            created_at: now,
            started_at: None,
            finished_at: None,
            error: None,
            depth: new_run.depth,
            parent: new_run.parent,
            concurrency_group: new_run.concurrency_group,
            waiting: new_run.waiting,
            priority: new_run.priority,
        };
        let mut slice = Self::of(graph, run, now);
        slice.tasks = graph.indices().map(|index| (index, Task::pending(index, now))).collect();
        slice.new_tasks = graph.indices().collect();
        slice.recheck = Recheck::At(now + RECHECK_AFTER);
        slice.record(EventKind::RunCreated, None, Some(by), Value::Null);
        slice.set_deadline();
        if !slice.run.waiting {
            graph.indices().for_each(|index| slice.consider(index));
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

    /// The run's graph.
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

    /// A task's name: its own, or for a child of a fan-out, the fan-out's with its slot.
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
        &self.items
    }

    /// The outputs recorded in this slice, which no reader of the store can see yet.
    pub fn fresh_outputs(&self) -> &[(TaskIndex, Value)] {
        &self.outputs
    }

    /// Whether a task's output in the store counts no longer.
    pub fn has_withdrawn(&self, task: TaskIndex) -> bool {
        self.withdrawn.contains(&task)
    }

    /// Moves a task if the event fits, and counts and records it. A refused event changes nothing.
    pub(crate) fn apply(&mut self, index: TaskIndex, event: TaskEvent) -> Result<(), model::IllegalMove> {
        let task = self.tasks.get_mut(&index).expect("the task was asked for and added");
        let from = task.state;
        task.on(event, self.now)?;
        let to = task.state;
        self.run.counts.moved(from, to);
        self.changed.insert(index);
        self.before.entry(index).or_insert(from);
        self.asking.remove(&index);
        if matches!(from, TaskState::Sleeping | TaskState::UpForRetry) {
            self.unset_timers(Some(index));
            if self.spec(index).global.is_some() {
                self.waits_over.push(index);
            }
            // While it only waited, nobody was to look soon; now something may get lost again. Never later than
            // was set before: a run that keeps waking must not keep putting its check-up off.
            self.recheck = Recheck::By(self.now + RECHECK_AFTER);
        }
        if to.is_final() || to == TaskState::UpForRetry {
            // Whatever it was about to be told, it has moved on.
            self.undirected.remove(&index);
        }
        if to.is_final() {
            self.finished(index, from, to);
        }
        Ok(())
    }

    /// Moves a task where the event cannot but fit, and records it.
    pub(crate) fn must(&mut self, index: TaskIndex, event: TaskEvent, kind: EventKind, data: Value) {
        self.apply(index, event).expect("the state was looked at just before");
        self.record(kind, Some(index), None, data);
    }

    /// Sets a timer.
    pub(crate) fn set_timer(&mut self, timer: Timer) {
        self.timers.insert((timer.task, timer.kind), timer);
    }

    /// Unsets whatever timers a task or the run itself has.
    pub(crate) fn unset_timers(&mut self, of: Option<TaskIndex>) {
        self.unset_timers.insert(of);
        self.timers.retain(|(task, _), _| *task != of);
    }

    /// Sets the timer of the run's deadline, if that is still to come. Not when it starts: by whose clock it has passed may
    /// not be who starts it.
    pub(crate) fn set_deadline(&mut self) {
        let seconds = self.graph.workflow().deadline_seconds;
        self.set_run_timer(TimerKind::Deadline, Some(self.run.created_at), seconds);
    }

    /// Sets the timer of the run's time-out, if it has started and that is still to come.
    pub(crate) fn set_timeout(&mut self) {
        self.set_run_timer(TimerKind::Timeout, self.run.started_at, self.graph.workflow().timeout_seconds);
    }

    fn set_run_timer(&mut self, kind: TimerKind, from: Option<Instant>, seconds: Option<u32>) {
        let (Some(from), Some(seconds)) = (from, seconds) else { return };
        let wake_at = from + TimeDelta::seconds(seconds.into());
        if wake_at > self.now {
            self.set_timer(Timer { task: None, attempt: 0, kind, wake_at });
        }
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
        self.events.push(Event { at: self.now, kind, task, child, attempt, actor, data });
        self.run.events += 1;
    }

    /// The event that was recorded last, to say more about it.
    pub(crate) fn last_event(&mut self) -> &mut Event {
        self.events.last_mut().expect("an event was recorded")
    }

    /// One task of this run.
    pub fn key(&self, task: TaskIndex) -> TaskKey {
        TaskKey { run: self.run.id, task }
    }

    /// The directive was given.
    pub(crate) fn directed(&mut self, index: TaskIndex) {
        self.undirected.remove(&index);
    }

    /// Whether everything that follows from what happened here so far has been seen to.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.ended.is_empty()
            && self.undirected.is_empty()
            && self.turning.is_empty()
            && self.asking.is_empty()
    }

    /// Whether nothing new may begin for now.
    pub(crate) fn is_paused(&self) -> bool {
        self.run.state == RunState::Paused
    }

    /// Leaves undone what would follow from what happened here so far: everything has ended.
    pub(crate) fn drop_the_rest(&mut self) {
        self.ended.clear();
        self.undirected.clear();
        self.turning.clear();
        self.asking.clear();
    }

    pub(crate) fn start_run(&mut self) {
        if let Some(state) = self.run.state.on(RunEvent::Started) {
            self.run.state = state;
            self.run.started_at = Some(self.now);
            self.record(EventKind::RunStarted, None, None, Value::Null);
            self.set_timeout();
        } else if let Some(state) = self.run.state.on(RunEvent::Moved) {
            self.run.state = state;
        }
    }

    /// Says that the run cannot go on although it has not ended: a defect, for people to look at.
    pub(crate) fn stall(&mut self) {
        if let Some(state) = self.run.state.on(RunEvent::Stalled) {
            self.run.state = state;
            self.record(EventKind::RunStalled, None, None, Value::Null);
        }
    }
}
