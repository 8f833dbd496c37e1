//! A scene: the part of a run that a decision touches, and what the decision changed in it.
//!
//! It holds the run and the few tasks that are looked at. Whoever owns the rows adds tasks as the scene asks
//! for them ([`Need`]), until it asks no more; then [`Scene::close`] gives back what to write and what to
//! announce. Completing a task needs that task and its direct dependants, however large the run is.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use model::change::Checkup;
use model::message::TaskDispatched;
use model::run::RunEvent;
use model::{
    AttemptRecord, Changes, Counts, Event, EventKind, Instant, Message, Run, RunId, RunState, Signal, Task,
    TaskEvent, TaskIndex, TaskKey, TaskState, TenantId, Timer, VersionId,
};
use serde_json::{Value, json};

use crate::Graph;
use crate::rule::{self, Verdict};

/// How long the sweep leaves a run alone before it looks whether something got lost: less than its tick, so that a
/// check-up due just after one tick is not left to the next but one.
pub(crate) const CHECKUP_AFTER: TimeDelta = TimeDelta::seconds(45);

/// What a scene cannot go on without.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Need {
    /// Tasks whose rows must be added.
    pub tasks: Vec<TaskIndex>,
    /// Tasks settled here and not by a worker, whose rendered settings are wanted.
    pub directives: Vec<TaskIndex>,
}

impl Need {
    /// Whether the scene can be closed.
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

/// The part of a run that a decision touches.
#[derive(Debug)]
pub struct Scene<'g> {
    pub(crate) graph: &'g Graph,
    pub(crate) now: Instant,
    pub(crate) run: Run,
    pub(crate) tasks: BTreeMap<TaskIndex, Task>,
    /// Tasks that ended here and whose dependants have not been told.
    pub(crate) ended: Vec<TaskIndex>,
    /// Tasks settled here that wait for their directive.
    pub(crate) undirected: BTreeSet<TaskIndex>,
    pub(crate) changed: BTreeSet<TaskIndex>,
    pub(crate) outputs: Vec<(TaskIndex, Value)>,
    pub(crate) attempts: Vec<AttemptRecord>,
    /// The branches that switches chose here.
    pub(crate) chosen: BTreeMap<TaskIndex, Vec<TaskIndex>>,
    pub(crate) kept_signals: Vec<Signal>,
    pub(crate) taken_signals: Vec<String>,
    pub(crate) events: Vec<Event>,
    pub(crate) timers: BTreeMap<TaskIndex, Timer>,
    pub(crate) unset_timers: BTreeSet<TaskIndex>,
    pub(crate) outbox: Vec<Message>,
    pub(crate) announcements: Vec<Message>,
    pub(crate) checkup: Checkup,
}

impl<'g> Scene<'g> {
    /// The scene of a run that exists; tasks are added as they are asked for.
    pub fn of(graph: &'g Graph, run: Run, now: Instant) -> Self {
        Self {
            graph,
            now,
            run,
            tasks: BTreeMap::new(),
            ended: Vec::new(),
            undirected: BTreeSet::new(),
            changed: BTreeSet::new(),
            outputs: Vec::new(),
            attempts: Vec::new(),
            chosen: BTreeMap::new(),
            kept_signals: Vec::new(),
            taken_signals: Vec::new(),
            events: Vec::new(),
            timers: BTreeMap::new(),
            unset_timers: BTreeSet::new(),
            outbox: Vec::new(),
            announcements: Vec::new(),
            checkup: Checkup::Keep,
        }
    }

    /// The scene of a run that comes into being: all its tasks, those without parents already on their way.
    pub fn birth(
        graph: &'g Graph,
        id: RunId,
        tenant: TenantId,
        version: VersionId,
        by: &str,
        now: Instant,
    ) -> Self {
        let run = Run {
            id,
            tenant,
            workflow: graph.workflow().name.clone(),
            version,
            state: RunState::Queued,
            revision: 0,
            counts: Counts::all_pending(graph.len()),
            failures: 0,
            events: 0,
            created_at: now,
            started_at: None,
            finished_at: None,
            error: None,
        };
        let mut scene = Self::of(graph, run, now);
        scene.tasks = graph.indices().map(|index| (index, Task::pending(index, now))).collect();
        scene.changed = graph.indices().collect();
        scene.checkup = Checkup::At(now + CHECKUP_AFTER);
        scene.record(EventKind::RunCreated, None, Some(by), Value::Null);
        graph.indices().for_each(|index| scene.consider(index));
        scene
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

    /// The run as it stands in this scene.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// A task and its direct dependants; nothing for a task that does not exist.
    pub fn neighbourhood(&self, task: TaskIndex) -> impl Iterator<Item = TaskIndex> + use<'g> {
        let dependants = if task.0 < self.graph.len() { self.graph.dependants(task) } else { &[] };
        std::iter::once(task).chain(dependants.iter().copied())
    }

    /// The outputs recorded in this scene, which no reader of the store can see yet.
    pub fn fresh_outputs(&self) -> &[(TaskIndex, Value)] {
        &self.outputs
    }

    /// Tells dependants of what ended, and they theirs, as far as the rows here reach. Says what is missing.
    pub fn settle(&mut self) -> Need {
        let mut missing = BTreeSet::new();
        let mut untold = Vec::new();
        while let Some(parent) = self.ended.pop() {
            let dependants = self.graph.dependants(parent);
            let wanted = dependants.iter().flat_map(|task| self.switches_of(*task).chain([*task]));
            let unknown: Vec<TaskIndex> = wanted.filter(|task| !self.knows(*task)).collect();
            if unknown.is_empty() {
                dependants.iter().for_each(|task| self.tell(*task, parent));
            } else {
                missing.extend(unknown);
                untold.push(parent);
            }
        }
        self.ended = untold;
        Need { tasks: missing.into_iter().collect(), directives: self.undirected.iter().copied().collect() }
    }

    /// Judges a pending task by what became of its parents so far.
    pub(crate) fn consider(&mut self, index: TaskIndex) {
        let task = &self.tasks[&index];
        let gated = self.switches_of(index).any(|switch| !self.has_chosen(switch));
        if task.state != TaskState::Pending || gated || self.undirected.contains(&index) {
            return;
        }
        let parents = self.graph.parents(index).len() as u32;
        match rule::judge(self.graph.spec(index).trigger_rule, parents, task.parents) {
            Verdict::Wait => {}
            Verdict::Go => self.ready(index),
            Verdict::Skip => self.must(index, TaskEvent::Skipped, EventKind::TaskSkipped, Value::Null),
            Verdict::UpstreamFailed => {
                self.must(index, TaskEvent::UpstreamFailed, EventKind::TaskUpstreamFailed, Value::Null)
            }
        }
    }

    /// Gives a queued task its place: its work message goes out after the commit.
    pub(crate) fn release(&mut self, index: TaskIndex) {
        let queue = self.graph.spec(index).queue.clone();
        self.must(index, TaskEvent::Released, EventKind::TaskDispatched, json!({"queue": queue}));
        self.announce(index);
    }

    /// Says (again) that a dispatched task's work is to be done.
    pub(crate) fn announce(&mut self, index: TaskIndex) {
        self.announcements.push(Message::TaskDispatched(TaskDispatched {
            key: self.key(index),
            tenant: self.run.tenant,
            attempt: self.tasks[&index].attempt,
            version: self.run.version,
            queue: self.graph.spec(index).queue.clone(),
        }));
    }

    /// Moves a task if the event fits, and counts and records it. A refused event changes nothing.
    pub(crate) fn apply(&mut self, index: TaskIndex, event: TaskEvent) -> Result<(), model::IllegalMove> {
        let task = self.tasks.get_mut(&index).expect("the task was asked for and added");
        let from = task.state;
        task.on(event, self.now)?;
        let to = task.state;
        self.run.counts.moved(from, to);
        self.changed.insert(index);
        if matches!(from, TaskState::Sleeping | TaskState::UpForRetry) {
            self.unset_timers.insert(index);
            // While it only waited, nobody was to look soon; now something may get lost again. Never later than
            // was set before: a run that keeps waking must not keep putting its check-up off.
            self.checkup = Checkup::By(self.now + CHECKUP_AFTER);
        }
        if to.is_final() {
            self.finished(index, to);
        }
        Ok(())
    }

    /// Moves a task where the event cannot but fit, and records it.
    pub(crate) fn must(&mut self, index: TaskIndex, event: TaskEvent, kind: EventKind, data: Value) {
        self.apply(index, event).expect("the state was looked at just before");
        self.record(kind, Some(index), None, data);
    }

    /// Sets a task's timer.
    pub(crate) fn set_timer(&mut self, timer: Timer) {
        self.unset_timers.remove(&timer.task);
        self.timers.insert(timer.task, timer);
    }

    /// Appends an event about the run or about the current attempt of a task.
    pub(crate) fn record(
        &mut self,
        kind: EventKind,
        task: Option<TaskIndex>,
        actor: Option<&str>,
        data: Value,
    ) {
        let attempt = task.map_or(0, |index| self.tasks[&index].attempt);
        let actor = actor.map(str::to_owned);
        self.events.push(Event { at: self.now, kind, task, attempt, actor, data });
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

    /// Whether no task waits for its directive.
    pub(crate) fn asks_nothing(&self) -> bool {
        self.undirected.is_empty()
    }

    /// The directive was given.
    pub(crate) fn directed(&mut self, index: TaskIndex) {
        self.undirected.remove(&index);
    }

    /// Does not tell dependants of what ended: they ended with it.
    pub(crate) fn forget_ended(&mut self) {
        self.ended.clear();
    }

    fn ready(&mut self, index: TaskIndex) {
        self.start_run();
        let spec = self.graph.spec(index);
        if spec.when.is_some() || crate::is_inside(&spec.kind) {
            self.undirected.insert(index);
        } else {
            self.apply(index, TaskEvent::Readied).expect("only pending tasks are readied");
            self.release(index);
        }
    }

    fn start_run(&mut self) {
        if let Some(state) = self.run.state.on(RunEvent::Started) {
            self.run.state = state;
            self.run.started_at = Some(self.now);
            self.record(EventKind::RunStarted, None, None, Value::Null);
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

    fn tell(&mut self, index: TaskIndex, parent: TaskIndex) {
        let passed_over = self.is_passed_over(parent, index);
        let state = if passed_over { TaskState::Skipped } else { self.tasks[&parent].state };
        let task = self.tasks.get_mut(&index).expect("only known dependants are told");
        task.parents.count(state);
        self.changed.insert(index);
        // Whatever its rule says of its other parents, a branch goes on only if its switch chose it.
        if passed_over && task.state == TaskState::Pending && self.has_one_switch(index) {
            let why = json!({"switch": self.graph.spec(parent).name});
            self.must(index, TaskEvent::Skipped, EventKind::TaskSkipped, why);
        } else {
            self.consider(index);
        }
    }

    /// Whether a parent is a switch that succeeded and chose other branches.
    fn is_passed_over(&self, parent: TaskIndex, index: TaskIndex) -> bool {
        let chosen = || self.chosen.get(&parent).is_some_and(|next| next.contains(&index));
        let succeeded = self.tasks[&parent].state == TaskState::Succeeded;
        succeeded && self.graph.is_branch(parent, index) && !chosen()
    }

    fn has_one_switch(&self, index: TaskIndex) -> bool {
        self.switches_of(index).count() == 1
    }

    /// The switches that name a task as one of their branches.
    fn switches_of(&self, index: TaskIndex) -> impl Iterator<Item = TaskIndex> + use<'g> {
        let graph = self.graph;
        graph.parents(index).iter().copied().filter(move |parent| graph.is_branch(*parent, index))
    }

    /// Whether a switch has ended and its branches know. One whose row is not here ended before.
    fn has_chosen(&self, switch: TaskIndex) -> bool {
        let ended = self.tasks.get(&switch).is_none_or(|task| task.state.is_final());
        ended && !self.ended.contains(&switch)
    }
}
