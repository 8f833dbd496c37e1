//! What people do to a run that exists: pausing and resuming it, rerunning parts of it, saying how a task ended.
//!
//! Each is recorded with who wants it and why. Which tasks run again, and what that takes, is in `rerun`.

use chrono::TimeDelta;
use model::change::Recheck;
use model::run::RunEvent;
use model::{EventKind, Failure, TaskEvent, TaskIndex, TaskKind, TaskState};
use serde_json::{Value, json};

use crate::command::{By, Mark, Operation, Outcome};
use crate::oversee::RECHECK_WHILE_WAITING;
use crate::run_slice::{RECHECK_AFTER, RunSlice};

impl RunSlice<'_> {
    /// Decides what someone wants of the run or of one of its tasks.
    pub(crate) fn operate(&mut self, operation: &Operation, by: &By) -> Outcome {
        let applied = match operation {
            Operation::Pause => self.pause(by),
            Operation::Resume => self.resume(by),
            Operation::Retry => self.retry(by),
            Operation::Evaluate => self.evaluate(by),
            Operation::Clear(task) => self.knows(*task) && self.clear(*task, by),
            Operation::Mark(task, mark) => self.knows(*task) && self.mark(*task, mark, by),
            Operation::Wake(task) => self.knows(*task) && self.wake_now(*task, by),
        };
        if applied { Outcome::Applied } else { Outcome::Stale }
    }

    fn pause(&mut self, by: &By) -> bool {
        let paused = self.run.state.on(RunEvent::Paused).filter(|_| self.run.counts.unfinished() > 0);
        let Some(state) = paused else { return false };
        self.run.state = state;
        self.note(EventKind::RunPaused, None, by, json!({}));
        // What came together with it has not begun either.
        self.asking.clear();
        self.undirected.clear();
        self.unfinished(|task| task.state == TaskState::Queued)
            .into_iter()
            .for_each(|index| self.leave_queue(index));
        self.recheck = Recheck::At(self.now + RECHECK_WHILE_WAITING);
        true
    }

    fn resume(&mut self, by: &By) -> bool {
        let resumed = RunEvent::Resumed { started: self.run.started_at.is_some() };
        let Some(state) = self.run.state.on(resumed) else { return false };
        self.run.state = state;
        self.note(EventKind::RunResumed, None, by, json!({}));
        self.recheck = Recheck::At(self.now + RECHECK_AFTER);
        if !self.run.waiting {
            self.go_on();
        }
        true
    }

    /// Lets go on what a pause or the run's group held back.
    pub(crate) fn go_on(&mut self) {
        for index in self.unfinished(|task| task.state == TaskState::Queued) {
            self.relaunch(index);
        }
        for index in self.unfinished(|task| task.state == TaskState::Pending) {
            if self.had_its_turn(index) {
                self.ready(index);
            } else {
                self.consider(index);
            }
        }
        self.turn_all();
    }

    /// Whether a task is a child of a fan-out that may go on: one that was cleared while the run was paused.
    fn had_its_turn(&self, index: TaskIndex) -> bool {
        let place = self.tasks[&index].child;
        let fan = place.and_then(|place| self.tasks.get(&place.of)?.fan);
        place.zip(fan).is_some_and(|(place, fan)| place.item < fan.released)
    }

    fn evaluate(&mut self, by: &By) -> bool {
        if self.run.state.is_final() {
            return false;
        }
        self.note(EventKind::RunEvaluated, None, by, json!({}));
        self.recheck(TimeDelta::zero());
        true
    }

    fn wake_now(&mut self, index: TaskIndex, by: &By) -> bool {
        let task = &self.tasks[&index];
        let (state, attempt) = (task.state, task.attempt);
        match state {
            TaskState::Sleeping if self.spec(index).kind == TaskKind::Sleep => {
                self.note(EventKind::TaskWoken, Some(index), by, json!({}));
                let succeeded = TaskEvent::Succeeded { attempt };
                self.must(index, succeeded, EventKind::TaskSucceeded, Value::Null);
            }
            TaskState::Sleeping if self.is_sensor(index) => {
                self.note(EventKind::TaskWoken, Some(index), by, json!({}));
                self.look(index);
            }
            TaskState::UpForRetry => {
                self.apply(index, TaskEvent::RetryDue).expect("the state was looked at just before");
                self.note(EventKind::TaskWoken, Some(index), by, json!({}));
                self.relaunch(index);
            }
            _ => return false,
        }
        true
    }

    /// Ends a task as a person says. One that had ended otherwise is cleared first, with everything downstream.
    fn mark(&mut self, index: TaskIndex, mark: &Mark, by: &By) -> bool {
        let task = &self.tasks[&index];
        let said_before = match mark {
            Mark::Succeeded(output) => task.state == TaskState::Succeeded && output.is_null(),
            Mark::Failed => task.state == TaskState::Failed,
        };
        // A child counts once for its fan-out, after it had its turn.
        let uncounted = task.child.is_some() && (task.state.is_final() || task.state == TaskState::Pending);
        if said_before || uncounted || task.state == TaskState::Removed {
            return false;
        }
        let mut anew = Default::default();
        if task.state.is_final() {
            anew = self.with_descendants(index);
            self.take_back(&anew, by);
        } else {
            self.let_go_of_work(index, by);
        }
        self.end_as(index, mark, by);
        self.reconsider(&anew);
        true
    }

    fn end_as(&mut self, index: TaskIndex, mark: &Mark, by: &By) {
        let (event, name) = match mark {
            Mark::Succeeded(output) => {
                self.recall_choice(index, output);
                if !output.is_null() {
                    self.outputs.push((index, output.clone()));
                }
                (TaskEvent::MarkedSucceeded, "succeeded")
            }
            Mark::Failed => {
                let why = by.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
                let failure = Failure::permanent(format!("{} marked it as failed{why}", by.actor));
                (TaskEvent::MarkedFailed { failure }, "failed")
            }
        };
        self.apply(index, event).expect("what has not ended can be marked");
        self.note(EventKind::TaskMarked, Some(index), by, json!({"as": name}));
    }

    /// Records what someone did, with who they are and why.
    pub(crate) fn note(&mut self, kind: EventKind, task: Option<TaskIndex>, by: &By, mut data: Value) {
        if let Some(reason) = &by.reason {
            data["reason"] = json!(reason);
        }
        let data = if data == json!({}) { Value::Null } else { data };
        self.record(kind, task, Some(&by.actor), data);
    }
}
