//! A run replayed from its events: the state machines must arrive at the rows in the store.

use std::collections::{BTreeMap, BTreeSet};

use engine::Graph;
use model::run::{End, RunEvent};
use model::task::Tally;
use model::{
    Child, Event, EventKind, Failure, Fan, Instant, Run, RunState, Task, TaskEvent, TaskIndex, TaskState,
    Timer, TimerKind, WorkerId,
};
use uuid::Uuid;

use crate::coverage::{self, Moves};

/// The state of a run according to its events.
pub(crate) struct Replay {
    pub(crate) run: Run,
    pub(crate) tasks: BTreeMap<TaskIndex, Task>,
    pub(crate) timers: Vec<Timer>,
    /// Which timers have fired: whose, of which attempt, of which kind.
    pub(crate) fired: BTreeSet<(Option<TaskIndex>, u32, TimerKind)>,
    pub(crate) released: BTreeSet<(TaskIndex, u32)>,
    /// Tasks that began and of whose attempt nobody reported the end.
    pub(crate) begun: BTreeSet<TaskIndex>,
    pub(crate) timed_out: bool,
    /// Tasks whose sleep a person ended.
    pub(crate) woken: BTreeSet<TaskIndex>,
    /// Children that a person re-ran while others of their fan-out were active: they do not count against its limit.
    pub(crate) hurried: BTreeSet<TaskIndex>,
    /// How the run and its tasks have ended so far: what was re-run ended more than once.
    pub(crate) ends: BTreeSet<(TaskIndex, TaskState)>,
    pub(crate) run_ends: Vec<RunState>,
}

/// The rows of a run as they are now, and what happened since they were last read.
pub(crate) struct Rows<'a> {
    pub(crate) run: Run,
    pub(crate) tasks: BTreeMap<TaskIndex, Task>,
    pub(crate) timers: Vec<Timer>,
    pub(crate) events: Vec<Event>,
    pub(crate) graph: &'a Graph,
    pub(crate) checked_up: bool,
}

impl Replay {
    /// A run that was just created.
    pub(crate) fn of(rows: &Rows<'_>) -> Self {
        let run = Run { state: RunState::Queued, events: 0, ..rows.run.clone() };
        let fresh = |index: TaskIndex| (index, Task::pending(index, run.created_at));
        Self {
            tasks: rows.graph.indices().map(fresh).collect(),
            run,
            timers: Vec::new(),
            fired: BTreeSet::new(),
            released: BTreeSet::new(),
            begun: BTreeSet::new(),
            timed_out: false,
            woken: BTreeSet::new(),
            hurried: BTreeSet::new(),
            ends: BTreeSet::new(),
            run_ends: Vec::new(),
        }
    }

    /// A known task; a child is known from its first event on.
    pub(crate) fn task(&mut self, event: &Event) -> Option<&mut Task> {
        let index = event.task?;
        let at = self.run.created_at;
        Some(
            self.tasks
                .entry(index)
                .or_insert_with(|| Task { child: event.child, ..Task::pending(index, at) }),
        )
    }

    /// Applies one event of the history.
    pub(crate) fn apply(&mut self, event: &Event, moves: &mut Moves) -> Result<(), String> {
        self.timed_out |= event.kind == EventKind::RunTimedOut;
        // A run that timed out has time again once a part of it is re-run.
        if matches!(event.kind, EventKind::RunRetried | EventKind::TaskCleared) {
            self.timed_out = false;
            self.fired.remove(&(None, 0, TimerKind::Timeout));
        }
        self.apply_to_run(event, moves)?;
        let timed_out = self.timed_out;
        let Some(task) = self.task(event).map(|task| task.index) else { return Ok(()) };
        let reopened = event.data["reopened"] == true;
        if matches!(event.kind, EventKind::TaskCleared | EventKind::TaskMarked) && !reopened {
            self.remove_children(task, event.at, moves)?;
        }
        let of = self.tasks[&task].child.map(|child| self.tasks[&child.of].state);
        if event.kind == EventKind::TaskCleared && of == Some(TaskState::Sleeping) {
            self.hurried.insert(task);
        }
        for step in steps(&self.tasks[&task], event, timed_out) {
            self.step(task, step, event.at, moves)?;
        }
        match event.kind {
            EventKind::TaskFannedOut => self.create_children(task, event),
            EventKind::TaskWoken => drop(self.woken.insert(task)),
            _ => drop(self.woken.remove(&task)),
        }
        Ok(())
    }

    fn step(
        &mut self,
        index: TaskIndex,
        step: TaskEvent,
        at: Instant,
        moves: &mut Moves,
    ) -> Result<(), String> {
        let task = self.tasks.get_mut(&index).expect("only known tasks move");
        let (from, label) = (task.state, coverage::task_event(&step, task.attempt));
        task.on(step, at).map_err(|error| error.to_string())?;
        moves.note(from.name(), label);
        if task.state.is_final() {
            self.hurried.remove(&index);
            self.ends.insert((index, task.state));
        }
        Ok(())
    }

    /// A fan-out has a child for each item, at the indices after all others.
    fn create_children(&mut self, of: TaskIndex, event: &Event) {
        let (first, total) = (self.tasks.len() as u32, event.data["count"].as_u64().unwrap_or(0) as u32);
        for item in 0..total {
            let index = TaskIndex(first + item);
            let child = Some(Child { of, item });
            self.tasks.insert(index, Task { child, ..Task::pending(index, event.at) });
        }
        let fan = Fan { first: TaskIndex(first), total, released: 0, ended: Tally::default() };
        self.tasks.get_mut(&of).expect("it has just been moved").fan = Some(fan);
    }

    /// Removes the children of a fan-out that is re-run or marked.
    fn remove_children(&mut self, of: TaskIndex, at: Instant, moves: &mut Moves) -> Result<(), String> {
        let own =
            |task: &&Task| task.child.is_some_and(|child| child.of == of) && task.state != TaskState::Removed;
        let children: Vec<TaskIndex> = self.tasks.values().filter(own).map(|task| task.index).collect();
        children.into_iter().try_for_each(|child| self.step(child, TaskEvent::Removed, at, moves))
    }

    /// While a run is paused, tasks that would continue are queued without an event.
    pub(crate) fn catch_up(&mut self, rows: &Rows<'_>, moves: &mut Moves) -> Result<(), String> {
        if self.run.state != RunState::Paused {
            return Ok(());
        }
        for row in rows.tasks.values().filter(|row| row.state == TaskState::Queued) {
            let step = match self.tasks.get(&row.index).map(|task| task.state) {
                Some(TaskState::UpForRetry) => TaskEvent::RetryDue,
                Some(TaskState::Sleeping) => TaskEvent::WokeUp,
                _ => continue,
            };
            self.step(row.index, step, row.since, moves)?;
        }
        Ok(())
    }

    fn apply_to_run(&mut self, event: &Event, moves: &mut Moves) -> Result<(), String> {
        let reopens =
            matches!(event.kind, EventKind::RunRetried | EventKind::RunStarted | EventKind::TaskCleared);
        if reopens && self.run.state.is_final() {
            self.step_run(RunEvent::Reopened, moves)?;
            self.run.started_at = None;
        }
        let step = match event.kind {
            EventKind::RunStarted => RunEvent::Started,
            EventKind::RunPaused => RunEvent::Paused,
            EventKind::RunResumed => RunEvent::Resumed { started: self.run.started_at.is_some() },
            EventKind::RunStalled => RunEvent::Stalled,
            EventKind::RunSucceeded => RunEvent::Ended(End::Succeeded),
            EventKind::RunFailed => RunEvent::Ended(End::Failed),
            EventKind::RunCancelled => RunEvent::Ended(End::Cancelled),
            _ => return Ok(()),
        };
        self.step_run(step, moves)?;
        if event.kind == EventKind::RunStarted {
            self.run.started_at = Some(event.at);
        }
        if self.run.state.is_final() {
            self.run_ends.push(self.run.state);
        }
        Ok(())
    }

    fn step_run(&mut self, step: RunEvent, moves: &mut Moves) -> Result<(), String> {
        let from = self.run.state;
        self.run.state = from.on(step).ok_or_else(|| format!("a {} run took {step:?}", from.name()))?;
        moves.note(&format!("run {}", from.name()), coverage::run_event(step));
        Ok(())
    }
}

/// The transitions of a task that an event stands for, which may be several.
fn steps(task: &Task, event: &Event, timed_out: bool) -> Vec<TaskEvent> {
    use EventKind as K;
    use TaskState as S;
    let attempt = event.attempt;
    let failure = || Failure::permanent("");
    let errored = |retry| TaskEvent::Errored { attempt, failure: failure(), retry };
    // It waited for its next attempt, which the event is about.
    let next = task.state == S::UpForRetry && attempt > task.attempt;
    let mut steps = match (event.kind, task.state) {
        (K::TaskQueued | K::TaskDispatched | K::TaskSucceeded, S::Pending) => vec![TaskEvent::Readied],
        (
            K::TaskQueued
            | K::TaskDispatched
            | K::TaskSleeping
            | K::TaskWaiting
            | K::TaskFannedOut
            | K::TaskSucceeded
            | K::TaskWoken
            | K::TaskMarked,
            _,
        ) if next => {
            vec![TaskEvent::RetryDue]
        }
        (K::TaskQueued | K::TaskDispatched | K::TaskSleeping | K::TaskWaiting, S::Sleeping) => {
            vec![TaskEvent::WokeUp]
        }
        (K::TaskFailed | K::TaskRetrying, _) if next => vec![TaskEvent::RetryDue, TaskEvent::FellAsleep],
        (K::TaskFailed | K::TaskRetrying, S::Pending) => vec![TaskEvent::FellAsleep],
        // Cleared again, or marked, by the decision that started it, so there was no event.
        (K::TaskCleared, S::Pending) if event.data["was"] == "queued" => vec![TaskEvent::Readied],
        (K::TaskMarked, S::Pending) if attempt > task.attempt => vec![TaskEvent::Readied],
        _ => Vec::new(),
    };
    steps.extend(match event.kind {
        K::TaskDispatched => Some(TaskEvent::Released),
        K::TaskStarted => Some(TaskEvent::Claimed { attempt, worker: WorkerId(Uuid::nil()) }),
        K::TaskSleeping | K::TaskWaiting | K::TaskFannedOut => Some(TaskEvent::FellAsleep),
        K::TaskSucceeded => Some(TaskEvent::Succeeded { attempt }),
        K::TaskFailed if timed_out => Some(TaskEvent::GivenUp { failure: failure() }),
        K::TaskFailed => Some(errored(false)),
        K::TaskRetrying => Some(errored(true)),
        K::TaskCleared if event.data["reopened"] == true => Some(TaskEvent::Reopened),
        K::TaskCleared => Some(TaskEvent::Cleared),
        K::TaskMarked if event.data["as"] == "succeeded" => Some(TaskEvent::MarkedSucceeded),
        K::TaskMarked => Some(TaskEvent::MarkedFailed { failure: failure() }),
        K::TaskHandedBack => Some(TaskEvent::HandedBack { attempt }),
        K::TaskUpstreamFailed => Some(TaskEvent::UpstreamFailed),
        K::TaskSkipped => Some(TaskEvent::Skipped),
        K::TaskCancelled => Some(TaskEvent::Cancelled),
        _ => None,
    });
    steps
}
