//! A scene: the part of a run that a decision touches, and what the decision changed in it.
//!
//! It holds the run and the few tasks that are looked at. Whoever owns the rows adds tasks as the scene asks
//! for them ([`Need`]), until it asks no more; then [`Scene::close`] gives back what to write and what to
//! announce. Completing a task needs that task and its direct dependants, however large the run is.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use model::change::Checkup;
use model::message::{RunFinished, TaskDispatched, TaskFinished, TimerArmed};
use model::run::{End, RunEvent};
use model::{
    AttemptRecord, Changes, Counts, Event, EventKind, Instant, Message, Run, RunId, RunState, Task,
    TaskEvent, TaskIndex, TaskKey, TaskState, TenantId, Timer, VersionId,
};
use serde_json::{Value, json};

use crate::Graph;
use crate::rule::{self, Verdict};

/// How long the sweep leaves a run alone before it looks whether something got lost: less than its tick, so that a
/// check-up due just after one tick is not left to the next but one.
pub(crate) const CHECKUP_AFTER: TimeDelta = TimeDelta::seconds(45);

/// A timer due sooner than this is announced, since the sweep's next tick may come too late for it.
const ANNOUNCED_AHEAD: TimeDelta = TimeDelta::seconds(60);

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
    ended: Vec<TaskIndex>,
    /// Tasks settled here that wait for their directive.
    undirected: BTreeSet<TaskIndex>,
    changed: BTreeSet<TaskIndex>,
    pub(crate) outputs: Vec<(TaskIndex, Value)>,
    pub(crate) attempts: Vec<AttemptRecord>,
    events: Vec<Event>,
    timers: BTreeMap<TaskIndex, Timer>,
    unset_timers: BTreeSet<TaskIndex>,
    outbox: Vec<Message>,
    announcements: Vec<Message>,
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
            let unknown: Vec<TaskIndex> =
                dependants.iter().copied().filter(|task| !self.knows(*task)).collect();
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

    /// Closes the scene: the run's end is derived, and everything that changed comes out; nothing if nothing did.
    pub fn close(mut self) -> Option<Decision> {
        debug_assert!(self.ended.is_empty() && self.undirected.is_empty(), "closed before it was settled");
        self.derive_end();
        self.announce_timer();
        let idle = self.changed.is_empty() && self.events.is_empty() && self.checkup == Checkup::Keep;
        if idle && self.announcements.is_empty() {
            return None;
        }
        let tasks = &mut self.tasks;
        Some(Decision {
            changes: Changes {
                tasks: self.changed.iter().filter_map(|index| tasks.remove(index)).collect(),
                outputs: self.outputs,
                attempts: self.attempts,
                events: self.events,
                timers: self.timers.into_values().collect(),
                unset_timers: self.unset_timers.into_iter().collect(),
                outbox: self.outbox,
                checkup: self.checkup,
                run: self.run,
            },
            announcements: self.announcements,
        })
    }

    /// Judges a pending task by what became of its parents so far.
    pub(crate) fn consider(&mut self, index: TaskIndex) {
        let task = &self.tasks[&index];
        if task.state != TaskState::Pending || self.undirected.contains(&index) {
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
            // While it only waited, nobody was to look soon; now something may get lost again.
            self.checkup = Checkup::At(self.now + CHECKUP_AFTER);
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

    /// The last event is about this attempt, and not about the current one.
    pub(crate) fn was_attempt(&mut self, attempt: u32) {
        self.events.last_mut().expect("an event was recorded").attempt = attempt;
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
        if crate::is_inside(&self.graph.spec(index).kind) {
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
        let state = self.tasks[&parent].state;
        let task = self.tasks.get_mut(&index).expect("only known dependants are told");
        task.parents.count(state);
        self.changed.insert(index);
        self.consider(index);
    }

    fn finished(&mut self, index: TaskIndex, state: TaskState) {
        self.ended.push(index);
        let spec = self.graph.spec(index);
        if matches!(state, TaskState::Failed | TaskState::UpstreamFailed) && !spec.allow_failure {
            self.run.failures += 1;
        }
        if state == TaskState::Failed && !spec.allow_failure && self.run.error.is_none() {
            let said =
                self.tasks[&index].failure.as_ref().map_or("no reason given", |failure| &failure.message);
            self.run.error = Some(format!("task `{}` failed: {said}", spec.name));
        }
        self.outbox.push(Message::TaskFinished(TaskFinished {
            run: self.run.id,
            tenant: self.run.tenant,
            workflow: self.run.workflow.clone(),
            task: index,
            name: spec.name.clone(),
            state,
            finished_at: self.now,
        }));
    }

    /// Wakes the sweep for the first timer set here, if that is due before its next tick: it will find the others.
    fn announce_timer(&mut self) {
        let first = self.timers.values().map(|timer| timer.wake_at).min();
        if let Some(wake_at) = first.filter(|wake_at| *wake_at < self.now + ANNOUNCED_AHEAD) {
            self.announcements.push(Message::TimerArmed(TimerArmed { wake_at }));
        }
    }

    fn derive_end(&mut self) {
        let Some(end) = self.run.end() else { return };
        let Some(state) = self.run.state.on(RunEvent::Ended(end)) else { return };
        self.run.state = state;
        self.run.finished_at = Some(self.now);
        self.checkup = Checkup::Never;
        let kind = match end {
            End::Succeeded => EventKind::RunSucceeded,
            End::Failed => EventKind::RunFailed,
            End::Cancelled => EventKind::RunCancelled,
        };
        self.record(kind, None, None, Value::Null);
        self.outbox.push(Message::RunFinished(RunFinished {
            run: self.run.id,
            tenant: self.run.tenant,
            workflow: self.run.workflow.clone(),
            state,
            finished_at: self.now,
        }));
    }
}
