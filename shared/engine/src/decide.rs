//! What each command means for a slice. State in, changes out; the same slice and command, the same changes.

use chrono::TimeDelta;
use model::message::TaskResult;
use model::{
    AttemptRecord, ErrorClass, EventKind, Failure, Instant, Occasion, Signal, Task, TaskEvent, TaskIndex,
    TaskKind, TaskState, Timer, TimerKind, WorkerId,
};
use serde_json::{Value, json};

use crate::command::{Command, Outcome};
use crate::retry::{self, Choice};
use crate::run_slice::RunSlice;

impl RunSlice<'_> {
    /// Decides a command. The tasks in its reach must be in the slice; one that is not does not exist.
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
            Command::HandBack { task, attempt, worker, reason } => {
                self.hand_back(*task, *attempt, *worker, reason)
            }
            Command::Wake { task: Some(task), attempt, kind } => self.wake(*task, *attempt, *kind),
            Command::Wake { task: None, kind, .. } => self.wake_run(*kind),
            Command::Polled { task, attempt, failure } => self.polled(*task, *attempt, failure.as_ref()),
            Command::Rejoin { task, attempt } => self.rejoin(*task, *attempt),
            Command::Release { task, attempt } => self.take_slot(*task, *attempt),
            Command::Admit => self.admit(),
            Command::CalledBack { what, error } => self.called_back(what, error.as_deref()),
            Command::Signal { name, payload, actor } => self.signal(name, payload, actor),
            Command::Answer { task, approved, payload, actor } => {
                self.answer(*task, *approved, payload, actor)
            }
            Command::Cancel { actor, reason } => self.cancel(actor, reason.as_deref()),
            Command::Operate { operation, by } => self.operate(operation, by),
            Command::PutRight { audit } => self.put_right(audit),
            Command::Recheck { patience } => self.recheck(*patience),
        }
    }

    fn claim(&mut self, index: TaskIndex, attempt: u32, worker: WorkerId) -> Outcome {
        let held = self.tasks.get(&index).is_some_and(|task| {
            task.state == TaskState::Running && task.attempt == attempt && task.worker == Some(worker)
        });
        if held {
            // Its answer got lost: it is theirs all the same.
            return Outcome::Applied;
        }
        if self.run.state.is_final() || !self.moves(index, TaskEvent::Claimed { attempt, worker }) {
            return Outcome::Stale;
        }
        self.record(EventKind::TaskStarted, Some(index), None, json!({"worker": worker}));
        Outcome::Applied
    }

    /// A failure counts only from the worker that holds the attempt: one that got a duplicate message knows less.
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
        let before = self.tasks[&index].state;
        self.begun(index, started_at, before);
        self.give_up(index, failure.clone());
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
            self.begun(index, started_at, before.state);
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

    /// The attempt is over without an end of its own; the next one follows at once, and uses up no retry.
    fn hand_back(&mut self, index: TaskIndex, attempt: u32, worker: WorkerId, reason: &str) -> Outcome {
        let Some(before) = self.tasks.get(&index).filter(|task| task.worker == Some(worker)).cloned() else {
            return Outcome::Stale;
        };
        if !self.moves(index, TaskEvent::HandedBack { attempt }) {
            return Outcome::Stale;
        }
        self.record(
            EventKind::TaskHandedBack,
            Some(index),
            None,
            json!({"worker": worker, "reason": reason}),
        );
        self.last_event().attempt = attempt;
        self.attempts.push(AttemptRecord {
            task: index,
            attempt,
            state: TaskState::Cancelled,
            worker: Some(worker),
            started_at: before.started_at,
            finished_at: self.now,
            failure: None,
            decision: format!("handed back: {reason}"),
        });
        self.relaunch(index);
        Outcome::Applied
    }

    fn wake(&mut self, index: TaskIndex, attempt: u32, kind: TimerKind) -> Outcome {
        if self.tasks.get(&index).is_none_or(|task| task.attempt != attempt) {
            return Outcome::Stale;
        }
        match kind {
            TimerKind::Retry if self.moves(index, TaskEvent::RetryDue) => self.relaunch(index),
            TimerKind::Timeout if self.tasks[&index].state == TaskState::Sleeping => {
                self.give_up(
                    index,
                    Failure::new(ErrorClass::Timeout, "what it waited for did not come in time"),
                );
            }
            TimerKind::Sleep if self.tasks[&index].state == TaskState::Sleeping && self.is_sensor(index) => {
                self.look(index)
            }
            TimerKind::Sleep if self.tasks[&index].state == TaskState::Sleeping => {
                self.must(index, TaskEvent::Succeeded { attempt }, EventKind::TaskSucceeded, Value::Null)
            }
            _ => return Outcome::Stale,
        }
        Outcome::Applied
    }

    fn rejoin(&mut self, index: TaskIndex, attempt: u32) -> Outcome {
        let waits = self.tasks.get(&index).is_some_and(|task| task.attempt == attempt)
            && self.spec(index).global.is_some();
        if !waits || !self.moves(index, TaskEvent::WokeUp) {
            return Outcome::Stale;
        }
        self.undirected.insert(index);
        Outcome::Applied
    }

    /// Hands a signal to those who wait for it; where nobody does yet, it is kept for the first who will.
    fn signal(&mut self, name: &str, payload: &Value, actor: &str) -> Outcome {
        if self.run.state.is_final() {
            return Outcome::Stale;
        }
        self.record(EventKind::RunSignalled, None, Some(actor), json!({"signal": name}));
        let graph = self.graph;
        let asleep = |slice: &Self, task: &TaskIndex| {
            slice.tasks.get(task).is_some_and(|task| task.state == TaskState::Sleeping)
        };
        let waiting: Vec<TaskIndex> = graph.waiting_for(name).filter(|task| asleep(self, task)).collect();
        if waiting.is_empty() {
            // Of two by one name, the later stands.
            self.kept_signals.retain(|kept| kept.name != name);
            self.kept_signals.push(Signal { name: name.into(), payload: payload.clone() });
        }
        for index in waiting {
            self.succeed(index, self.tasks[&index].attempt, self.now, payload);
        }
        Outcome::Applied
    }

    fn answer(&mut self, index: TaskIndex, approved: bool, payload: &Value, actor: &str) -> Outcome {
        let asks = self.tasks.get(&index).is_some_and(|task| task.state == TaskState::Sleeping)
            && self.spec(index).kind == TaskKind::Approval;
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

    /// The current attempt failed: another one follows, at once or by a timer, or the task has failed.
    pub(crate) fn fail(&mut self, index: TaskIndex, failure: Failure) {
        let task = &self.tasks[&index];
        let (attempt, worker, started_at) = (task.attempt, task.worker, task.started_at);
        let choice = self.choose(index, &failure);
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
                self.call_back_for(index, Occasion::Retry);
                self.call_back_for_run(Some(index), Occasion::Retry);
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

    /// Whether another attempt follows.
    fn choose(&self, index: TaskIndex, failure: &Failure) -> Choice {
        let (task, spec) = (&self.tasks[&index], self.spec(index));
        if !spec.kind.is_retryable() {
            return Choice::GiveUp { reason: "engine tasks are not retried".into() };
        }
        let choice =
            retry::choose(&spec.retry, self.key(index), task.tries(), failure, task.failure.as_ref());
        match (&choice, self.give_up_at(index), spec.retry_timeout_seconds) {
            (Choice::Retry { delay, .. }, Some(end), Some(limit)) if self.now + *delay >= end => {
                Choice::GiveUp { reason: format!("its retry_timeout_seconds of {limit} would be over") }
            }
            _ => choice,
        }
    }

    /// When all attempts at a task together have taken as long as they may.
    pub(crate) fn give_up_at(&self, index: TaskIndex) -> Option<Instant> {
        let limit = self.spec(index).retry_timeout_seconds?;
        Some(self.tasks[&index].begun_at? + TimeDelta::seconds(limit.into()))
    }

    fn try_again(&mut self, index: TaskIndex, attempt: u32, delay: TimeDelta) {
        if delay.is_zero() {
            self.apply(index, TaskEvent::RetryDue).expect("it has just been put up for retry");
            self.relaunch(index);
        } else {
            let wake_at = self.now + delay;
            self.set_timer(Timer { task: Some(index), attempt, kind: TimerKind::Retry, wake_at });
        }
    }

    /// Whether `attempt` is the one that may report a failure.
    pub(crate) fn holds(&self, index: TaskIndex, attempt: u32) -> bool {
        let Some(task) = self.tasks.get(&index).filter(|task| task.attempt == attempt) else { return false };
        match task.state {
            TaskState::Dispatched | TaskState::Running => true,
            TaskState::Sleeping => self.waits_for_others(index) || self.is_sensor(index),
            _ => false,
        }
    }

    /// Whether a sleeping task's work is done by another run, which reports.
    pub(crate) fn waits_for_others(&self, index: TaskIndex) -> bool {
        let spec = self.spec(index);
        spec.kind.starts_run() || spec.global.is_some()
    }

    pub(crate) fn moves(&mut self, index: TaskIndex, event: TaskEvent) -> bool {
        self.knows(index) && self.apply(index, event).is_ok()
    }

    /// An attempt says with its report when its work began: one that was claimed, a while after that. What only sleeps
    /// began when it fell asleep.
    fn begun(&mut self, index: TaskIndex, started_at: Instant, before: TaskState) {
        let task = self.tasks.get_mut(&index).expect("it has just been moved");
        let began = started_at.min(self.now);
        match &mut task.started_at {
            Some(claimed) if before == TaskState::Running => *claimed = began.max(*claimed),
            Some(_) => {}
            None => task.started_at = Some(began),
        }
    }

    pub(crate) fn unfinished(&self, wanted: impl Fn(&model::Task) -> bool) -> Vec<TaskIndex> {
        let open = self.tasks.values().filter(|task| !task.state.is_final() && wanted(task));
        open.map(|task| task.index).collect()
    }
}

fn with(mut object: Value, name: &str, value: Value) -> Value {
    object[name] = value;
    object
}
