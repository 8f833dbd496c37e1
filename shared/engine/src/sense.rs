//! Sensors: tasks that sleep between two looks. A timer says when the next look is due, so nothing of ours runs
//! meanwhile, and a look that got lost is made up for by the next.

use chrono::TimeDelta;
use model::message::{PollDue, Watch};
use model::{EventKind, Failure, Message, TaskEvent, TaskIndex, Timer, TimerKind};
use serde_json::json;

use crate::scene::Scene;

impl Scene<'_> {
    /// Lets a sensor begin to look.
    pub(crate) fn watch(&mut self, index: TaskIndex) {
        let Some(pacing) = self.spec(index).pacing else {
            let failure = Failure::permanent("a sensor that does not say how often it looks cannot begin");
            self.apply(index, TaskEvent::FellAsleep).expect("only tasks that begin are directed");
            return self.fail(index, failure);
        };
        let until = pacing.timeout_seconds.map(|seconds| self.now + TimeDelta::seconds(seconds.into()));
        self.must(
            index,
            TaskEvent::FellAsleep,
            EventKind::TaskWaiting,
            json!({"sensor": true, "until": until}),
        );
        if let Some(wake_at) = until {
            let attempt = self.tasks[&index].attempt;
            self.set_timer(Timer { task: Some(index), attempt, kind: TimerKind::Timeout, wake_at });
        }
        self.look(index);
    }

    /// Asks for a look, and says when the next one is due.
    pub(crate) fn look(&mut self, index: TaskIndex) {
        let (spec, task) = (self.spec(index), &self.tasks[&index]);
        let Some(pacing) = spec.pacing else { return };
        let (attempt, child, since) = (task.attempt, task.child, task.started_at.unwrap_or(self.now));
        let wake_at = pacing.next_look(since, self.now);
        let watch = Watch::Task { key: self.key(index), attempt, version: self.run.version, child, since };
        let due = PollDue { tenant: self.run.tenant, queue: spec.queue.clone(), watch };
        self.announcements.push(Message::PollDue(due));
        self.set_timer(Timer { task: Some(index), attempt, kind: TimerKind::Sleep, wake_at });
    }

    /// A sensor gives up: it fails, or is skipped where it may.
    pub(crate) fn give_up(&mut self, index: TaskIndex, failure: Failure) {
        match self.spec(index).pacing {
            Some(pacing) if pacing.soft_fail => {
                let why = json!({"gave_up": failure.message});
                self.must(index, TaskEvent::Skipped, EventKind::TaskSkipped, why);
            }
            _ => self.fail(index, failure),
        }
    }

    /// Whether a task is a sensor.
    pub(crate) fn is_sensor(&self, index: TaskIndex) -> bool {
        self.spec(index).pacing.is_some()
    }
}
