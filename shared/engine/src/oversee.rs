//! Decisions about a run as a whole: its concurrency group, its time limits, its end from outside, and rechecks.

use chrono::TimeDelta;
use model::change::Recheck;
use model::message::CancelRequested;
use model::run::RunEvent;
use model::{
    ErrorClass, EventKind, Failure, Instant, Message, Occasion, RunId, ServedQueues, Task, TaskEvent,
    TaskIndex, TaskState, Timer, TimerKind,
};
use serde_json::{Value, json};

use crate::command::Outcome;
use crate::run_slice::{RECHECK_AFTER, RunSlice};
use crate::{close, decide, fan_out, operate, propagate, retry};

/// How long past its time-out an attempt is left to the worker that holds it, which asks it to end, gives it half a
/// minute and then kills it.
const TIMEOUT_SLACK: TimeDelta = TimeDelta::seconds(60);

/// When the sweep rechecks a run that only waits for timers or is paused.
pub(crate) const RECHECK_WHILE_WAITING: TimeDelta = TimeDelta::minutes(10);

/// Others in the run's group have ended: it begins.
pub(crate) fn admit(slice: &mut RunSlice<'_>) -> Outcome {
    if slice.run.state.is_final() || !slice.run.waiting {
        return Outcome::Stale;
    }
    slice.run.waiting = false;
    slice.record(EventKind::RunAdmitted, None, None, Value::Null);
    operate::go_on(slice);
    slice.recheck.at(slice.now + RECHECK_AFTER);
    Outcome::Applied
}

/// One of the run's own timers is due.
pub(crate) fn wake_run(slice: &mut RunSlice<'_>, kind: TimerKind) -> Outcome {
    // A run whose last task ended just now is in time, though its end is derived only at the close.
    if slice.run.state.is_final() || slice.run.counts.unfinished() == 0 {
        return Outcome::Stale;
    }
    slice.timers.unset(None);
    match kind {
        TimerKind::Timeout => time_out(slice),
        TimerKind::Deadline => {
            set_timeout(slice);
            slice.record(EventKind::RunMissedDeadline, None, None, Value::Null);
            close::call_back_for_run(slice, None, Occasion::MissedDeadline);
        }
        TimerKind::Retry | TimerKind::Sleep => return Outcome::Stale,
    }
    Outcome::Applied
}

/// The run took too long: the tasks that had begun fail, and the others cannot begin any more.
fn time_out(slice: &mut RunSlice<'_>) {
    let limit = slice.graph.workflow().timeout_seconds.unwrap_or_default();
    let message = format!("the run took longer than its timeout_seconds of {limit}");
    slice.record(EventKind::RunTimedOut, None, None, json!({"timeout_seconds": limit}));
    // Counted for itself, since the tasks that were still open may all be allowed to fail.
    slice.run.failures += 1;
    slice.run.error.get_or_insert(message.clone());
    abandon(slice, "the run's time-out");
    let failure = Failure::new(ErrorClass::Timeout, message);
    for index in decide::unfinished(slice, |_| true) {
        if slice.tasks[&index].state == TaskState::Pending {
            slice.must(index, TaskEvent::UpstreamFailed, EventKind::TaskUpstreamFailed, Value::Null);
        } else {
            let data = json!({"class": failure.class, "message": failure.message});
            slice.must(index, TaskEvent::GivenUp { failure: failure.clone() }, EventKind::TaskFailed, data);
        }
    }
    drop_the_rest(slice);
}

/// The run ends from outside: so do the runs that its tasks started and wait for.
fn abandon(slice: &mut RunSlice<'_>, actor: &str) {
    slice.abandoned = true;
    let reason = format!("the run {} that started it ended", slice.run.id);
    for index in decide::unfinished(slice, |_| true) {
        cancel_child(slice, index, actor, &reason);
    }
}

/// Requests the end of the run that a task started and waits for, if it waits for one.
pub(crate) fn cancel_child(slice: &mut RunSlice<'_>, index: TaskIndex, actor: &str, reason: &str) {
    let task = &slice.tasks[&index];
    if task.state == TaskState::Sleeping && slice.spec(index).kind.starts_run() {
        let run = RunId::of_task(slice.key(index), task.attempt);
        let (actor, reason) = (actor.into(), reason.into());
        slice.messages.store(Message::CancelRequested(CancelRequested { run, actor, reason }));
    }
}

/// Records that a callback about the run was delivered, or could not be.
pub(crate) fn called_back(slice: &mut RunSlice<'_>, what: &str, error: Option<&str>) -> Outcome {
    slice.record(EventKind::RunCalledBack, None, None, json!({"what": what, "error": error}));
    Outcome::Applied
}

pub(crate) fn cancel(slice: &mut RunSlice<'_>, actor: &str, reason: Option<&str>) -> Outcome {
    let open: Vec<TaskIndex> = decide::unfinished(slice, |_| true);
    if slice.run.state.is_final() || open.is_empty() {
        return Outcome::Stale;
    }
    let data = reason.map_or(Value::Null, |reason| json!({"reason": reason}));
    abandon(slice, actor);
    for index in open {
        slice.apply(index, TaskEvent::Cancelled).expect("whatever has not ended can be cancelled");
        slice.record(EventKind::TaskCancelled, Some(index), Some(actor), data.clone());
    }
    drop_the_rest(slice);
    Outcome::Applied
}

/// Finds what was lost, and repairs it: messages that had no effect, attempts that never ended.
pub(crate) fn recheck(
    slice: &mut RunSlice<'_>,
    claim_timeout: TimeDelta,
    served: Option<&ServedQueues>,
) -> Outcome {
    let now = slice.now;
    if slice.run.waiting {
        // The message that the group has room may have got lost.
        close::republish_concurrency_group(slice);
        slice.recheck.at(now + RECHECK_AFTER);
        return Outcome::Applied;
    }
    if slice.is_paused() {
        end_overdue(slice);
        slice.recheck.at(now + RECHECK_WHILE_WAITING);
        return Outcome::Applied;
    }
    let waiting = decide::unfinished(slice, |task| task.state == TaskState::Sleeping);
    let for_others: Vec<TaskIndex> =
        waiting.into_iter().filter(|index| decide::waits_for_others(slice, *index)).collect();
    // Their request, or the message that it is done, may have got lost: they request it again.
    let overdue = |index: &&TaskIndex| slice.tasks[index].since + claim_timeout <= now;
    let overdue: Vec<TaskIndex> = for_others.iter().filter(overdue).copied().collect();
    overdue.into_iter().for_each(|index| slice.open.needs_directive(index));
    fail_untaken(slice, served);
    for index in decide::unfinished(slice, |task| {
        task.state == TaskState::Dispatched && task.since + claim_timeout <= now
    }) {
        slice.record(EventKind::TaskRedispatched, Some(index), None, Value::Null);
        propagate::dispatch(slice, index);
    }
    end_overdue(slice);
    // A task whose grant got lost, or that is missing from its wait queue, requests its slot again.
    decide::unfinished(slice, |task| task.state == TaskState::Queued)
        .into_iter()
        .for_each(|index| propagate::relaunch(slice, index));
    decide::unfinished(slice, |task| task.state == TaskState::Pending)
        .into_iter()
        .for_each(|index| propagate::consider(slice, index));
    fan_out::turn_all(slice);
    let waiting = !decide::unfinished(slice, |task| task.state == TaskState::Pending).is_empty();
    let moving = !decide::unfinished(slice, |task| task.state != TaskState::Pending).is_empty();
    if waiting && !moving && close::is_at_rest(slice) {
        stall(slice);
    }
    slice.recheck.done(claim_timeout);
    Outcome::Applied
}

/// Whether a task was given a slot here, or began to wait for one or for another run.
pub(crate) fn has_begun_something(slice: &RunSlice<'_>) -> bool {
    slice.slots.moves().any(|(index, _)| {
        let state = slice.tasks[&index].state;
        let waits = state == TaskState::Sleeping && decide::waits_for_others(slice, index);
        state.holds_slots() || state == TaskState::Queued || waits
    })
}

/// When to recheck the run next, after a recheck of everything unfinished. A message that was too young to count as
/// lost counts as lost before a full interval is over: otherwise a recheck that comes early puts off the repair.
pub(crate) fn next_recheck(slice: &RunSlice<'_>, claim_timeout: TimeDelta) -> Recheck {
    if slice.run.state.is_final() {
        return Recheck::Never;
    }
    let any = |wanted: &dyn Fn(&Task) -> bool| !decide::unfinished(slice, wanted).is_empty();
    let for_others =
        |task: &Task| task.state == TaskState::Sleeping && decide::waits_for_others(slice, task.index);
    if any(&|task| task.state.holds_slots()) || any(&for_others) {
        let by_message = |task: &Task| task.state == TaskState::Dispatched || for_others(task);
        let due = |index: TaskIndex| [slice.tasks[&index].since + claim_timeout, untaken_at(slice, index)];
        let young =
            decide::unfinished(slice, by_message).into_iter().flat_map(due).filter(|at| *at > slice.now);
        Recheck::At(young.chain([slice.now + RECHECK_AFTER]).min().unwrap_or(slice.now))
    } else if any(&|task| task.state == TaskState::Queued) || !any(&|task| task.state != TaskState::Pending) {
        Recheck::At(slice.now + RECHECK_WHILE_WAITING)
    } else {
        // Its timers are rows, and signals and answers arrive as commands: a run that sleeps costs nothing.
        Recheck::Never
    }
}

/// Ends attempts that took too long, and that their workers did not end.
fn end_overdue(slice: &mut RunSlice<'_>) {
    let now = slice.now;
    for index in decide::unfinished(slice, |task| task.state == TaskState::Running) {
        let timeout = slice.spec(index).timeout_seconds;
        let started_at = slice.tasks[&index].started_at.unwrap_or(now);
        let end = started_at + TimeDelta::seconds(timeout.into());
        if decide::give_up_at(slice, index).map_or(end, |give_up_at| end.min(give_up_at)) + TIMEOUT_SLACK
            <= now
        {
            let message = format!("the attempt took longer than its timeout_seconds of {timeout}");
            let failure = Failure::new(ErrorClass::Timeout, message);
            decide::fail(slice, index, retry::unreported(slice.spec(index), failure));
        }
    }
}

/// Fails dispatched attempts that no worker took in time. Where their author set no time, only leased ones fail that no
/// worker of their queue can run: a backlog is no reason, and what is pushed is pushed again. `served` is none if nothing is
/// known, such as after a restart.
fn fail_untaken(slice: &mut RunSlice<'_>, served: Option<&ServedQueues>) {
    let (now, tenant) = (slice.now, slice.run.tenant);
    let Some(served) = served else { return };
    for index in decide::unfinished(slice, |task| task.state == TaskState::Dispatched) {
        let spec = slice.spec(index);
        if untaken_at(slice, index) > now {
            continue;
        }
        let lack = spec.lack(tenant, served);
        if spec.dispatch_timeout_seconds.is_some() || lack.is_some() {
            let why = lack.map(|lack| format!(": {lack}")).unwrap_or_default();
            let message = format!(
                "no worker of the queue `{}` took it within its dispatch_timeout_seconds of {}{why}",
                spec.queue,
                spec.dispatch_timeout()
            );
            decide::fail(slice, index, Failure::new(ErrorClass::NotTaken, message));
        }
    }
}

/// When a dispatched attempt has waited for a worker for as long as it may.
fn untaken_at(slice: &RunSlice<'_>, index: TaskIndex) -> Instant {
    slice.tasks[&index].since + TimeDelta::seconds(slice.spec(index).dispatch_timeout().into())
}

/// Drops what would follow from the decisions so far: everything has ended.
fn drop_the_rest(slice: &mut RunSlice<'_>) {
    slice.open = Default::default();
    slice.slots.drop_requests();
}

/// Sets the timer of the run's deadline, if it is still to come: when the run is created, since the instance that starts
/// it may have another clock.
pub(crate) fn set_deadline(slice: &mut RunSlice<'_>) {
    let seconds = slice.graph.workflow().deadline_seconds;
    set_run_timer(slice, TimerKind::Deadline, Some(slice.run.created_at), seconds);
}

/// Sets the timer of the run's timeout, if the run has started and the timeout is still to come.
fn set_timeout(slice: &mut RunSlice<'_>) {
    set_run_timer(slice, TimerKind::Timeout, slice.run.started_at, slice.graph.workflow().timeout_seconds);
}

fn set_run_timer(slice: &mut RunSlice<'_>, kind: TimerKind, from: Option<Instant>, seconds: Option<u32>) {
    let (Some(from), Some(seconds)) = (from, seconds) else { return };
    let wake_at = from + TimeDelta::seconds(seconds.into());
    if wake_at > slice.now {
        slice.timers.set(Timer { task: None, attempt: 0, kind, wake_at });
    }
}

pub(crate) fn start_run(slice: &mut RunSlice<'_>) {
    if let Some(state) = slice.run.state.on(RunEvent::Started) {
        slice.run.state = state;
        slice.run.started_at = Some(slice.now);
        slice.record(EventKind::RunStarted, None, None, Value::Null);
        set_timeout(slice);
    } else if let Some(state) = slice.run.state.on(RunEvent::Moved) {
        slice.run.state = state;
    }
}

/// Marks the run as stalled: it cannot continue although it has not ended, which is a defect for people to see.
fn stall(slice: &mut RunSlice<'_>) {
    if let Some(state) = slice.run.state.on(RunEvent::Stalled) {
        slice.run.state = state;
        slice.record(EventKind::RunStalled, None, None, Value::Null);
    }
}
