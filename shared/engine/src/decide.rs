//! What each command means for a scene. State in, changes out; the same scene and command, the same changes.

use chrono::TimeDelta;
use model::change::Checkup;
use model::message::TaskResult;
use model::{
    AttemptRecord, ErrorClass, EventKind, Failure, Instant, Signal, Task, TaskEvent, TaskIndex, TaskState,
    Timer, TimerKind, WorkerId,
};
use serde_json::{Value, json};

use crate::command::{Command, Outcome};
use crate::direct::is_inside;
use crate::retry::{self, Choice};
use crate::scene::{CHECKUP_AFTER, Scene};

/// How long past its time-out an attempt is left to the worker that holds it, which asks it to end, gives it half a
/// minute and then kills it.
const TIMEOUT_SLACK: TimeDelta = TimeDelta::seconds(60);

/// The sweep looks at a run again after so long while it waits for timers only.
const CHECKUP_WHILE_WAITING: TimeDelta = TimeDelta::minutes(10);

impl Scene<'_> {
    /// Decides a command. The tasks in its reach must be in the scene; one that is not does not exist.
    pub fn decide(&mut self, command: &Command) -> Outcome {
        match command {
            Command::Claim { task, attempt, worker } => self.claim(*task, *attempt, *worker),
            Command::Report { task, attempt, worker, started_at, result } => match result {
                TaskResult::Succeeded(output) => self.succeed(*task, *attempt, *started_at, output),
                TaskResult::Failed(failure) => {
                    self.report_failure(*task, *attempt, *worker, *started_at, failure)
                }
            },
            Command::Lose { task, attempt, worker } => self.lose(*task, *attempt, *worker),
            Command::Wake { task, attempt, kind } => self.wake(*task, *attempt, *kind),
            Command::Signal { name, payload, actor } => self.signal(name, payload, actor),
            Command::Answer { task, approved, payload, actor } => {
                self.answer(*task, *approved, payload, actor)
            }
            Command::Cancel { actor, reason } => self.cancel(actor, reason.as_deref()),
            Command::Checkup { patience } => self.checkup(*patience),
        }
    }

    fn claim(&mut self, index: TaskIndex, attempt: u32, worker: WorkerId) -> Outcome {
        if self.run.state.is_final() || !self.moves(index, TaskEvent::Claimed { attempt, worker }) {
            return Outcome::Stale;
        }
        self.record(EventKind::TaskStarted, Some(index), None, json!({"worker": worker}));
        Outcome::Applied
    }

    /// A failure counts only from whoever holds the attempt: someone who was sent it twice knows less.
    fn report_failure(
        &mut self,
        index: TaskIndex,
        attempt: u32,
        worker: Option<WorkerId>,
        started_at: Instant,
        failure: &Failure,
    ) -> Outcome {
        if !self.holds(index, attempt) || self.tasks[&index].worker != worker {
            return Outcome::Stale;
        }
        self.begun(index, started_at);
        self.fail(index, failure.clone());
        Outcome::Applied
    }

    pub(crate) fn succeed(
        &mut self,
        index: TaskIndex,
        attempt: u32,
        started_at: Instant,
        output: &Value,
    ) -> Outcome {
        let Some(before) = self.tasks.get(&index).cloned() else { return Outcome::Stale };
        if !self.moves(index, TaskEvent::Succeeded { attempt }) {
            return Outcome::Stale;
        }
        if attempt < before.attempt {
            self.replace_attempt(attempt, started_at, &before);
        } else {
            self.begun(index, started_at);
        }
        if !output.is_null() {
            self.outputs.push((index, output.clone()));
        }
        self.record(EventKind::TaskSucceeded, Some(index), None, Value::Null);
        self.last_event().attempt = attempt;
        Outcome::Applied
    }

    /// An attempt that was given up on delivered after all: it is the one that counts, and the attempt that was to
    /// replace it is not needed.
    fn replace_attempt(&mut self, late: u32, started_at: Instant, before: &Task) {
        let record = |attempt, state, decision: &str| AttemptRecord {
            task: before.index,
            attempt,
            state,
            worker: before.worker.filter(|_| attempt == before.attempt),
            started_at: if attempt == late { Some(started_at) } else { before.started_at },
            finished_at: self.now,
            failure: None,
            decision: decision.into(),
        };
        let delivered = record(late, TaskState::Succeeded, "it delivered late, and counts");
        let unneeded = record(before.attempt, TaskState::Cancelled, "an earlier attempt delivered after all");
        self.attempts.extend([delivered, unneeded]);
    }

    fn lose(&mut self, index: TaskIndex, attempt: u32, worker: WorkerId) -> Outcome {
        let held_by = self.tasks.get(&index).and_then(|task| task.worker);
        if held_by != Some(worker) || !self.holds(index, attempt) {
            return Outcome::Stale;
        }
        self.fail(index, Failure::new(ErrorClass::WorkerLost, "worker died"));
        Outcome::Applied
    }

    fn wake(&mut self, index: TaskIndex, attempt: u32, kind: TimerKind) -> Outcome {
        if self.tasks.get(&index).is_none_or(|task| task.attempt != attempt) {
            return Outcome::Stale;
        }
        match kind {
            TimerKind::Retry if self.moves(index, TaskEvent::RetryDue) => self.release(index),
            TimerKind::Timeout if self.tasks[&index].state == TaskState::Sleeping => {
                self.fail(
                    index,
                    Failure::new(ErrorClass::Timeout, "what it waited for did not come in time"),
                );
            }
            TimerKind::Sleep if self.tasks[&index].state == TaskState::Sleeping => {
                self.must(index, TaskEvent::Succeeded { attempt }, EventKind::TaskSucceeded, Value::Null)
            }
            _ => return Outcome::Stale,
        }
        Outcome::Applied
    }

    /// Hands a signal to those who wait for it; where nobody does yet, it is kept for the first who will.
    fn signal(&mut self, name: &str, payload: &Value, actor: &str) -> Outcome {
        if self.run.state.is_final() {
            return Outcome::Stale;
        }
        self.record(EventKind::RunSignalled, None, Some(actor), json!({"signal": name}));
        let graph = self.graph;
        let asleep = |scene: &Self, task: &TaskIndex| {
            scene.tasks.get(task).is_some_and(|task| task.state == TaskState::Sleeping)
        };
        let waiting: Vec<TaskIndex> = graph.waiting_for(name).filter(|task| asleep(self, task)).collect();
        if waiting.is_empty() {
            self.kept_signals.push(Signal { name: name.into(), payload: payload.clone() });
        }
        for index in waiting {
            self.succeed(index, self.tasks[&index].attempt, self.now, payload);
        }
        Outcome::Applied
    }

    fn answer(&mut self, index: TaskIndex, approved: bool, payload: &Value, actor: &str) -> Outcome {
        let asks = self.tasks.get(&index).is_some_and(|task| task.state == TaskState::Sleeping)
            && self.graph.spec(index).kind == "approval";
        if !asks {
            return Outcome::Stale;
        }
        if approved {
            // What was filled in is the output; who approved stands beside it.
            let mut output = json!({"approved": true, "approved_by": actor});
            for (name, value) in payload.as_object().into_iter().flatten() {
                output[name] = value.clone();
            }
            self.succeed(index, self.tasks[&index].attempt, self.now, &output);
        } else {
            let reason = payload.as_str().map(|reason| format!(": {reason}")).unwrap_or_default();
            self.fail(index, Failure::permanent(format!("{actor} did not approve{reason}")));
        }
        self.last_event().actor = Some(actor.into());
        Outcome::Applied
    }

    fn cancel(&mut self, actor: &str, reason: Option<&str>) -> Outcome {
        let open: Vec<TaskIndex> = self.unfinished(|_| true);
        if self.run.state.is_final() || open.is_empty() {
            return Outcome::Stale;
        }
        let data = reason.map_or(Value::Null, |reason| json!({"reason": reason}));
        for index in open {
            self.apply(index, TaskEvent::Cancelled).expect("whatever has not ended can be cancelled");
            self.record(EventKind::TaskCancelled, Some(index), Some(actor), data.clone());
        }
        self.forget_ended();
        Outcome::Applied
    }

    /// Looks for what got lost on the way: messages nobody acted on, attempts nobody ended.
    fn checkup(&mut self, patience: TimeDelta) -> Outcome {
        let now = self.now;
        for index in
            self.unfinished(|task| task.state == TaskState::Dispatched && task.since + patience <= now)
        {
            self.record(EventKind::TaskRedispatched, Some(index), None, Value::Null);
            self.announce(index);
        }
        for index in self.unfinished(|task| task.state == TaskState::Running) {
            let timeout = self.graph.spec(index).timeout_seconds;
            let started_at = self.tasks[&index].started_at.unwrap_or(now);
            if started_at + TimeDelta::seconds(timeout.into()) + TIMEOUT_SLACK <= now {
                let message = format!("the attempt took longer than its timeout_seconds of {timeout}");
                self.fail(index, Failure::new(ErrorClass::Timeout, message));
            }
        }
        self.unfinished(|task| task.state == TaskState::Pending)
            .into_iter()
            .for_each(|index| self.consider(index));
        if self.unfinished(|task| task.state != TaskState::Pending).is_empty() && self.asks_nothing() {
            self.stall();
        }
        let busy = !self
            .unfinished(|task| matches!(task.state, TaskState::Dispatched | TaskState::Running))
            .is_empty();
        self.checkup = Checkup::At(now + if busy { CHECKUP_AFTER } else { CHECKUP_WHILE_WAITING });
        Outcome::Applied
    }

    /// The current attempt failed: another one follows, at once or by a timer, or the task has failed.
    pub(crate) fn fail(&mut self, index: TaskIndex, failure: Failure) {
        let task = &self.tasks[&index];
        let (attempt, worker, started_at) = (task.attempt, task.worker, task.started_at);
        let policy = &self.graph.spec(index).retry;
        let choice = if is_inside(&self.graph.spec(index).kind) {
            Choice::GiveUp { reason: "what the engine settles itself is not tried again".into() }
        } else {
            retry::choose(policy, self.key(index), attempt, &failure, task.failure.as_ref())
        };
        let retry = matches!(choice, Choice::Retry { .. });
        self.apply(index, TaskEvent::Errored { attempt, failure: failure.clone(), retry })
            .expect("only attempts that are held can fail");
        let said = json!({"class": failure.class, "message": failure.message});
        match choice {
            Choice::GiveUp { reason } => {
                self.record(EventKind::TaskFailed, Some(index), None, with(said, "reason", json!(reason)));
            }
            Choice::Retry { delay, reason } => {
                let data =
                    with(with(said, "reason", json!(reason)), "delay_ms", json!(delay.num_milliseconds()));
                self.record(EventKind::TaskRetrying, Some(index), None, data);
                self.attempts.push(AttemptRecord {
                    task: index,
                    attempt,
                    state: TaskState::Failed,
                    worker,
                    started_at,
                    finished_at: self.now,
                    failure: Some(failure),
                    decision: reason,
                });
                self.try_again(index, attempt, delay);
            }
        }
    }

    fn try_again(&mut self, index: TaskIndex, attempt: u32, delay: TimeDelta) {
        if delay.is_zero() {
            self.apply(index, TaskEvent::RetryDue).expect("it has just been put up for retry");
            self.release(index);
        } else {
            self.set_timer(Timer { task: index, attempt, kind: TimerKind::Retry, wake_at: self.now + delay });
        }
    }

    /// Whether `attempt` is the one that may report a failure.
    pub(crate) fn holds(&self, index: TaskIndex, attempt: u32) -> bool {
        self.tasks.get(&index).is_some_and(|task| {
            task.attempt == attempt && matches!(task.state, TaskState::Dispatched | TaskState::Running)
        })
    }

    fn moves(&mut self, index: TaskIndex, event: TaskEvent) -> bool {
        self.knows(index) && self.apply(index, event).is_ok()
    }

    /// An attempt that nobody claimed says with its report when it began.
    fn begun(&mut self, index: TaskIndex, started_at: Instant) {
        let task = self.tasks.get_mut(&index).expect("it has just been moved");
        task.started_at.get_or_insert(started_at.min(self.now));
    }

    fn unfinished(&self, wanted: impl Fn(&model::Task) -> bool) -> Vec<TaskIndex> {
        let open = self.tasks.values().filter(|task| !task.state.is_final() && wanted(task));
        open.map(|task| task.index).collect()
    }
}

fn with(mut object: Value, name: &str, value: Value) -> Value {
    object[name] = value;
    object
}
