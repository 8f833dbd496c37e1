//! Observes every run of a world and reports the first violation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;
use engine::{Graph, Operation};
use model::{
    Event, EventKind, Instant, Message, RunId, RunState, Task, TaskIndex, TaskKey, TaskKind, TaskState,
    TenantId, VersionId, WorkerId,
};
use store::{
    DeadLetter, DeadLetterFilter, DeadLetters, Definitions, Maintenance, Memory, Runs, Timers, Workers,
};

use crate::check::{self, Checked, End, violation};
use crate::coverage::{LOST, Moves, OUTCOME_UNKNOWN, TIMED_OUT};
use crate::fairness::Fairness;
use crate::fault_points::now;
use crate::faults::FaultInjector;
use crate::offers;
use crate::people::{self, Action};
use crate::replay::{Replay, Rows};
use crate::slots;

/// More rows than any world has.
const ALL: u32 = 100_000;

/// The id of a message that the bus gave up on.
pub(crate) fn dead_id(number: u64) -> String {
    format!("dead-{number}")
}

pub(crate) struct Observer {
    pub(crate) memory: Arc<Memory>,
    pub(crate) graphs: BTreeMap<VersionId, Arc<Graph>>,
    pub(crate) replays: BTreeMap<RunId, Replay>,
    said: Vec<Message>,
    pub(crate) moves: Moves,
    lossless: bool,
    pub(crate) tenants: Vec<TenantId>,
    weights: BTreeMap<TenantId, u32>,
    turns: Fairness,
    /// The last attempts at tasks that workers outside started.
    leased: BTreeMap<TaskKey, u32>,
}

impl Observer {
    pub(crate) fn new(memory: Arc<Memory>) -> Self {
        Self {
            memory,
            graphs: BTreeMap::new(),
            replays: BTreeMap::new(),
            said: Vec::new(),
            moves: Moves::default(),
            lossless: true,
            tenants: vec![TenantId::DEFAULT],
            weights: BTreeMap::new(),
            turns: Fairness::default(),
            leased: BTreeMap::new(),
        }
    }

    /// Checks a run that was written to.
    pub(crate) fn check_run(&mut self, id: RunId, truth: Instant) -> Checked {
        let mut tenants = self.tenants.iter();
        let record = tenants.find_map(|tenant| now(self.memory.run(*tenant, id)).unwrap());
        let Some(run) = record.map(|record| record.run) else { return Ok(()) };
        let graph = self.graph(run.version);
        let seen = self.replays.get(&id).map_or(0, |replay| replay.run.events);
        let events = now(self.memory.events(id, seen, ALL)).unwrap();
        let forever = truth + TimeDelta::days(10_000);
        let timers = now(self.memory.due_timers(forever, ALL)).unwrap();
        let rows = Rows {
            tasks: self.tasks(id),
            timers: timers.into_iter().filter(|due| due.run == id).map(|due| due.timer).collect(),
            events: events.into_iter().map(|(_, event)| event).collect(),
            checked_up: now(self.memory.due_rechecks(forever, ALL)).unwrap().contains(&id),
            graph: &graph,
            run,
        };
        for event in &rows.events {
            let class = event.data["class"].as_str().unwrap_or_default();
            match class {
                "worker_lost" => self.moves.note("an attempt", LOST),
                "outcome_unknown" => self.moves.note("an attempt", OUTCOME_UNKNOWN),
                "timeout" => self.moves.note("an attempt", TIMED_OUT),
                _ => {}
            }
            self.no_late_report_counts(id, event, &graph)?;
            let lossy =
                matches!(class, "worker_lost" | "timeout" | "killed" | "outcome_unknown" | "not_taken");
            self.lossless &= !lossy && !changes_the_end(event.kind);
        }
        let replay = self.replays.entry(id).or_insert_with(|| Replay::of(&rows));
        check::changed(replay, rows, truth, &mut self.moves)?;
        check::no_fan_out_is_too_wide(&self.replays[&id], &graph)?;
        check::no_concurrency_group_is_overfull(&self.replays, &self.replays[&id], &graph)?;
        check::shared_work_is_done_once_at_a_time(&self.replays, &self.graphs)
    }

    /// A success that a worker outside reports counts only as long as no worker has started a later attempt.
    fn no_late_report_counts(&mut self, run: RunId, event: &Event, graph: &Graph) -> Checked {
        let Some(task) = event.task.filter(|task| graph.spec_at(*task, event.child).leased) else {
            return Ok(());
        };
        let (key, attempt) = (TaskKey { run, task }, event.attempt);
        match event.kind {
            EventKind::TaskStarted => {
                self.leased.insert(key, attempt);
            }
            EventKind::TaskSucceeded if self.leased.get(&key).is_some_and(|last| *last > attempt) => {
                return violation("no_late_report_counts", format!("attempt {attempt} of {key:?} succeeded"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks what is offered to workers outside.
    pub(crate) fn check_offers(&self) -> Checked {
        offers::equal_the_dispatched_tasks(&self.memory, &self.replays, &self.graphs, &self.tenants)
    }

    fn graph(&mut self, version: VersionId) -> Arc<Graph> {
        let memory = &self.memory;
        let compile = || {
            let record = now(memory.version(version)).unwrap().unwrap();
            Arc::new(Graph::compile(record.workflow).unwrap())
        };
        self.graphs.entry(version).or_insert_with(compile).clone()
    }

    /// Checks who holds slots and who waits and, after each single commit, whose turn it was.
    pub(crate) fn check_slots(&mut self, after_each: bool) -> Checked {
        let line = slots::add_up(&self.memory, &self.replays, &self.graphs, &self.tenants)?;
        if after_each { self.turns.look(line, &self.replays, &self.weights) } else { Ok(()) }
    }

    /// Adds a tenant with this weight.
    pub(crate) fn add_tenant(&mut self, tenant: TenantId, weight: u32) {
        self.tenants.push(tenant);
        self.weights.insert(tenant, weight);
    }

    /// What a person does to one of the runs; nothing if there are none.
    pub(crate) fn steer(&self, faults: &FaultInjector) -> Option<Action> {
        let draw = |count: usize| faults.draw(0..count as i64) as usize;
        let fans = |replay: &&Replay| replay.tasks.values().any(|task| task.fan.is_some());
        let all: Vec<&Replay> = self.replays.values().collect();
        let wide: Vec<&Replay> = self.replays.values().filter(fans).collect();
        let runs = if wide.is_empty() || draw(3) == 0 { all } else { wide };
        (!runs.is_empty()).then(|| people::steer(runs[draw(runs.len())], draw))
    }

    /// The workers that are registered.
    pub(crate) fn workers(&self) -> Vec<WorkerId> {
        let known = now(self.memory.silent(Instant::MAX_UTC, ALL)).unwrap();
        let mut known: Vec<WorkerId> = known.into_iter().map(|silence| silence.worker).collect();
        known.sort();
        known
    }

    /// Every task of a run, children among them.
    fn tasks(&self, run: RunId) -> BTreeMap<TaskIndex, Task> {
        let rows = |of| now(self.memory.run_tasks(run, of, None, ALL)).unwrap();
        let own = rows(None);
        let fans: Vec<TaskIndex> =
            own.iter().filter(|row| row.task.fan.is_some()).map(|row| row.task.index).collect();
        let children = fans.into_iter().flat_map(|index| rows(Some(index)));
        own.into_iter().chain(children).map(|row| (row.task.index, row.task)).collect()
    }

    /// Checks a published message.
    pub(crate) fn published(&mut self, message: &Message) -> Checked {
        check::every_message_is_true(message, &self.replays)?;
        if matches!(message, Message::RunFinished(_) | Message::TaskFinished(_)) {
            self.said.push(message.clone());
        }
        Ok(())
    }

    pub(crate) fn all_ended(&self) -> bool {
        self.replays.values().all(|replay| replay.run.state.is_final())
    }

    /// Whether no attempt was lost and no person changed the outcome: then ends do not depend on faults.
    pub(crate) fn is_lossless(&self) -> bool {
        self.lossless
    }

    /// Actions for runs that wait to be resumed, or for a signal or an answer, without a timeout.
    pub(crate) fn waiting_for_people(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (id, replay) in self.replays.iter().filter(|(_, replay)| !replay.run.state.is_final()) {
            if replay.run.state == RunState::Paused {
                actions.push(Action::Operate(*id, Operation::Resume));
            }
            let graph = &self.graphs[&replay.run.version];
            let asleep = replay.tasks.values().filter(|task| task.state == TaskState::Sleeping);
            for task in asleep.filter(|task| task.child.is_none()) {
                let spec = graph.spec(task.index);
                match spec.kind {
                    TaskKind::Approval => actions.push(Action::Answer(*id, task.index)),
                    TaskKind::WaitForSignal => {
                        let named = |name: &&&str| spec.config["signal"] == **name;
                        let name = crate::workflows::SIGNALS.iter().find(named).unwrap();
                        actions.push(Action::Signal(*id, name));
                    }
                    _ => {}
                }
            }
        }
        actions
    }

    /// Whether the store holds nothing that is still to be done.
    pub(crate) fn is_clean(&self, at: Instant) -> bool {
        self.leftovers(at).is_empty()
    }

    fn leftovers(&self, at: Instant) -> String {
        let agenda = now(self.memory.agenda(at)).unwrap();
        let limits = slots::limits(&self.memory, &self.tenants);
        let mut left = String::new();
        for (what, there) in [
            ("a slot", limits.iter().any(|limit| limit.used > 0)),
            ("a waiting task", limits.iter().any(|limit| limit.waiting > 0)),
            ("a timer", agenda.timer.is_some()),
            ("a recheck", agenda.recheck.is_some()),
            ("an outbox row", agenda.unsent.is_some()),
            ("a worker", agenda.worker.is_some()),
        ] {
            if there {
                left = format!("{left} {what},");
            }
        }
        left
    }

    pub(crate) fn describe(&self, at: Instant) -> String {
        let open = self.replays.values().filter(|replay| !replay.run.state.is_final());
        let stand = |replay: &Replay| {
            let tasks = replay.tasks.values();
            let tasks: Vec<String> =
                tasks.map(|task| format!("{}#{}", task.state.name(), task.attempt)).collect();
            format!(
                "run {} of {} held={} {}",
                replay.run.id,
                replay.run.workflow,
                replay.run.waiting,
                tasks.join(" ")
            )
        };
        format!("left:{} open: {}", self.leftovers(at), open.map(stand).collect::<Vec<_>>().join("; "))
    }

    /// Checks what must hold once everything is over and the bus gave up on this many messages.
    pub(crate) fn end(&self, dead: u64) -> Checked {
        for (run, replay) in &self.replays {
            check::every_end_was_published(replay, &self.said)?;
            let waited_for = |index: &TaskIndex| {
                let owner = TaskKey { run: *run, task: *index };
                !now(self.memory.waiters(owner, 1)).unwrap().is_empty()
            };
            if let Some(index) = replay.tasks.keys().find(|index| waited_for(index)) {
                return violation(
                    "nothing_is_left_over",
                    format!("someone waits for task {} of run {run}", index.0),
                );
            }
        }
        self.what_is_dead_is_kept(dead)
    }

    /// Every message that the bus gave up on is kept, with the reason and whole, and no other is hopeless.
    fn what_is_dead_is_kept(&self, dead: u64) -> Checked {
        let all = DeadLetterFilter { limit: ALL, ..DeadLetterFilter::default() };
        let letters = now(self.memory.dead_letters(&all)).unwrap();
        let ids: BTreeSet<String> = (1..=dead).map(dead_id).collect();
        if let Some(letter) = letters.iter().find(|letter| !ids.contains(&letter.id)) {
            return violation("no_message_is_hopeless", letter.reason.clone());
        }
        let sound =
            |letter: &DeadLetter| letter.reason.contains("deliveries") && runtime::message_of(letter).is_ok();
        if letters.len() != ids.len() || !letters.iter().all(sound) {
            return violation("what_is_dead_is_kept", format!("of {dead} there are {letters:?}"));
        }
        Ok(())
    }

    /// How a run ended; none if it was not created.
    pub(crate) fn end_of(&self, run: RunId) -> Option<End> {
        let replay = self.replays.get(&run)?;
        let own = replay.tasks.values().filter(|task| task.child.is_none());
        Some((replay.run.state, own.map(|task| task.state).collect()))
    }
}

/// Whether people said how something ends, or other attempts than usual are made at it.
fn changes_the_end(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::RunCancelled
            | EventKind::RunRetried
            | EventKind::TaskCleared
            | EventKind::TaskMarked
            | EventKind::TaskHandedBack
    )
}
