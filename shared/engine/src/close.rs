//! Closing a scene: what ended, what the run has come to, and what there is to write and say.

use chrono::TimeDelta;
use model::change::Checkup;
use model::message::{RunFinished, TaskFinished, TimerArmed};
use model::run::{End, RunEvent};
use model::{Changes, EventKind, Message, TaskIndex, TaskState};
use serde_json::Value;

use crate::scene::{Decision, Scene};

/// A timer due sooner than this is announced, since the sweep's next tick may come too late for it.
const ANNOUNCED_AHEAD: TimeDelta = TimeDelta::seconds(60);

impl Scene<'_> {
    /// Closes the scene: the run's end is derived, and everything that changed comes out; nothing if nothing did.
    pub fn close(mut self) -> Option<Decision> {
        debug_assert!(self.ended.is_empty() && self.undirected.is_empty(), "closed before it was settled");
        self.derive_end();
        self.announce_timer();
        let idle = self.changed.is_empty() && self.events.is_empty() && self.checkup == Checkup::Keep;
        if idle && self.announcements.is_empty() {
            return None;
        }
        let tasks = &mut self.tasks;
        Some(Decision {
            changes: Changes {
                tasks: self.changed.iter().filter_map(|index| tasks.remove(index)).collect(),
                outputs: self.outputs,
                attempts: self.attempts,
                events: self.events,
                timers: self.timers.into_values().collect(),
                unset_timers: self.unset_timers.into_iter().collect(),
                kept_signals: self.kept_signals,
                taken_signals: self.taken_signals,
                outbox: self.outbox,
                checkup: self.checkup,
                run: self.run,
            },
            announcements: self.announcements,
        })
    }

    /// Counts a task that ended, and says so to whoever wants to know.
    pub(crate) fn finished(&mut self, index: TaskIndex, state: TaskState) {
        self.ended.push(index);
        let spec = self.graph.spec(index);
        if matches!(state, TaskState::Failed | TaskState::UpstreamFailed) && !spec.allow_failure {
            self.run.failures += 1;
        }
        if state == TaskState::Failed && !spec.allow_failure && self.run.error.is_none() {
            let said =
                self.tasks[&index].failure.as_ref().map_or("no reason given", |failure| &failure.message);
            self.run.error = Some(format!("task `{}` failed: {said}", spec.name));
        }
        self.outbox.push(Message::TaskFinished(TaskFinished {
            run: self.run.id,
            tenant: self.run.tenant,
            workflow: self.run.workflow.clone(),
            task: index,
            name: spec.name.clone(),
            state,
            finished_at: self.now,
        }));
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
        self.checkup = Checkup::Never;
        let kind = match end {
            End::Succeeded => EventKind::RunSucceeded,
            End::Failed => EventKind::RunFailed,
            End::Cancelled => EventKind::RunCancelled,
        };
        self.record(kind, None, None, Value::Null);
        self.outbox.push(Message::RunFinished(RunFinished {
            run: self.run.id,
            tenant: self.run.tenant,
            workflow: self.run.workflow.clone(),
            state,
            finished_at: self.now,
        }));
    }
}
