//! Closing a slice: what ended, what the run has come to, and what there is to write and say.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use model::change::Recheck;
use model::message::{
    CallbackDue, ChildFinished, ConcurrencyGroupFreed, RunFinished, SharedFinished, TaskFinished, TimerArmed,
};
use model::run::{End, RunEvent};
use model::{
    AttemptRecord, Callback, Changes, Event, EventKind, Message, Occasion, RunState, TaskIndex, TaskState,
};
use serde_json::{Value, json};

use crate::run_slice::{Decision, RECHECK_AFTER, RunSlice};

/// A timer due sooner than this is announced, since the sweep's next tick may come too late for it.
const ANNOUNCED_AHEAD: TimeDelta = TimeDelta::seconds(60);

impl RunSlice<'_> {
    /// Closes the slice: the run's end is derived, and everything that changed comes out; nothing if nothing did.
    pub fn close(mut self) -> Option<Decision> {
        debug_assert!(self.is_at_rest(), "closed before it was settled");
        self.derive_end();
        self.announce_timer();
        match self.recheck {
            Recheck::Never if !self.run.state.is_final() => self.recheck = self.next_recheck(),
            // From now on something may get lost, and perhaps nobody was to look.
            Recheck::Keep if self.has_begun_something() => {
                self.recheck = Recheck::By(self.now + RECHECK_AFTER);
            }
            _ => {}
        }
        let idle = self.changed.is_empty()
            && self.new_tasks.is_empty()
            && self.events.is_empty()
            && self.recheck == Recheck::Keep;
        if idle && self.announcements.is_empty() {
            return None;
        }
        let tasks = &mut self.tasks;
        Some(Decision {
            changes: Changes {
                new_tasks: self.new_tasks.iter().filter_map(|index| tasks.remove(index)).collect(),
                items: self.items,
                // New tasks were taken out just before.
                tasks: self.changed.iter().filter_map(|index| tasks.remove(index)).collect(),
                withdrawn: self.withdrawn.into_iter().collect(),
                outputs: self.outputs,
                attempts: latest(self.attempts),
                events: self.events,
                timers: self.timers.into_values().collect(),
                unset_timers: self.unset_timers.into_iter().collect(),
                kept_signals: self.kept_signals,
                taken_signals: self.taken_signals,
                shares_ended: self.shares_ended,
                waits_over: self.waits_over,
                outbox: self.outbox,
                recheck: self.recheck,
                run: self.run,
            },
            announcements: self.announcements,
        })
    }

    /// Has these messages said with what is decided here.
    pub fn say(&mut self, messages: Vec<Message>) {
        self.outbox.extend(messages);
    }

    /// Counts a task that ended, and publishes its end.
    pub(crate) fn finished(&mut self, index: TaskIndex, from: TaskState, state: TaskState) {
        self.ended.push(index);
        let spec = self.spec(index);
        // A child's end counts for its fan-out, which counts for the run.
        let counts = self.tasks[&index].child.is_none() && !spec.allow_failure;
        if counts && matches!(state, TaskState::Failed | TaskState::UpstreamFailed) {
            self.run.failures += 1;
        }
        if counts && state == TaskState::Failed && self.run.error.is_none() {
            self.run.error = Some(self.complaint(index));
        }
        // Who never began, or only waited, carried out nothing for others.
        if spec.global.is_some() && !matches!(from, TaskState::Pending | TaskState::Sleeping) {
            self.share_ended(index, state);
        }
        match state {
            TaskState::Succeeded => self.call_back_for(index, Occasion::Success),
            TaskState::Failed => self.call_back_for(index, Occasion::Failure),
            _ => {}
        }
        self.outbox.push(Message::TaskFinished(TaskFinished {
            run: self.run.id,
            tenant: self.run.tenant,
            workflow: self.run.workflow.clone(),
            task: index,
            name: self.name(index),
            state,
            finished_at: self.now,
        }));
    }

    /// Tells the runs that wait for a shared task what became of it. One that was given up with its run says nothing
    /// about the work: they must find another way.
    pub(crate) fn share_ended(&mut self, index: TaskIndex, state: TaskState) {
        let state = if self.abandoned { TaskState::Cancelled } else { state };
        self.shares_ended.push((index, state == TaskState::Succeeded));
        let failure = self.tasks[&index].failure.clone();
        self.outbox.push(Message::SharedFinished(SharedFinished { owner: self.key(index), state, failure }));
    }

    /// What a run says that failed because of a task.
    pub(crate) fn complaint(&self, index: TaskIndex) -> String {
        format!("task `{}` failed: {}", self.spec(index).name, self.said(index))
    }

    fn said(&self, index: TaskIndex) -> &str {
        self.tasks[&index].failure.as_ref().map_or("no reason given", |failure| &failure.message)
    }

    /// Asks for the callbacks of a task on this occasion.
    pub(crate) fn call_back_for(&mut self, index: TaskIndex, on: Occasion) {
        let callbacks = &self.spec(index).callbacks;
        self.call_back(callbacks, Some(index), self.happened_to(index, on), on);
    }

    /// Asks for the workflow's callbacks on this occasion, about the run or one of its tasks.
    pub(crate) fn call_back_for_run(&mut self, about: Option<TaskIndex>, on: Occasion) {
        let event = match about {
            Some(index) => self.happened_to(index, on),
            None => json!({"on": on, "state": self.run.state, "error": self.run.error}),
        };
        self.call_back(&self.graph.workflow().callbacks, None, event, on);
    }

    fn happened_to(&self, index: TaskIndex, on: Occasion) -> Value {
        let task = &self.tasks[&index];
        let error = task.failure.as_ref().map(|failure| &failure.message);
        json!({
            "on": on, "state": task.state, "error": error, "task": self.name(index), "attempt": task.attempt,
        })
    }

    fn call_back(&mut self, callbacks: &[Callback], task: Option<TaskIndex>, event: Value, on: Occasion) {
        for (_, place) in callbacks.iter().zip(0..).filter(|(callback, _)| callback.on == on) {
            self.outbox.push(Message::CallbackDue(CallbackDue {
                run: self.run.id,
                tenant: self.run.tenant,
                version: self.run.version,
                task,
                child: task.and_then(|index| self.tasks[&index].child),
                place,
                event: event.clone(),
            }));
        }
    }

    /// Wakes the sweep for the first timer set here, if that is due before its next tick: it will find the others.
    fn announce_timer(&mut self) {
        let first = self.timers.values().map(|timer| timer.wake_at).min();
        if let Some(wake_at) = first.filter(|wake_at| *wake_at < self.now + ANNOUNCED_AHEAD) {
            self.announcements.push(Message::TimerArmed(TimerArmed { wake_at }));
        }
    }

    fn derive_end(&mut self) {
        let Some(end) = self.run.end() else { return };
        let Some(state) = self.run.state.on(RunEvent::Ended(end)) else { return };
        self.run.state = state;
        self.run.finished_at = Some(self.now);
        self.recheck = Recheck::Never;
        let kind = match end {
            End::Succeeded => EventKind::RunSucceeded,
            End::Failed => EventKind::RunFailed,
            End::Cancelled => EventKind::RunCancelled,
        };
        // Whoever cancelled its last tasks ended the run, for the same reason.
        let cancelled = |event: &&Event| end == End::Cancelled && event.kind == EventKind::TaskCancelled;
        let by = self.events.iter().rfind(cancelled).map(|event| (event.actor.clone(), event.data.clone()));
        let (actor, data) = by.unwrap_or_default();
        self.record(kind, None, actor.as_deref(), data);
        self.unset_timers(None);
        match end {
            End::Succeeded => self.call_back_for_run(None, Occasion::Success),
            End::Failed => self.call_back_for_run(None, Occasion::Failure),
            End::Cancelled => {}
        }
        self.tell_those_who_wait(state);
        self.outbox.push(Message::RunFinished(RunFinished {
            run: self.run.id,
            tenant: self.run.tenant,
            workflow: self.run.workflow.clone(),
            state,
            created_at: Some(self.run.created_at),
            finished_at: self.now,
        }));
    }

    /// Tells the task that started the run, and the runs that wait for their turn, that it ended.
    fn tell_those_who_wait(&mut self, state: RunState) {
        if let Some(parent) = self.run.parent.filter(|parent| parent.waits) {
            self.outbox.push(Message::ChildFinished(ChildFinished {
                parent,
                child: self.run.id,
                version: self.run.version,
                state,
                error: self.run.error.clone(),
            }));
        }
        if let Some(freed) = self.concurrency_group() {
            self.outbox.push(freed);
        }
    }

    /// Says that someone in the run's group may have their turn.
    pub(crate) fn concurrency_group(&self) -> Option<Message> {
        let group = self.run.concurrency_group.clone()?;
        let (tenant, workflow) = (self.run.tenant, self.run.workflow.clone());
        Some(Message::ConcurrencyGroupFreed(ConcurrencyGroupFreed { tenant, workflow, group }))
    }
}

/// Of several words about one attempt, the last.
fn latest(attempts: Vec<AttemptRecord>) -> Vec<AttemptRecord> {
    let by_attempt: BTreeMap<(TaskIndex, u32), AttemptRecord> =
        attempts.into_iter().map(|record| ((record.task, record.attempt), record)).collect();
    by_attempt.into_values().collect()
}
