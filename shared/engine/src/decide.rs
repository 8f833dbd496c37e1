//! Applies each command to a slice: state in, changes out. The same slice and command give the same changes.

use chrono::TimeDelta;
use model::message::TaskResult;
use model::{
    AttemptRecord, ErrorClass, EventKind, Failure, Instant, Occasion, Task, TaskEvent, TaskIndex, TaskState,
    Timer, TimerKind, WorkerId,
};
use serde_json::{Value, json};

use crate::command::{Command, ExpectedTask, Outcome};
use crate::retry::{self, Choice};
use crate::run_slice::RunSlice;
use crate::{breaker, close, operate, oversee, propagate, repair, sensor, signals, slot};

impl RunSlice<'_> {
    /// Decides a command. The tasks in its reach must be in the slice; one that is not does not exist.
    pub fn decide(&mut self, command: &Command) -> Outcome {
        match command {
            Command::Claim { task, attempt, worker } => match breaker::refusal(self, command) {
                Some(reason) => hold_back(self, *task, *attempt, &reason),
                None => claim(self, *task, *attempt, *worker),
            },
            Command::Report { task, attempt, worker, started_at, result } => match result {
                TaskResult::Succeeded(output) => {
                    report_success(self, *task, *attempt, *worker, *started_at, output)
                }
                TaskResult::Failed(failure) => {
                    report_failure(self, *task, *attempt, *worker, *started_at, failure)
                }
            },
            Command::Expecting { task, then } => match self.tasks.get(&task.task).map(ExpectedTask::from) {
                Some(is) if is == *task => self.decide(then),
                _ => Outcome::Stale,
            },
            Command::Lose { task, attempt, worker } => lose(self, *task, *attempt, *worker),
            Command::HandBack { task, attempt, worker, reason, saved } => {
                hand_back(self, *task, *attempt, *worker, (reason.as_str(), *saved))
            }
            Command::Wake { task: Some(task), attempt, kind } => wake(self, *task, *attempt, *kind),
            Command::Wake { task: None, kind, .. } => oversee::wake_run(self, *kind),
            Command::Polled { task, attempt, failure } => {
                sensor::polled(self, *task, *attempt, failure.as_ref())
            }
            Command::Rejoin { task, attempt } => rejoin(self, *task, *attempt),
            Command::Release { task, attempt } => slot::take_slot(self, *task, *attempt),
            Command::Admit => oversee::admit(self),
            Command::CalledBack { what, error } => oversee::called_back(self, what, error.as_deref()),
            Command::Signal { name, payload, actor } => signals::signal(self, name, payload, actor),
            Command::Answer { task, approved, payload, actor } => {
                signals::answer(self, *task, *approved, payload, actor)
            }
            Command::Cancel { actor, reason } => oversee::cancel(self, actor, reason.as_deref()),
            Command::Operate { operation, by } => operate::operate(self, operation, by),
            Command::Recount { audit } => repair::recount(self, audit),
            Command::Recheck { claim_timeout, served } => {
                oversee::recheck(self, *claim_timeout, served.as_ref())
            }
        }
    }
}

fn claim(slice: &mut RunSlice<'_>, index: TaskIndex, attempt: u32, worker: WorkerId) -> Outcome {
    let held = slice.tasks.get(&index).is_some_and(|task| {
        task.state == TaskState::Running && task.attempt == attempt && task.worker == Some(worker)
    });
    if held {
        // The response to its first claim got lost: the attempt is its own all the same.
        return Outcome::Applied;
    }
    if slice.run.state.is_final() || !moves(slice, index, TaskEvent::Claimed { attempt, worker }) {
        return Outcome::Stale;
    }
    slice.record(EventKind::TaskStarted, Some(index), None, json!({"worker": worker}));
    Outcome::Applied
}

/// The breaker of a task does not let the claimed attempt begin: it gives its slots back and waits for the breaker like the
/// others. It is not the worker's, for which the claim came too late.
fn hold_back(slice: &mut RunSlice<'_>, index: TaskIndex, attempt: u32, reason: &str) -> Outcome {
    put_back(slice, index, attempt, reason);
    Outcome::Stale
}

/// A failure counts only if the worker that holds the attempt reports it: another one may have got a duplicate message.
fn report_failure(
    slice: &mut RunSlice<'_>,
    index: TaskIndex,
    attempt: u32,
    worker: Option<WorkerId>,
    started_at: Instant,
    failure: &Failure,
) -> Outcome {
    if !holds(slice, index, attempt) || slice.tasks[&index].worker != worker {
        return Outcome::Stale;
    }
    let before = slice.tasks[&index].state;
    begun(slice, index, started_at, before);
    sensor::give_up(slice, index, failure.clone());
    Outcome::Applied
}

pub(crate) fn succeed(
    slice: &mut RunSlice<'_>,
    index: TaskIndex,
    attempt: u32,
    started_at: Instant,
    output: &Value,
) -> Outcome {
    report_success(slice, index, attempt, None, started_at, output)
}

/// A success from any reporter counts, unless the task has ended or its attempt is void: the work was done.
fn report_success(
    slice: &mut RunSlice<'_>,
    index: TaskIndex,
    attempt: u32,
    worker: Option<WorkerId>,
    started_at: Instant,
    output: &Value,
) -> Outcome {
    let Some(before) = slice.tasks.get(&index).cloned() else { return Outcome::Stale };
    if !moves(slice, index, TaskEvent::Succeeded { attempt }) {
        return Outcome::Stale;
    }
    if attempt < before.attempt || before.state == TaskState::UpForRetry {
        replace_attempt(slice, attempt, (worker, started_at), &before);
    } else {
        begun(slice, index, started_at, before.state);
    }
    breaker::note(slice, index, before.state, None);
    slice.draft.deliver(index, output);
    slice.record(EventKind::TaskSucceeded, Some(index), None, Value::Null);
    slice.last_event().attempt = attempt;
    Outcome::Applied
}

/// An attempt that was given up on succeeded after all: its success counts, and the attempt that was to replace it is not
/// needed.
fn replace_attempt(
    slice: &mut RunSlice<'_>,
    late: u32,
    (worker, started_at): (Option<WorkerId>, Instant),
    before: &Task,
) {
    let record = |attempt, state, decision: &str| AttemptRecord {
        task: before.index,
        attempt,
        state,
        worker: before.worker,
        started_at: before.started_at,
        finished_at: slice.now,
        failure: None,
        decision: decision.into(),
        next_attempt_at: None,
    };
    let delivered = AttemptRecord {
        worker,
        started_at: Some(started_at),
        ..record(late, TaskState::Succeeded, "succeeded late; its success counts")
    };
    let replaced = (before.attempt > late)
        .then(|| record(before.attempt, TaskState::Cancelled, "an earlier attempt succeeded"));
    [Some(delivered), replaced].into_iter().flatten().for_each(|record| slice.draft.archive(record));
}

fn lose(slice: &mut RunSlice<'_>, index: TaskIndex, attempt: u32, worker: WorkerId) -> Outcome {
    let held_by = slice.tasks.get(&index).and_then(|task| task.worker);
    if held_by != Some(worker) || !holds(slice, index, attempt) {
        return Outcome::Stale;
    }
    fail(slice, index, Failure::new(ErrorClass::WorkerLost, "worker died"));
    Outcome::Applied
}

/// The attempt is over without an end of its own; the next one follows at once, and uses up no retry. Only a task that must not
/// be repeated, and saved nothing to resume from, fails.
fn hand_back(
    slice: &mut RunSlice<'_>,
    index: TaskIndex,
    attempt: u32,
    worker: WorkerId,
    (reason, saved): (&str, bool),
) -> Outcome {
    if slice.tasks.get(&index).is_none_or(|task| task.worker != Some(worker)) {
        return Outcome::Stale;
    }
    if slice.spec(index).idempotent == Some(false) && !saved && holds(slice, index, attempt) {
        let message = format!("handed back without a checkpoint: {reason}");
        fail(slice, index, Failure::new(ErrorClass::WorkerLost, message));
        slice.last_event().data["handed_back"] = true.into();
        return Outcome::Applied;
    }
    if put_back(slice, index, attempt, reason) { Outcome::Applied } else { Outcome::Stale }
}

/// Queues a task again whose attempt is over, or never began. Returns whether it was at that attempt.
fn put_back(slice: &mut RunSlice<'_>, index: TaskIndex, attempt: u32, reason: &str) -> bool {
    let Some(before) = slice.tasks.get(&index).cloned() else { return false };
    if !moves(slice, index, TaskEvent::HandedBack { attempt }) {
        return false;
    }
    let data = match before.worker {
        Some(worker) => json!({"worker": worker, "reason": reason}),
        None => json!({"reason": reason}),
    };
    slice.record(EventKind::TaskHandedBack, Some(index), None, data);
    slice.last_event().attempt = attempt;
    slice.draft.archive(AttemptRecord {
        task: index,
        attempt,
        state: TaskState::Cancelled,
        worker: before.worker,
        started_at: before.started_at,
        finished_at: slice.now,
        failure: None,
        decision: format!("handed back: {reason}"),
        next_attempt_at: Some(slice.now),
    });
    propagate::relaunch(slice, index);
    true
}

fn wake(slice: &mut RunSlice<'_>, index: TaskIndex, attempt: u32, kind: TimerKind) -> Outcome {
    if slice.tasks.get(&index).is_none_or(|task| task.attempt != attempt) {
        return Outcome::Stale;
    }
    match kind {
        TimerKind::Retry if moves(slice, index, TaskEvent::RetryDue) => propagate::relaunch(slice, index),
        TimerKind::Timeout if slice.tasks[&index].state == TaskState::Sleeping => {
            sensor::give_up(slice, index, Failure::new(ErrorClass::Timeout, "timed out while waiting"));
        }
        TimerKind::Sleep
            if slice.tasks[&index].state == TaskState::Sleeping && sensor::is_sensor(slice, index) =>
        {
            sensor::poll(slice, index)
        }
        TimerKind::Sleep if slice.tasks[&index].state == TaskState::Sleeping => {
            slice.must(index, TaskEvent::Succeeded { attempt }, EventKind::TaskSucceeded, Value::Null)
        }
        _ => return Outcome::Stale,
    }
    Outcome::Applied
}

fn rejoin(slice: &mut RunSlice<'_>, index: TaskIndex, attempt: u32) -> Outcome {
    let waits = slice.tasks.get(&index).is_some_and(|task| task.attempt == attempt)
        && slice.spec(index).global.is_some();
    if !waits || !moves(slice, index, TaskEvent::WokeUp) {
        return Outcome::Stale;
    }
    slice.open.needs_directive(index);
    Outcome::Applied
}

/// The current attempt failed: another one follows, at once or by a timer, or the task has failed.
pub(crate) fn fail(slice: &mut RunSlice<'_>, index: TaskIndex, failure: Failure) {
    let task = &slice.tasks[&index];
    let (attempt, worker, started_at, before) = (task.attempt, task.worker, task.started_at, task.state);
    let failure = retry::classify(slice.spec(index), failure);
    let choice = choose(slice, index, &failure);
    let retry = matches!(choice, Choice::Retry { .. });
    breaker::note(slice, index, before, Some(&failure));
    slice
        .apply(index, TaskEvent::Errored { attempt, failure: failure.clone(), retry })
        .expect("only attempts that are held can fail");
    let error = json!({"class": failure.class, "message": failure.message});
    match choice {
        Choice::GiveUp { reason } => {
            slice.record(EventKind::TaskFailed, Some(index), None, with(error, "reason", json!(reason)));
        }
        Choice::Retry { delay, reason } => {
            let data =
                with(with(error, "reason", json!(reason)), "delay_ms", json!(delay.num_milliseconds()));
            slice.record(EventKind::TaskRetrying, Some(index), None, data);
            close::call_back_for(slice, index, Occasion::Retry);
            close::call_back_for_run(slice, Some(index), Occasion::Retry);
            slice.draft.archive(AttemptRecord {
                task: index,
                attempt,
                state: TaskState::Failed,
                worker,
                started_at,
                finished_at: slice.now,
                failure: Some(failure),
                decision: reason,
                next_attempt_at: Some(slice.now + delay),
            });
            try_again(slice, index, attempt, delay);
        }
    }
}

/// Whether another attempt follows.
fn choose(slice: &RunSlice<'_>, index: TaskIndex, failure: &Failure) -> Choice {
    let (task, spec) = (&slice.tasks[&index], slice.spec(index));
    if !spec.kind.is_retryable() {
        return Choice::GiveUp { reason: "engine tasks are not retried".into() };
    }
    let choice = retry::choose(spec, slice.key(index), task, failure);
    match (&choice, give_up_at(slice, index), spec.retry_timeout_seconds) {
        (Choice::Retry { delay, .. }, Some(end), Some(limit)) if slice.now + *delay >= end => {
            Choice::GiveUp { reason: format!("its retry_timeout_seconds of {limit} would be over") }
        }
        _ => choice,
    }
}

/// When all attempts at a task together have taken as long as they may.
pub(crate) fn give_up_at(slice: &RunSlice<'_>, index: TaskIndex) -> Option<Instant> {
    let limit = slice.spec(index).retry_timeout_seconds?;
    Some(slice.tasks[&index].begun_at? + TimeDelta::seconds(limit.into()))
}

fn try_again(slice: &mut RunSlice<'_>, index: TaskIndex, attempt: u32, delay: TimeDelta) {
    if delay.is_zero() {
        slice.apply(index, TaskEvent::RetryDue).expect("it has just been put up for retry");
        propagate::relaunch(slice, index);
    } else {
        let wake_at = slice.now + delay;
        slice.timers.set(Timer { task: Some(index), attempt, kind: TimerKind::Retry, wake_at });
    }
}

/// Whether `attempt` is the one that may report a failure.
pub(crate) fn holds(slice: &RunSlice<'_>, index: TaskIndex, attempt: u32) -> bool {
    let Some(task) = slice.tasks.get(&index).filter(|task| task.attempt == attempt) else { return false };
    match task.state {
        TaskState::Dispatched | TaskState::Running => true,
        TaskState::Sleeping => waits_for_others(slice, index) || sensor::is_sensor(slice, index),
        _ => false,
    }
}

/// Whether a sleeping task's work is done by another run, which reports.
pub(crate) fn waits_for_others(slice: &RunSlice<'_>, index: TaskIndex) -> bool {
    let spec = slice.spec(index);
    spec.kind.starts_run() || spec.global.is_some()
}

pub(crate) fn moves(slice: &mut RunSlice<'_>, index: TaskIndex, event: TaskEvent) -> bool {
    slice.knows(index) && slice.apply(index, event).is_ok()
}

/// An attempt says with its report when its work began: one that was claimed, a while after that. What only sleeps
/// began when it fell asleep.
fn begun(slice: &mut RunSlice<'_>, index: TaskIndex, started_at: Instant, before: TaskState) {
    let task = slice.tasks.get_mut(&index).expect("it has just been moved");
    let began = started_at.min(slice.now);
    match &mut task.started_at {
        Some(claimed) if before == TaskState::Running => *claimed = began.max(*claimed),
        Some(_) => {}
        None => task.started_at = Some(began),
    }
}

pub(crate) fn unfinished(slice: &RunSlice<'_>, wanted: impl Fn(&model::Task) -> bool) -> Vec<TaskIndex> {
    let open = slice.tasks.values().filter(|task| !task.state.is_final() && wanted(task));
    open.map(|task| task.index).collect()
}

fn with(mut object: Value, name: &str, value: Value) -> Value {
    object[name] = value;
    object
}
