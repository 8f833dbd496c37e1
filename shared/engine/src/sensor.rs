//! Sensors: tasks that sleep between two looks. A timer says when the next look is due, so nothing of ours runs
//! meanwhile, and a look that got lost is made up for by the next.

use chrono::TimeDelta;
use model::message::{PollDue, Watch};
use model::{
    ErrorClass, EventKind, Failure, Message, Task, TaskEvent, TaskIndex, TaskState, Timer, TimerKind,
};
use serde_json::json;

use crate::command::Outcome;
use crate::run_slice::RunSlice;

impl RunSlice<'_> {
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
        let wake_at = pacing.next_poll(since, self.now);
        let (key, version, failed) = (self.key(index), self.run.version, task.failure.is_some());
        let watch = Watch::Task { key, attempt, version, child, since, failed };
        let due = PollDue { tenant: self.run.tenant, queue: spec.queue.clone(), watch };
        self.announcements.push(Message::PollDue(due));
        self.set_timer(Timer { task: Some(index), attempt, kind: TimerKind::Sleep, wake_at });
    }

    /// Notes why a sensor's look failed, or that it no longer does. While the same is true, nothing is written.
    pub(crate) fn polled(&mut self, index: TaskIndex, attempt: u32, failure: Option<&Failure>) -> Outcome {
        let looks = |task: &Task| task.state == TaskState::Sleeping && task.attempt == attempt;
        let Some(task) = self.tasks.get(&index).filter(|task| looks(task) && self.is_sensor(index)) else {
            return Outcome::Stale;
        };
        if task.failure.as_ref() == failure {
            return Outcome::Stale;
        }
        self.tasks.get_mut(&index).expect("it was just looked at").failure = failure.cloned();
        self.changed.insert(index);
        Outcome::Applied
    }

    /// A sensor gives up, and says why its last look failed, if it did: it fails, or is skipped where it may.
    pub(crate) fn give_up(&mut self, index: TaskIndex, mut failure: Failure) {
        let last = self.tasks[&index].failure.as_ref().filter(|_| self.is_sensor(index));
        if let Some(last) = last.filter(|_| failure.class == ErrorClass::Timeout) {
            failure.message = format!("{}; its last look failed: {}", failure.message, last.message);
        }
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
