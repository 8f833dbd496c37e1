//! Sensors: tasks that sleep between two polls. A timer is set for the next poll, so no process waits meanwhile. If a poll is
//! lost, the next one finds the same.

use chrono::TimeDelta;
use model::message::{PollDue, PollTarget};
use model::{
    ErrorClass, EventKind, Failure, Message, Task, TaskEvent, TaskIndex, TaskState, Timer, TimerKind,
};
use serde_json::json;

use crate::command::Outcome;
use crate::decide;
use crate::run_slice::RunSlice;

/// Puts a sensor to sleep and starts its polls.
pub(crate) fn begin(slice: &mut RunSlice<'_>, index: TaskIndex) {
    let Some(pacing) = slice.spec(index).pacing else {
        let failure = Failure::permanent("a sensor without an interval cannot begin");
        slice.apply(index, TaskEvent::FellAsleep).expect("only tasks that begin are directed");
        return decide::fail(slice, index, failure);
    };
    let until = pacing.timeout_seconds.map(|seconds| slice.now + TimeDelta::seconds(seconds.into()));
    slice.must(index, TaskEvent::FellAsleep, EventKind::TaskWaiting, json!({"sensor": true, "until": until}));
    if let Some(wake_at) = until {
        let attempt = slice.tasks[&index].attempt;
        slice.timers.set(Timer { task: Some(index), attempt, kind: TimerKind::Timeout, wake_at });
    }
    poll(slice, index);
}

/// Requests a poll, and sets the timer of the next one.
pub(crate) fn poll(slice: &mut RunSlice<'_>, index: TaskIndex) {
    let (spec, task) = (slice.spec(index), &slice.tasks[&index]);
    let Some(pacing) = spec.pacing else { return };
    let (attempt, child, since) = (task.attempt, task.child, task.started_at.unwrap_or(slice.now));
    let wake_at = pacing.next_poll(since, slice.now);
    let (key, version, failed) = (slice.key(index), slice.run.version, task.failure.is_some());
    let target = PollTarget::Task { key, attempt, version, child, since, failed };
    let due = PollDue { tenant: slice.run.tenant, queue: spec.push_queue().to_owned(), target };
    slice.messages.derive(Message::PollDue(due));
    slice.timers.set(Timer { task: Some(index), attempt, kind: TimerKind::Sleep, wake_at });
}

/// Records why a sensor's poll failed, or that it no longer fails. If that was recorded before, nothing is written.
pub(crate) fn polled(
    slice: &mut RunSlice<'_>,
    index: TaskIndex,
    attempt: u32,
    failure: Option<&Failure>,
) -> Outcome {
    let polls = |task: &Task| task.state == TaskState::Sleeping && task.attempt == attempt;
    let Some(task) = slice.tasks.get(&index).filter(|task| polls(task) && is_sensor(slice, index)) else {
        return Outcome::Stale;
    };
    if task.failure.as_ref() == failure {
        return Outcome::Stale;
    }
    slice.tasks.get_mut(&index).expect("it was found just before").failure = failure.cloned();
    slice.draft.change(index);
    Outcome::Applied
}

/// A sensor gives up: it fails, or is skipped with `soft_fail`. Its failure includes that of its last poll.
pub(crate) fn give_up(slice: &mut RunSlice<'_>, index: TaskIndex, mut failure: Failure) {
    let last = slice.tasks[&index].failure.as_ref().filter(|_| is_sensor(slice, index));
    if let Some(last) = last.filter(|_| failure.class == ErrorClass::Timeout) {
        failure.message = format!("{}; its last poll failed: {}", failure.message, last.message);
    }
    match slice.spec(index).pacing {
        Some(pacing) if pacing.soft_fail => {
            let why = json!({"gave_up": failure.message});
            slice.must(index, TaskEvent::Skipped, EventKind::TaskSkipped, why);
        }
        _ => decide::fail(slice, index, failure),
    }
}

/// Whether a task is a sensor.
pub(crate) fn is_sensor(slice: &RunSlice<'_>, index: TaskIndex) -> bool {
    slice.spec(index).pacing.is_some()
}
