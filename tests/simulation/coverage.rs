//! Which moves of the state machines there are, and which of them the simulated worlds have made.

use std::collections::{BTreeMap, BTreeSet};

use model::run::{End, RunEvent};
use model::task::Tally;
use model::{Child, Failure, Fan, RunState, Task, TaskEvent, TaskIndex, TaskState, WorkerId};
use uuid::Uuid;

use crate::faults::{self, Fault, Point};

/// How often each move was made: by the state it was made from and what happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moves(BTreeMap<(String, &'static str), u64>);

impl Moves {
    pub(crate) fn note(&mut self, from: &str, event: &'static str) {
        *self.0.entry((from.to_owned(), event)).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Moves) {
        for (made, count) in &other.0 {
            *self.0.entry(made.clone()).or_default() += count;
        }
    }
}

/// What happened to a task, in a word. A new event must be given one here, and be tried below.
pub(crate) fn task_event(event: &TaskEvent, current: u32) -> &'static str {
    match event {
        TaskEvent::Readied => "readied",
        TaskEvent::Released => "released",
        TaskEvent::Claimed { .. } => "claimed",
        TaskEvent::FellAsleep => "fell asleep",
        TaskEvent::WokeUp => "woke up",
        TaskEvent::Succeeded { attempt } if *attempt < current => "an earlier attempt succeeded",
        TaskEvent::Succeeded { .. } => "succeeded",
        TaskEvent::Errored { retry: true, .. } => "errored, and is tried again",
        TaskEvent::Errored { retry: false, .. } => "errored",
        TaskEvent::HandedBack { .. } => "handed back",
        TaskEvent::Cleared => "cleared",
        TaskEvent::Reopened => "reopened",
        TaskEvent::Removed => "removed",
        TaskEvent::MarkedSucceeded => "marked succeeded",
        TaskEvent::MarkedFailed { .. } => "marked failed",
        TaskEvent::GivenUp { .. } => "given up",
        TaskEvent::RetryDue => "retry due",
        TaskEvent::UpstreamFailed => "upstream failed",
        TaskEvent::Skipped => "skipped",
        TaskEvent::Cancelled => "cancelled",
    }
}

/// What happened to a run, in a word.
pub(crate) fn run_event(event: RunEvent) -> &'static str {
    match event {
        RunEvent::Started => "started",
        RunEvent::Paused => "paused",
        RunEvent::Resumed { .. } => "resumed",
        RunEvent::Reopened => "reopened",
        RunEvent::Stalled => "stalled",
        RunEvent::Moved => "moved",
        RunEvent::Ended(End::Succeeded) => "ended well",
        RunEvent::Ended(End::Failed) => "ended badly",
        RunEvent::Ended(End::Cancelled) => "ended by cancelling",
    }
}

/// What became of attempts that did not end by themselves.
pub(crate) const LOST: &str = "lost its worker";
pub(crate) const TIMED_OUT: &str = "took too long";
pub(crate) const OUTCOME_UNKNOWN: &str = "ended unknown, and must not be repeated";

/// Every move that is legal, found by asking the state machines themselves.
fn legal() -> BTreeSet<(String, &'static str)> {
    let (now, attempt) = (model::Instant::UNIX_EPOCH, 2);
    let fan = Fan { first: TaskIndex(1), total: 1, released: 1, ended: Tally::default() };
    let errored = |retry| TaskEvent::Errored { attempt, failure: Failure::permanent("no"), retry };
    let events = [
        TaskEvent::Readied,
        TaskEvent::Released,
        TaskEvent::Claimed { attempt, worker: WorkerId(Uuid::nil()) },
        TaskEvent::FellAsleep,
        TaskEvent::WokeUp,
        TaskEvent::Succeeded { attempt: 1 },
        TaskEvent::Succeeded { attempt },
        errored(true),
        errored(false),
        TaskEvent::HandedBack { attempt },
        TaskEvent::Cleared,
        TaskEvent::Reopened,
        TaskEvent::Removed,
        TaskEvent::MarkedSucceeded,
        TaskEvent::MarkedFailed { failure: Failure::permanent("no") },
        TaskEvent::GivenUp { failure: Failure::permanent("no") },
        TaskEvent::RetryDue,
        TaskEvent::UpstreamFailed,
        TaskEvent::Skipped,
        TaskEvent::Cancelled,
    ];
    let mut legal: BTreeSet<(String, &'static str)> =
        [LOST, TIMED_OUT, OUTCOME_UNKNOWN].map(|end| ("an attempt".to_owned(), end)).into();
    for state in TaskState::ALL {
        for event in &events {
            let (child, fan) = (Some(Child { of: TaskIndex(0), item: 0 }), Some(fan));
            let mut task = Task { state, attempt, child, fan, ..Task::pending(TaskIndex(0), now) };
            if task.on(event.clone(), now).is_ok() {
                legal.insert((state.name().to_owned(), task_event(event, attempt)));
            }
        }
    }
    let ends = [End::Succeeded, End::Failed, End::Cancelled].map(RunEvent::Ended);
    let steps = [
        RunEvent::Started,
        RunEvent::Paused,
        RunEvent::Resumed { started: true },
        RunEvent::Reopened,
        RunEvent::Stalled,
        RunEvent::Moved,
    ];
    for state in RunState::ALL {
        for event in steps.into_iter().chain(ends).filter(|event| state.on(*event).is_some()) {
            legal.insert((format!("run {}", state.name()), run_event(event)));
        }
    }
    legal
}

/// A move that too few worlds make to count on it.
const RARE: (&str, &str) = ("sleeping", "an earlier attempt succeeded");

/// Moves that no world makes, and why.
fn excuse(from: &str, event: &str) -> Option<&'static str> {
    match (from, event) {
        ("run stalled", _) | (_, "stalled" | "moved") => {
            Some("no run stalls: it would be a defect. `acceptance/repairs.rs` breaks rows so that one does")
        }
        RARE => Some("only if a run that failed a task is retried while the task waits for the next one"),
        _ => None,
    }
}

/// What of all that can happen has not happened.
pub(crate) fn gaps(moves: &Moves, tally: &faults::Tally) -> Vec<String> {
    let moves = legal().into_iter().filter_map(|(from, event)| {
        let made = moves.0.contains_key(&(from.clone(), event));
        (!made && excuse(&from, event).is_none()).then(|| format!("nobody {from} {event}"))
    });
    let passed = Point::ALL
        .into_iter()
        .filter(|point| !tally.passed.contains_key(point))
        .map(|point| format!("nobody passed {point:?}"));
    let injected = Fault::ALL.into_iter().flat_map(|fault| {
        let points = fault.points();
        let slots: Vec<Option<Point>> =
            if points.is_empty() { vec![None] } else { points.into_iter().map(Some).collect() };
        slots.into_iter().map(move |point| (fault, point))
    });
    let injected = injected.filter(|place| !tally.injected.contains_key(place));
    let injected = injected.map(|(fault, point)| format!("{fault:?} never injected at {point:?}"));
    moves.chain(passed).chain(injected).collect()
}

/// Moves that are excused and were made all the same: the excuse is wrong.
pub(crate) fn wrongly_excused(moves: &Moves) -> Vec<String> {
    let excused = |from: &str, event: &str| (from, event) != RARE && excuse(from, event).is_some();
    let made = moves.0.keys().filter(|(from, event)| excused(from, event));
    made.map(|(from, event)| format!("{from} {event}")).collect()
}
