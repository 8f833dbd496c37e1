//! Closing a slice: what ended, the state of the run that follows, and what to write and publish.

use chrono::TimeDelta;
use model::change::Recheck;
use model::message::{
    CallbackDue, ChildFinished, ConcurrencyGroupFreed, RunFinished, SharedFinished, TaskFinished, TimerArmed,
};
use model::run::{End, RunEvent};
use model::{Callback, Event, EventKind, Message, Occasion, RunState, TaskIndex, TaskState};
use serde_json::{Value, json};

use crate::oversee;
use crate::run_slice::{Decision, RECHECK_AFTER, RunSlice};

/// The sweep is woken for a timer that is due sooner than this, since its next tick may come too late.
const WAKE_WITHIN: TimeDelta = TimeDelta::seconds(60);

impl RunSlice<'_> {
    /// Closes the slice: derives the run's end and returns everything that changed; none if nothing did.
    pub fn close(mut self) -> Option<Decision> {
        debug_assert!(is_at_rest(&self), "closed before it was settled");
        derive_end(&mut self);
        wake_sweep(&mut self);
        if let Some(claim_timeout) = self.recheck.claim_timeout() {
            let next = oversee::next_recheck(&self, claim_timeout);
            self.recheck.set(next);
        } else if self.recheck.get() == Recheck::Keep && oversee::has_begun_something(&self) {
            // From now on a message may get lost, and no recheck may be set.
            self.recheck.by(self.now + RECHECK_AFTER);
        }
        let idle = self.draft.is_empty() && self.recheck.get() == Recheck::Keep;
        if idle && !self.messages.has_derived() {
            return None;
        }
        let offers = self.offers();
        let (outbox, messages) = self.messages.into_both();
        let recheck = self.recheck.get();
        let changes = self.draft.into_changes(self.run, self.tasks, self.timers, offers, outbox, recheck);
        Some(Decision { changes, messages })
    }

    /// Adds messages that must be published once the decision is committed.
    pub fn publish(&mut self, messages: Vec<Message>) {
        messages.into_iter().for_each(|message| self.messages.store(message));
    }
}

/// Counts a task that ended, and publishes its end.
pub(crate) fn finished(slice: &mut RunSlice<'_>, index: TaskIndex, from: TaskState, state: TaskState) {
    slice.open.end(index);
    let spec = slice.spec(index);
    // A child's end counts for its fan-out, which counts for the run.
    let counts = slice.tasks[&index].child.is_none() && !spec.allow_failure;
    if counts && matches!(state, TaskState::Failed | TaskState::UpstreamFailed) {
        slice.run.failures += 1;
    }
    if counts && state == TaskState::Failed && slice.run.error.is_none() {
        slice.run.error = Some(run_error(slice, index));
    }
    // A task that never began, or only waited, executed nothing for other runs.
    if spec.global.is_some() && !matches!(from, TaskState::Pending | TaskState::Sleeping) {
        share_ended(slice, index, state);
    }
    match state {
        TaskState::Succeeded => call_back_for(slice, index, Occasion::Success),
        TaskState::Failed => call_back_for(slice, index, Occasion::Failure),
        _ => {}
    }
    slice.messages.store(Message::TaskFinished(TaskFinished {
        run: slice.run.id,
        tenant: slice.run.tenant,
        workflow: slice.run.workflow.clone(),
        task: index,
        name: slice.name(index),
        kind: Some(slice.spec(index).kind.clone()),
        state,
        finished_at: slice.now,
    }));
}

/// Notifies the runs that wait for a shared task how it ended. If it ended only because its run was ended from outside,
/// they need another run to execute it.
pub(crate) fn share_ended(slice: &mut RunSlice<'_>, index: TaskIndex, state: TaskState) {
    let state = if slice.abandoned { TaskState::Cancelled } else { state };
    slice.draft.end_share(index, state == TaskState::Succeeded);
    let failure = slice.tasks[&index].failure.clone();
    slice.messages.store(Message::SharedFinished(SharedFinished { owner: slice.key(index), state, failure }));
}

/// The error of a run that failed because of a task.
pub(crate) fn run_error(slice: &RunSlice<'_>, index: TaskIndex) -> String {
    format!("task `{}` failed: {}", slice.spec(index).name, message_of(slice, index))
}

fn message_of<'s>(slice: &'s RunSlice<'_>, index: TaskIndex) -> &'s str {
    slice.tasks[&index].failure.as_ref().map_or("no reason given", |failure| &failure.message)
}

/// Asks for the callbacks of a task on this occasion.
pub(crate) fn call_back_for(slice: &mut RunSlice<'_>, index: TaskIndex, on: Occasion) {
    let callbacks = &slice.spec(index).callbacks;
    call_back(slice, callbacks, Some(index), happened_to(slice, index, on), on);
}

/// Asks for the workflow's callbacks on this occasion, about the run or one of its tasks.
pub(crate) fn call_back_for_run(slice: &mut RunSlice<'_>, about: Option<TaskIndex>, on: Occasion) {
    let event = match about {
        Some(index) => happened_to(slice, index, on),
        None => json!({"on": on, "state": slice.run.state, "error": slice.run.error}),
    };
    call_back(slice, &slice.graph.workflow().callbacks, None, event, on);
}

fn happened_to(slice: &RunSlice<'_>, index: TaskIndex, on: Occasion) -> Value {
    let task = &slice.tasks[&index];
    let error = task.failure.as_ref().map(|failure| &failure.message);
    json!({
        "on": on, "state": task.state, "error": error, "task": slice.name(index), "attempt": task.attempt,
    })
}

fn call_back(
    slice: &mut RunSlice<'_>,
    callbacks: &[Callback],
    task: Option<TaskIndex>,
    event: Value,
    on: Occasion,
) {
    for (_, place) in callbacks.iter().zip(0..).filter(|(callback, _)| callback.on == on) {
        slice.messages.store(Message::CallbackDue(CallbackDue {
            run: slice.run.id,
            tenant: slice.run.tenant,
            version: slice.run.version,
            task,
            child: task.and_then(|index| slice.tasks[&index].child),
            place,
            event: event.clone(),
        }));
    }
}

/// Wakes the sweep for the first timer set here, if that is due before its next tick: it will find the others.
fn wake_sweep(slice: &mut RunSlice<'_>) {
    if let Some(wake_at) = slice.timers.first().filter(|wake_at| *wake_at < slice.now + WAKE_WITHIN) {
        slice.messages.derive(Message::TimerArmed(TimerArmed { wake_at }));
    }
}

fn derive_end(slice: &mut RunSlice<'_>) {
    let Some(end) = slice.run.end() else { return };
    let Some(state) = slice.run.state.on(RunEvent::Ended(end)) else { return };
    slice.run.state = state;
    slice.run.finished_at = Some(slice.now);
    slice.recheck.set(Recheck::Never);
    let kind = match end {
        End::Succeeded => EventKind::RunSucceeded,
        End::Failed => EventKind::RunFailed,
        End::Cancelled => EventKind::RunCancelled,
    };
    // A run whose last tasks were cancelled ends in the name of the actor who cancelled them, for the same reason.
    let cancelled = |event: &&Event| end == End::Cancelled && event.kind == EventKind::TaskCancelled;
    let by =
        slice.draft.events().iter().rfind(cancelled).map(|event| (event.actor.clone(), event.data.clone()));
    let (actor, data) = by.unwrap_or_default();
    slice.record(kind, None, actor.as_deref(), data);
    slice.timers.unset(None);
    match end {
        End::Succeeded => call_back_for_run(slice, None, Occasion::Success),
        End::Failed => call_back_for_run(slice, None, Occasion::Failure),
        End::Cancelled => {}
    }
    notify_waiters(slice, state);
    slice.messages.store(Message::RunFinished(RunFinished {
        run: slice.run.id,
        tenant: slice.run.tenant,
        workflow: slice.run.workflow.clone(),
        state,
        created_at: Some(slice.run.created_at),
        finished_at: slice.now,
    }));
}

/// Notifies the task that started the run, and the runs that wait in its concurrency group, that it ended.
fn notify_waiters(slice: &mut RunSlice<'_>, state: RunState) {
    if let Some(parent) = slice.run.parent.filter(|parent| parent.waits) {
        slice.messages.store(Message::ChildFinished(ChildFinished {
            parent,
            child: slice.run.id,
            version: slice.run.version,
            state,
            error: slice.run.error.clone(),
        }));
    }
    if let Some(freed) = concurrency_group_freed(slice) {
        slice.messages.store(freed);
    }
}

/// Publishes again that the run's concurrency group may have room.
pub(crate) fn republish_concurrency_group(slice: &mut RunSlice<'_>) {
    if let Some(freed) = concurrency_group_freed(slice) {
        slice.messages.derive(freed);
    }
}

fn concurrency_group_freed(slice: &RunSlice<'_>) -> Option<Message> {
    let group = slice.run.concurrency_group.clone()?;
    let (tenant, workflow) = (slice.run.tenant, slice.run.workflow.clone());
    Some(Message::ConcurrencyGroupFreed(ConcurrencyGroupFreed { tenant, workflow, group }))
}

/// Whether everything that follows from the decisions so far is done.
pub(crate) fn is_at_rest(slice: &RunSlice<'_>) -> bool {
    slice.open.is_empty() && slice.slots.requested().next().is_none()
}
