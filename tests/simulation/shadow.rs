//! A run as its own events tell it: each is played through the state machines, and must come to the rows there are.

use std::collections::{BTreeMap, BTreeSet};

use engine::Graph;
use model::run::{End, RunEvent};
use model::{
    Event, EventKind, Failure, Run, RunState, Task, TaskEvent, TaskIndex, TaskState, Timer, WorkerId,
};
use uuid::Uuid;

use crate::coverage::{self, Moves};

/// What the world knows of a run from what it has seen.
pub(crate) struct Shadow {
    pub(crate) run: Run,
    pub(crate) tasks: BTreeMap<TaskIndex, Task>,
    pub(crate) timers: Vec<Timer>,
    pub(crate) released: BTreeSet<(TaskIndex, u32)>,
    pub(crate) timed_out: bool,
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

impl Shadow {
    /// A run of which nothing is known but that it was created.
    pub(crate) fn of(rows: &Rows<'_>) -> Self {
        let run = Run { state: RunState::Queued, events: 0, ..rows.run.clone() };
        let fresh = |index: TaskIndex| (index, Task::pending(index, run.created_at));
        Self {
            tasks: rows.graph.indices().map(fresh).collect(),
            run,
            timers: Vec::new(),
            released: BTreeSet::new(),
            timed_out: false,
        }
    }

    /// A task as far as it is known; a child is known from when it is first heard of.
    pub(crate) fn task(&mut self, event: &Event) -> Option<&mut Task> {
        let index = event.task?;
        let at = self.run.created_at;
        Some(
            self.tasks
                .entry(index)
                .or_insert_with(|| Task { child: event.child, ..Task::pending(index, at) }),
        )
    }

    /// Plays one event.
    pub(crate) fn play(&mut self, event: &Event, moves: &mut Moves) -> Result<(), String> {
        self.timed_out |= event.kind == EventKind::RunTimedOut;
        self.play_run(event, moves)?;
        let timed_out = self.timed_out;
        let Some(task) = self.task(event) else { return Ok(()) };
        for step in steps(task, event, timed_out) {
            let from = task.state;
            let label = coverage::task_event(&step, task.attempt);
            task.on(step, event.at).map_err(|error| error.to_string())?;
            moves.note(from.name(), label);
        }
        Ok(())
    }

    fn play_run(&mut self, event: &Event, moves: &mut Moves) -> Result<(), String> {
        let step = match event.kind {
            EventKind::RunStarted => RunEvent::Started,
            EventKind::RunStalled => RunEvent::Stalled,
            EventKind::RunSucceeded => RunEvent::Ended(End::Succeeded),
            EventKind::RunFailed => RunEvent::Ended(End::Failed),
            EventKind::RunCancelled => RunEvent::Ended(End::Cancelled),
            _ => return Ok(()),
        };
        let from = self.run.state;
        self.run.state = from.on(step).ok_or_else(|| format!("a {} run took {step:?}", from.name()))?;
        moves.note(&format!("run {}", from.name()), coverage::run_event(step));
        Ok(())
    }
}

/// What an event says happened to a task: it may be several things at once.
fn steps(task: &Task, event: &Event, timed_out: bool) -> Vec<TaskEvent> {
    use EventKind as K;
    use TaskState as S;
    let attempt = event.attempt;
    let failure = || Failure::permanent("");
    let errored = |retry| TaskEvent::Errored { attempt, failure: failure(), retry };
    // It waited for its next attempt, and that is the one meant.
    let next = task.state == S::UpForRetry && attempt > task.attempt;
    let mut steps = match (event.kind, task.state) {
        (K::TaskQueued | K::TaskDispatched | K::TaskSucceeded, S::Pending) => vec![TaskEvent::Readied],
        (
            K::TaskQueued
            | K::TaskDispatched
            | K::TaskSleeping
            | K::TaskWaiting
            | K::TaskFannedOut
            | K::TaskSucceeded,
            _,
        ) if next => {
            vec![TaskEvent::RetryDue]
        }
        (K::TaskQueued | K::TaskDispatched | K::TaskSleeping | K::TaskWaiting, S::Sleeping) => {
            vec![TaskEvent::WokeUp]
        }
        (K::TaskFailed | K::TaskRetrying, _) if next => vec![TaskEvent::RetryDue, TaskEvent::FellAsleep],
        (K::TaskFailed | K::TaskRetrying, S::Pending) => vec![TaskEvent::FellAsleep],
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
        K::TaskHandedBack => Some(TaskEvent::HandedBack { attempt }),
        K::TaskUpstreamFailed => Some(TaskEvent::UpstreamFailed),
        K::TaskSkipped => Some(TaskEvent::Skipped),
        K::TaskCancelled => Some(TaskEvent::Cancelled),
        _ => None,
    });
    steps
}
