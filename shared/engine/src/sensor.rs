//! Sensors: tasks that sleep between two looks. A timer says when the next look is due, so nothing of ours runs
//! meanwhile, and a look that got lost is made up for by the next.

use chrono::TimeDelta;
use model::message::{PollDue, Watch};
use model::{
    ErrorClass, EventKind, Failure, Message, Task, TaskEvent, TaskIndex, TaskState, Timer, TimerKind,
};
use serde_json::json;

use crate::command::Outcome;
use crate::decide;
use crate::run_slice::RunSlice;

/// Lets a sensor begin to look.
pub(crate) fn watch(slice: &mut RunSlice<'_>, index: TaskIndex) {
    let Some(pacing) = slice.spec(index).pacing else {
        let failure = Failure::permanent("a sensor that does not say how often it looks cannot begin");
        slice.apply(index, TaskEvent::FellAsleep).expect("only tasks that begin are directed");
        return decide::fail(slice, index, failure);
    };
    let until = pacing.timeout_seconds.map(|seconds| slice.now + TimeDelta::seconds(seconds.into()));
    slice.must(index, TaskEvent::FellAsleep, EventKind::TaskWaiting, json!({"sensor": true, "until": until}));
    if let Some(wake_at) = until {
        let attempt = slice.tasks[&index].attempt;
        slice.timers.set(Timer { task: Some(index), attempt, kind: TimerKind::Timeout, wake_at });
    }
    look(slice, index);
}

/// Asks for a look, and says when the next one is due.
pub(crate) fn look(slice: &mut RunSlice<'_>, index: TaskIndex) {
    let (spec, task) = (slice.spec(index), &slice.tasks[&index]);
    let Some(pacing) = spec.pacing else { return };
    let (attempt, child, since) = (task.attempt, task.child, task.started_at.unwrap_or(slice.now));
    let wake_at = pacing.next_poll(since, slice.now);
    let (key, version, failed) = (slice.key(index), slice.run.version, task.failure.is_some());
    let watch = Watch::Task { key, attempt, version, child, since, failed };
    let due = PollDue { tenant: slice.run.tenant, queue: spec.queue.clone(), watch };
    slice.messages.derive(Message::PollDue(due));
    slice.timers.set(Timer { task: Some(index), attempt, kind: TimerKind::Sleep, wake_at });
}

/// Notes why a sensor's look failed, or that it no longer does. While the same is true, nothing is written.
pub(crate) fn polled(
    slice: &mut RunSlice<'_>,
    index: TaskIndex,
    attempt: u32,
    failure: Option<&Failure>,
) -> Outcome {
    let looks = |task: &Task| task.state == TaskState::Sleeping && task.attempt == attempt;
    let Some(task) = slice.tasks.get(&index).filter(|task| looks(task) && is_sensor(slice, index)) else {
        return Outcome::Stale;
    };
    if task.failure.as_ref() == failure {
        return Outcome::Stale;
    }
    slice.tasks.get_mut(&index).expect("it was just looked at").failure = failure.cloned();
    slice.draft.change(index);
    Outcome::Applied
}

/// A sensor gives up, and says why its last look failed, if it did: it fails, or is skipped where it may.
pub(crate) fn give_up(slice: &mut RunSlice<'_>, index: TaskIndex, mut failure: Failure) {
    let last = slice.tasks[&index].failure.as_ref().filter(|_| is_sensor(slice, index));
    if let Some(last) = last.filter(|_| failure.class == ErrorClass::Timeout) {
        failure.message = format!("{}; its last look failed: {}", failure.message, last.message);
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
