//! Whether what a remote worker reports about an attempt counts: by the row of the task and its history.
//!
//! A report counts while the worker holds the attempt. One that is sent again is recognized by the event that followed from it.
//! A success that comes after the attempt was taken away still counts if no worker has started a later attempt: the work is done,
//! and nobody does it again.

use model::{ErrorClass, Event, EventKind, Failure, Instant, Task, TaskIndex, TaskState, WorkerId};

use crate::ExpectedTask;

/// How a worker says that its attempt ended.
#[derive(Clone, PartialEq, Debug)]
pub enum End {
    /// It succeeded, with whatever output.
    Succeeded,
    /// It failed, classified as the history shows it.
    Failed(Failure),
    /// Its worker handed it back.
    HandedBack,
}

/// What becomes of a report.
#[derive(Clone, PartialEq, Debug)]
pub enum Standing {
    /// It counts as long as the task is like this.
    Counts {
        /// The task as it was read.
        expected: ExpectedTask,
        /// When the worker started the attempt.
        started_at: Instant,
    },
    /// It was recorded before.
    Recorded,
    /// The attempt is not the worker's, or ended otherwise.
    Lost,
}

/// An attempt that a remote worker reports about.
#[derive(Clone, Copy, Debug)]
pub struct ReportedAttempt {
    /// The index of the task.
    pub task: TaskIndex,
    /// The number of the attempt.
    pub attempt: u32,
    /// The worker that reports.
    pub worker: WorkerId,
}

impl ReportedAttempt {
    /// The task while the worker holds the attempt.
    pub fn held(self) -> ExpectedTask {
        ExpectedTask {
            task: self.task,
            state: TaskState::Running,
            attempt: self.attempt,
            worker: Some(self.worker),
        }
    }

    /// Whether the worker holds the attempt, by the row of its task.
    pub fn is_held(self, row: &Task) -> bool {
        ExpectedTask::from(row) == self.held()
    }

    /// Whether an event is part of the history that the other questions need.
    pub fn concerns(self, event: &Event) -> bool {
        event.task == Some(self.task) && event.attempt >= self.attempt
    }

    /// What becomes of a report that the attempt ended. While the worker holds the attempt, no history is needed.
    pub fn standing(self, end: &End, row: &Task, history: &[Event]) -> Standing {
        let expected = ExpectedTask::from(row);
        if self.is_held(row) {
            return Standing::Counts { expected, started_at: row.started_at.unwrap_or(row.since) };
        }
        if self.is_recorded(end, history) {
            return Standing::Recorded;
        }
        match self.started_at(history) {
            Some(started_at) if *end == End::Succeeded && self.may_succeed_late(row, history) => {
                Standing::Counts { expected, started_at }
            }
            _ => Standing::Lost,
        }
    }

    /// Whether the worker started the attempt, and it ended as reported.
    pub fn is_recorded(self, end: &End, history: &[Event]) -> bool {
        self.started_at(history).is_some() && self.own(history).any(|event| follows(event, end))
    }

    /// Whether the worker held the attempt until it ended it itself.
    pub fn was_ended_by_worker(self, history: &[Event]) -> bool {
        self.started_at(history).is_some() && self.own(history).any(ends_by_report)
    }

    /// Whether the attempt was taken away from its worker, and no worker has started a later one.
    fn may_succeed_late(self, row: &Task, history: &[Event]) -> bool {
        let waits = matches!(row.state, TaskState::Queued | TaskState::Dispatched | TaskState::UpForRetry);
        let is_void = self.attempt <= row.voided;
        let failed = |event: &Event| event.kind != EventKind::TaskHandedBack && ends_by_report(event);
        let started_later =
            |event: &Event| event.kind == EventKind::TaskStarted && event.attempt > self.attempt;
        waits && !is_void && !self.own(history).any(failed) && !history.iter().any(started_later)
    }

    /// When the worker started the attempt; none if it did not.
    fn started_at(self, history: &[Event]) -> Option<Instant> {
        let started = |event: &&Event| {
            event.kind == EventKind::TaskStarted
                && serde_json::from_value(event.data["worker"].clone())
                    .is_ok_and(|worker: WorkerId| worker == self.worker)
        };
        self.own(history).find(started).map(|event| event.at)
    }

    fn own(self, history: &[Event]) -> impl Iterator<Item = &Event> {
        history.iter().filter(move |event| event.attempt == self.attempt)
    }
}

/// Whether an event follows from a report of that end.
fn follows(event: &Event, end: &End) -> bool {
    match (event.kind, end) {
        (EventKind::TaskSucceeded, End::Succeeded) | (EventKind::TaskHandedBack, End::HandedBack) => true,
        // An output that does not fit the type of its task is recorded as a failure.
        (EventKind::TaskFailed, End::Succeeded) => {
            event.actor.is_none() && event.data["class"] == ErrorClass::Permanent.name()
        }
        // A task that must not be repeated failed when it was handed back.
        (EventKind::TaskFailed, End::HandedBack) => event.data["handed_back"] == true,
        (EventKind::TaskFailed | EventKind::TaskRetrying, End::Failed(failure)) => {
            event.data["class"] == failure.class.name() && event.data["message"] == failure.message
        }
        _ => false,
    }
}

/// Whether an event certainly follows from a report of the worker: the sweep ends attempts as lost or timed out.
fn ends_by_report(event: &Event) -> bool {
    let by_sweep =
        [ErrorClass::WorkerLost, ErrorClass::Timeout, ErrorClass::OutcomeUnknown].map(ErrorClass::name);
    match event.kind {
        EventKind::TaskSucceeded | EventKind::TaskHandedBack => true,
        EventKind::TaskFailed | EventKind::TaskRetrying => {
            event.data["handed_back"] == true
                || event.actor.is_none() && by_sweep.iter().all(|class| event.data["class"] != *class)
        }
        _ => false,
    }
}
