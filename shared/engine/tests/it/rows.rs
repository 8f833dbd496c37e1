//! The rows of one run, waiting in memory and changed by decisions: a store for the engine's own tests.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ebbflow_engine::{Command, Decision, Directive, Graph, Outcome, Reach, RunSlice, breaker};
use model::change::Recheck;
use model::message::TaskResult;
use model::{
    Admission, AttemptRecord, BreakerGate, ErrorClass, Event, Failure, Instant, Message, Offer, Run, RunId,
    Signal, SlotRelease, Task, TaskIndex, TaskState, TenantId, Timer, VersionId, WorkerId, Workflow,
};
use serde_json::Value;
use uuid::Uuid;

const WORKER: WorkerId = WorkerId(Uuid::from_u128(9));

/// Something that happens to a run, by task name and attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Happened {
    Ok(&'static str, u32),
    Fail(&'static str, u32, ErrorClass),
    Permanent(&'static str, u32),
    FailElsewhere(&'static str, u32),
    Claim(&'static str, u32),
    Lose(&'static str, u32),
    HandBack(&'static str, u32),
    Wake(&'static str),
    Cancel,
    Recheck,
}

pub(crate) struct Rows {
    workflow: Workflow,
    director: Director,
    pub(crate) outputs: Vec<(TaskIndex, Value)>,
    pub(crate) kept: Vec<Signal>,
    pub(crate) graph: Graph,
    pub(crate) run: Run,
    pub(crate) tasks: BTreeMap<TaskIndex, Task>,
    pub(crate) timers: Vec<Timer>,
    pub(crate) outbox: Vec<Message>,
    pub(crate) items: BTreeMap<TaskIndex, Value>,
    pub(crate) announced: Vec<Message>,
    pub(crate) attempts: Vec<AttemptRecord>,
    /// The shared tasks that the last decision gave up or carried out.
    pub(crate) shares_ended: Vec<(TaskIndex, bool)>,
    pub(crate) events: Vec<Event>,
    pub(crate) recheck: Option<Instant>,
    pub(crate) last_written: usize,
    pub(crate) now: Instant,
    /// Whether no task finds a slot.
    pub(crate) full: bool,
    /// Who gave up a slot or where it stood, last.
    pub(crate) left: Vec<SlotRelease>,
    /// The offers to remote workers.
    pub(crate) offers: BTreeMap<TaskIndex, Offer>,
    /// The breakers that are not closed.
    pub(crate) gates: Vec<BreakerGate>,
}

/// What a task shall do that asks.
type Director = Box<dyn Fn(&Graph, TaskIndex) -> Directive>;

impl Rows {
    /// A run of tasks that need no directives.
    pub(crate) fn of(workflow: Workflow) -> Self {
        Self::directed(workflow, |_, task| panic!("task {} asks what to do", task.0))
    }

    /// A run whose tasks get their directives from `director`.
    pub(crate) fn directed(
        workflow: Workflow,
        director: impl Fn(&Graph, TaskIndex) -> Directive + 'static,
    ) -> Self {
        Self::boxed(workflow, Box::new(director), None)
    }

    /// A run that waits for its turn in its group.
    pub(crate) fn waiting(workflow: Workflow) -> Self {
        Self::boxed(workflow, Box::new(|_, task| panic!("task {} asks what to do", task.0)), Some("group"))
    }

    fn boxed(workflow: Workflow, director: Director, group: Option<&str>) -> Self {
        let graph = Graph::compile(workflow.clone()).unwrap();
        let now = Instant::UNIX_EPOCH;
        let (id, tenant, version) = (RunId(Uuid::from_u128(1)), TenantId(1), VersionId(1));
        let run = Run {
            concurrency_group: group.map(str::to_owned),
            waiting: group.is_some(),
            ..Run::new(id, tenant, &workflow.name, version, graph.len(), now)
        };
        let mut new_run = RunSlice::create(&graph, run, "test");
        settle(&mut new_run, &BTreeMap::new(), &director);
        admit(&mut new_run, false);
        let decision = new_run.close().unwrap();
        let run = decision.changes.run.clone();
        let mut rows = Self {
            workflow,
            director,
            outputs: Vec::new(),
            kept: Vec::new(),
            graph,
            run,
            tasks: BTreeMap::new(),
            timers: Vec::new(),
            outbox: Vec::new(),
            shares_ended: Vec::new(),
            items: BTreeMap::new(),
            announced: Vec::new(),
            attempts: Vec::new(),
            events: Vec::new(),
            recheck: None,
            last_written: 0,
            now,
            full: false,
            left: Vec::new(),
            offers: BTreeMap::new(),
            gates: Vec::new(),
        };
        rows.apply(decision);
        rows
    }

    /// The same graph with `max_retries` for every task, a second apart.
    pub(crate) fn retrying(self, max_retries: u32) -> Self {
        let mut workflow = self.workflow;
        for task in &mut workflow.tasks {
            let child = task.fan_out.as_mut().map(|plan| &mut plan.task.retry);
            for retry in [&mut task.retry].into_iter().chain(child) {
                (retry.max_retries, retry.initial_delay_seconds) = (max_retries, 1.0);
            }
        }
        Self::boxed(workflow, self.director, None)
    }

    pub(crate) fn play(&mut self, what: &Happened) {
        let index = |name| self.graph.index_of(name).unwrap();
        let report = |name, attempt, result| Command::Report {
            task: index(name),
            attempt,
            worker: self.tasks[&index(name)].worker,
            started_at: self.now,
            result,
        };
        let failed = |class| TaskResult::Failed(Failure::new(class, "trouble"));
        let command = match *what {
            Happened::Ok(name, attempt) => report(name, attempt, TaskResult::Succeeded(Value::Null)),
            Happened::Fail(name, attempt, class) => report(name, attempt, failed(class)),
            Happened::Permanent(name, attempt) => report(name, attempt, failed(ErrorClass::Permanent)),
            Happened::FailElsewhere(name, attempt) => Command::Report {
                task: index(name),
                attempt,
                worker: None,
                started_at: self.now,
                result: failed(ErrorClass::Permanent),
            },
            Happened::Claim(name, attempt) => Command::Claim { task: index(name), attempt, worker: WORKER },
            Happened::Lose(name, attempt) => Command::Lose { task: index(name), attempt, worker: WORKER },
            Happened::HandBack(name, attempt) => {
                let reason = "asked to stop".into();
                Command::HandBack { task: index(name), attempt, worker: WORKER, reason, saved: false }
            }
            Happened::Wake(name) => {
                let task = Some(index(name));
                let timer = self.timers.iter().find(|timer| timer.task == task).unwrap().clone();
                self.now = self.now.max(timer.wake_at);
                Command::Wake { task: timer.task, attempt: timer.attempt, kind: timer.kind }
            }
            Happened::Cancel => Command::Cancel { actor: "someone".into(), reason: None },
            Happened::Recheck => Command::Recheck { claim_timeout: TimeDelta::zero(), served: None },
        };
        self.decide(&command);
    }

    /// Decides a command as the runtime does: only the rows that are asked for are in the slice.
    pub(crate) fn decide(&mut self, command: &Command) -> Outcome {
        self.decide_all(std::slice::from_ref(command)).remove(0)
    }

    /// Decides commands that came together, in one slice.
    pub(crate) fn decide_all(&mut self, commands: &[Command]) -> Vec<Outcome> {
        let mut slice = RunSlice::of(&self.graph, self.run.clone(), self.now);
        commands.iter().for_each(|command| self.load(&mut slice, command));
        self.gates.iter().for_each(|gate| breaker::add_gate(&mut slice, gate.clone()));
        let outcomes = commands.iter().map(|command| slice.decide(command)).collect();
        settle(&mut slice, &self.tasks, &self.director);
        let left = slice.slot_releases();
        admit(&mut slice, self.full);
        if let Some(decision) = slice.close() {
            self.apply(decision);
        }
        self.left = left;
        outcomes
    }

    fn load(&self, slice: &mut RunSlice<'_>, command: &Command) {
        match command.reach() {
            Reach::Run => {}
            Reach::One(task) => self.tasks.get(&task).cloned().into_iter().for_each(|task| slice.add(task)),
            Reach::Neighbourhood(task) => {
                let wanted: Vec<TaskIndex> = slice.neighbourhood(task).collect();
                wanted.iter().for_each(|task| slice.add(self.tasks[task].clone()));
            }
            Reach::Waiting(signal) => {
                let waiting: Vec<TaskIndex> = self.graph.waiting_for(&signal).collect();
                let near: Vec<TaskIndex> =
                    waiting.into_iter().flat_map(|task| slice.neighbourhood(task)).collect();
                near.iter().for_each(|task| slice.add(self.tasks[task].clone()));
            }
            Reach::Unfinished => {
                let open = self.tasks.values().filter(|task| !task.state.is_final());
                open.for_each(|task| slice.add(task.clone()));
            }
            Reach::All => {
                self.tasks.values().for_each(|task| slice.add(task.clone()));
                let switch = |task: TaskIndex| {
                    self.graph.indices().any(|of| of == task) && !self.graph.spec(task).cases.is_empty()
                };
                let choices = self.outputs.iter().filter(|(task, _)| switch(*task));
                choices.for_each(|(task, output)| slice.recall_choice(*task, output));
            }
        }
    }

    fn apply(&mut self, decision: Decision) {
        let changes = decision.changes;
        self.last_written = changes.tasks.len();
        self.run = changes.run;
        self.timers.retain(|timer| !changes.unset_timers.contains(&timer.task));
        self.timers.extend(changes.timers);
        self.outbox.extend(changes.outbox);
        self.shares_ended = changes.shares_ended;
        self.items.extend(changes.items);
        self.tasks.extend(changes.new_tasks.into_iter().map(|task| (task.index, task)));
        self.tasks.extend(changes.tasks.into_iter().map(|task| (task.index, task)));
        self.outputs.retain(|(task, _)| !changes.withdrawn.contains(task));
        for (task, output) in changes.outputs {
            assert!(self.outputs.iter().all(|(other, _)| *other != task), "task {} has two outputs", task.0);
            self.outputs.push((task, output));
        }
        self.kept.extend(changes.kept_signals);
        self.attempts.extend(changes.attempts);
        self.events.extend(changes.events);
        match changes.recheck {
            Recheck::Keep => {}
            Recheck::At(at) => self.recheck = Some(at),
            Recheck::By(at) => self.recheck = Some(self.recheck.map_or(at, |before| before.min(at))),
            Recheck::Never => self.recheck = None,
        }
        self.announced.extend(decision.messages);
        self.offers.retain(|task, _| !changes.withdrawn_offers.contains(task));
        self.offers.extend(changes.offers.into_iter().map(|offer| (offer.task, offer)));
        self.check_offers();
    }

    /// Whatever was decided, exactly the dispatched tasks that workers lease are offered, each at its current attempt.
    fn check_offers(&self) {
        let is_offered = |task: &&Task| {
            let spec = self.graph.spec_at(task.index, task.child);
            task.state == TaskState::Dispatched && spec.leased
        };
        let expected: Vec<_> =
            self.tasks.values().filter(is_offered).map(|task| (task.index, task.attempt)).collect();
        let offered: Vec<_> = self.offers.values().map(|offer| (offer.task, offer.attempt)).collect();
        assert_eq!(offered, expected);
    }

    /// How often a task's work was announced.
    pub(crate) fn dispatches(&self, name: &str) -> usize {
        let index = self.graph.index_of(name).unwrap();
        let about =
            |message: &&Message| matches!(message, Message::TaskDispatched(work) if work.key.task == index);
        self.announced.iter().filter(about).count()
    }

    /// How all tasks and the run stand, in words.
    pub(crate) fn stand(&self) -> String {
        let tasks = self
            .tasks
            .values()
            .map(|task| format!("{}={}", self.graph.name_at(task.index, task.child), task.state.name()));
        let run = format!("run={}", self.run.state.name());
        tasks.chain([run]).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn states(&self) -> Vec<TaskState> {
        self.tasks.values().map(|task| task.state).collect()
    }
}

/// Gives a slot to every task that requests one, or to none.
fn admit(slice: &mut RunSlice<'_>, full: bool) {
    for ask in slice.slot_requests() {
        let limit = ask.needs.last().unwrap().limit.clone();
        let admission = match (full, ask.waited) {
            (false, _) => Admission::Acquired,
            (true, false) => Admission::Waiting(limit),
            (true, true) => Admission::StillWaiting,
        };
        slice.admit(ask.key.task, admission);
    }
}

/// Gives a slice what it asks for, as the runtime does, until it asks no more.
fn settle(slice: &mut RunSlice<'_>, tasks: &BTreeMap<TaskIndex, Task>, director: &Director) {
    loop {
        let need = slice.propagate();
        if need.is_nothing() {
            return;
        }
        need.tasks.iter().for_each(|task| slice.add(tasks[task].clone()));
        for task in need.directives {
            slice.activate(task, director(slice.graph(), task));
        }
    }
}
