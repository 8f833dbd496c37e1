//! The operations of people on an existing run: pause and resume it, re-run parts of it, mark tasks.
//!
//! Each is recorded with the actor and the reason. Which tasks run again, and how they are reset, is in `rerun`.

use chrono::TimeDelta;
use model::run::RunEvent;
use model::{EventKind, Failure, TaskEvent, TaskIndex, TaskKind, TaskState};
use serde_json::{Value, json};

use crate::command::{By, Mark, Operation, Outcome};
use crate::oversee::RECHECK_WHILE_WAITING;
use crate::run_slice::{RECHECK_AFTER, RunSlice};
use crate::{decide, fan_out, oversee, propagate, rerun, sensor, slot};

/// Decides an operation on the run or on one of its tasks.
pub(crate) fn operate(slice: &mut RunSlice<'_>, operation: &Operation, by: &By) -> Outcome {
    let applied = match operation {
        Operation::Pause => pause(slice, by),
        Operation::Resume => resume(slice, by),
        Operation::Retry => rerun::retry(slice, by),
        Operation::Evaluate => evaluate(slice, by),
        Operation::Clear(task) => slice.knows(*task) && rerun::clear(slice, *task, by),
        Operation::Mark(task, end) => slice.knows(*task) && mark(slice, *task, end, by),
        Operation::Wake(task) => slice.knows(*task) && wake_now(slice, *task, by),
    };
    if applied { Outcome::Applied } else { Outcome::Stale }
}

fn pause(slice: &mut RunSlice<'_>, by: &By) -> bool {
    let paused = slice.run.state.on(RunEvent::Paused).filter(|_| slice.run.counts.unfinished() > 0);
    let Some(state) = paused else { return false };
    slice.run.state = state;
    note(slice, EventKind::RunPaused, None, by, json!({}));
    // What came together with it has not begun either.
    slice.slots.drop_requests();
    slice.open.drop_directives();
    decide::unfinished(slice, |task| task.state == TaskState::Queued)
        .into_iter()
        .for_each(|index| slot::leave_queue(slice, index));
    slice.recheck.at(slice.now + RECHECK_WHILE_WAITING);
    true
}

fn resume(slice: &mut RunSlice<'_>, by: &By) -> bool {
    let resumed = RunEvent::Resumed { started: slice.run.started_at.is_some() };
    let Some(state) = slice.run.state.on(resumed) else { return false };
    slice.run.state = state;
    note(slice, EventKind::RunResumed, None, by, json!({}));
    slice.recheck.at(slice.now + RECHECK_AFTER);
    if !slice.run.waiting {
        go_on(slice);
    }
    true
}

/// Begins what a pause or the run's concurrency group held back.
pub(crate) fn go_on(slice: &mut RunSlice<'_>) {
    for index in decide::unfinished(slice, |task| task.state == TaskState::Queued) {
        propagate::relaunch(slice, index);
    }
    for index in decide::unfinished(slice, |task| task.state == TaskState::Pending) {
        if had_its_turn(slice, index) {
            propagate::ready(slice, index);
        } else {
            propagate::consider(slice, index);
        }
    }
    fan_out::turn_all(slice);
}

/// Whether a task is a child of a fan-out that may begin: one that was cleared while the run was paused.
fn had_its_turn(slice: &RunSlice<'_>, index: TaskIndex) -> bool {
    let place = slice.tasks[&index].child;
    let fan = place.and_then(|place| slice.tasks.get(&place.of)?.fan);
    place.zip(fan).is_some_and(|(place, fan)| place.item < fan.released)
}

fn evaluate(slice: &mut RunSlice<'_>, by: &By) -> bool {
    if slice.run.state.is_final() {
        return false;
    }
    note(slice, EventKind::RunEvaluated, None, by, json!({}));
    oversee::recheck(slice, TimeDelta::zero(), None);
    true
}

fn wake_now(slice: &mut RunSlice<'_>, index: TaskIndex, by: &By) -> bool {
    let task = &slice.tasks[&index];
    let (state, attempt) = (task.state, task.attempt);
    match state {
        TaskState::Sleeping if slice.spec(index).kind == TaskKind::Sleep => {
            note(slice, EventKind::TaskWoken, Some(index), by, json!({}));
            let succeeded = TaskEvent::Succeeded { attempt };
            slice.must(index, succeeded, EventKind::TaskSucceeded, Value::Null);
        }
        TaskState::Sleeping if sensor::is_sensor(slice, index) => {
            note(slice, EventKind::TaskWoken, Some(index), by, json!({}));
            sensor::poll(slice, index);
        }
        TaskState::UpForRetry => {
            slice.apply(index, TaskEvent::RetryDue).expect("the state was matched just before");
            note(slice, EventKind::TaskWoken, Some(index), by, json!({}));
            propagate::relaunch(slice, index);
        }
        _ => return false,
    }
    true
}

/// Ends a task as a person says. One that had ended otherwise is cleared first, with everything downstream.
fn mark(slice: &mut RunSlice<'_>, index: TaskIndex, mark: &Mark, by: &By) -> bool {
    let task = &slice.tasks[&index];
    let said_before = match mark {
        Mark::Succeeded(output) => task.state == TaskState::Succeeded && output.is_null(),
        Mark::Failed => task.state == TaskState::Failed,
    };
    // A child counts once for its fan-out, after it had its turn.
    let uncounted = task.child.is_some() && (task.state.is_final() || task.state == TaskState::Pending);
    if said_before || uncounted || task.state == TaskState::Removed {
        return false;
    }
    let mut taken_back = Default::default();
    if task.state.is_final() {
        taken_back = rerun::with_descendants(slice, index);
        rerun::take_back(slice, &taken_back, by);
    } else {
        rerun::let_go_of_work(slice, index, by);
    }
    end_as(slice, index, mark, by);
    rerun::reconsider(slice, &taken_back);
    true
}

fn end_as(slice: &mut RunSlice<'_>, index: TaskIndex, mark: &Mark, by: &By) {
    let (event, name) = match mark {
        Mark::Succeeded(output) => {
            slice.recall_choice(index, output);
            slice.draft.deliver(index, output);
            (TaskEvent::MarkedSucceeded, "succeeded")
        }
        Mark::Failed => {
            let why = by.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let failure = Failure::permanent(format!("{} marked it as failed{why}", by.actor));
            (TaskEvent::MarkedFailed { failure }, "failed")
        }
    };
    slice.apply(index, event).expect("what has not ended can be marked");
    note(slice, EventKind::TaskMarked, Some(index), by, json!({"as": name}));
}

/// Records an operation, with its actor and reason.
pub(crate) fn note(
    slice: &mut RunSlice<'_>,
    kind: EventKind,
    task: Option<TaskIndex>,
    by: &By,
    mut data: Value,
) {
    if let Some(reason) = &by.reason {
        data["reason"] = json!(reason);
    }
    let data = if data == json!({}) { Value::Null } else { data };
    slice.record(kind, task, Some(&by.actor), data);
}
