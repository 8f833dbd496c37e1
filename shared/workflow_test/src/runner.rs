//! Executes a run: the real runtime over a store in memory, and a clock that jumps to the next due event.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta};
use engine::Command;
use model::message::{CancelRequested, PollDue, PollTarget, RunRequested, TaskDispatched, TaskResult};
use model::{Clock, Failure, Instant, Message, RunId, TaskKey, TaskSpec, TenantId, WorkerId};
use runtime::{Job, Result, Runtime, Settled, StartRun};
use serde_json::{Map, Value};
use store::Memory;
use uuid::Uuid;

use crate::action::{Action, ActionKind};
use crate::attempt::{Attempt, perform};
use crate::callback;
use crate::fakes::{FakeBus, VirtualClock};
use crate::fixtures::Fixtures;
use crate::outcome::{Finish, Outcome, TaskOutcome};
use crate::stub::Stubs;
use crate::suite::Test;
use crate::tracked_run::TrackedRun;

/// Every test has its own store, so they share an id; jitter, which is derived from it, is always the same.
const RUN: RunId = RunId(Uuid::from_u128(1));
const WORKER: WorkerId = WorkerId(Uuid::from_u128(2));
const TENANT: TenantId = TenantId::DEFAULT;

/// When virtual time starts, unless a test says otherwise: 2026-01-01T00:00:00Z.
const DEFAULT_START: DateTime<chrono::Utc> =
    DateTime::from_timestamp_secs(1_767_225_600).expect("a valid instant");

/// A run that needs more steps is caught in a loop.
const MAX_STEPS: u32 = 100_000;

/// The maximum virtual duration of a run.
const MAX_DURATION: TimeDelta = TimeDelta::days(20 * 366);

/// How many timers fire in one transaction.
const TIMER_BATCH: u32 = 200;

/// What happens next. At the same instant attempts end first, then people act, then timers fire: an answer at the very
/// last moment is in time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    EndAttempt,
    Act,
    FireTimers,
    EndPauses,
}

struct Runner<'t> {
    test: &'t Test,
    runtime: Runtime,
    queue: FakeBus,
    clock: VirtualClock,
    start: Instant,
    /// The run under test, followed by the runs it started.
    runs: Vec<TrackedRun>,
    /// Attempts by when they end; at the same instant, by when they started.
    attempts: BTreeMap<(Instant, usize), Attempt>,
    /// How many attempts started.
    started: usize,
    /// How many actions were taken.
    acted: usize,
    /// Actions that no task was waiting for, and when they happened.
    unused: Vec<(&'t Action, Instant)>,
    /// The tasks that started, in order.
    order: Vec<TaskKey>,
    callbacks: Vec<Value>,
    ended: bool,
}

/// Executes one run until it ends or nothing more happens.
pub(crate) async fn run<'t>(fixtures: &Fixtures, test: &'t Test) -> Result<Outcome<'t>> {
    let mut runner = Runner::new(test);
    runner.start_run(fixtures).await?;
    let finish = runner.run_to_end().await?;
    runner.close(finish).await
}

impl<'t> Runner<'t> {
    fn new(test: &'t Test) -> Self {
        let start = test.now.or(test.logical_date).unwrap_or(DEFAULT_START);
        let (queue, clock) = (FakeBus::default(), VirtualClock::at(start));
        let runtime =
            Runtime::new(Arc::new(Memory::default()), Arc::new(queue.clone()), Arc::new(clock.clone()));
        let (runs, attempts, unused, order, callbacks) = Default::default();
        let (started, acted, ended) = Default::default();
        Self {
            test,
            runtime,
            queue,
            clock,
            start,
            runs,
            attempts,
            started,
            acted,
            unused,
            order,
            callbacks,
            ended,
        }
    }

    async fn start_run(&mut self, fixtures: &Fixtures) -> Result<()> {
        self.runtime.definitions().register(TENANT, fixtures.0.clone(), "test").await?;
        let origin = runtime::Origin::Api { by: "test".to_owned() };
        let request = StartRun {
            inputs: self.test.inputs.clone(),
            logical_date: self.test.logical_date,
            ..StartRun::new(RUN, TENANT, &fixtures.workflow().name, origin)
        };
        self.runtime.start(request).await?;
        self.track(RUN, String::new()).await
    }

    /// Tracks a run from here on, if it exists.
    async fn track(&mut self, run: RunId, path: String) -> Result<()> {
        self.runs.extend(TrackedRun::find(&self.runtime, TENANT, run, path).await?);
        Ok(())
    }

    fn tracked(&mut self, run: RunId) -> Option<&mut TrackedRun> {
        self.runs.iter_mut().find(|tracked| tracked.run == run)
    }

    async fn run_to_end(&mut self) -> Result<Finish> {
        for _ in 0..MAX_STEPS {
            self.deliver().await?;
            if self.ended {
                return Ok(Finish::Ended);
            }
            match self.next().await? {
                Some((at, _)) if at > self.start + MAX_DURATION => return Ok(Finish::TooLong(MAX_DURATION)),
                Some((at, next)) => {
                    self.clock.advance_to(at);
                    self.advance(next).await?;
                }
                None => return Ok(Finish::Waiting),
            }
        }
        Ok(Finish::Endless(MAX_STEPS))
    }

    /// Handles published messages, and those that follow from them, until there are no more.
    async fn deliver(&mut self) -> Result<()> {
        loop {
            self.observe().await?;
            let messages = self.queue.take();
            if messages.is_empty() {
                return Ok(());
            }
            for message in messages {
                self.receive(message).await?;
            }
        }
    }

    async fn receive(&mut self, message: Message) -> Result<()> {
        match message {
            Message::TaskDispatched(work) => self.start_attempt(&work).await?,
            Message::PollDue(due) => self.poll(due).await?,
            Message::RunRequested(request) => self.start_child(request).await?,
            Message::ChildFinished(finished) => drop(self.runtime.child_runs().ended(&finished).await?),
            Message::SharedFinished(finished) => self.runtime.child_runs().shared_ended(&finished).await?,
            Message::ConcurrencyGroupFreed(freed) => self.runtime.admit(&freed).await?,
            Message::CancelRequested(CancelRequested { run, actor, reason }) => {
                let cancel = Command::Cancel { actor, reason: Some(reason) };
                self.runtime.settle(run, cancel).await?;
            }
            Message::CallbackDue(due) if due.run == RUN => {
                self.callbacks.push(callback::render(&self.runtime, &due).await?);
            }
            Message::RunFinished(finished) if finished.run == RUN => self.ended = true,
            // Timers are read from the store; the other messages have no receiver here.
            _ => {}
        }
        Ok(())
    }

    async fn start_attempt(&mut self, work: &TaskDispatched) -> Result<()> {
        let (key, attempt) = (work.key, work.attempt);
        let claim = Command::Claim { task: key.task, attempt, worker: WORKER };
        if self.runtime.settle(key.run, claim).await? != Settled::Applied {
            return Ok(());
        }
        let Some((takes, result)) = self.perform(work).await? else { return Ok(()) };
        let started_at = self.clock.now();
        self.schedule(takes, Attempt { key, number: attempt, worker: Some(WORKER), started_at, result });
        Ok(())
    }

    /// A sensor polls: its stub says when it finds something, and what.
    async fn poll(&mut self, PollDue { tenant, queue, target }: PollDue) -> Result<()> {
        let PollTarget::Task { key, attempt, version, child, .. } = target else { return Ok(()) };
        if self.attempts.values().any(|active| active.key == key && active.number == attempt) {
            return Ok(());
        }
        let work = TaskDispatched { key, tenant, attempt, version, queue, child, give_up_at: None };
        let Some((takes, result)) = self.perform(&work).await? else { return Ok(()) };
        let started_at = self.clock.now();
        self.schedule(takes, Attempt { key, number: attempt, worker: None, started_at, result });
        Ok(())
    }

    /// The duration and result of an attempt; none if its run is gone.
    async fn perform(&mut self, work: &TaskDispatched) -> Result<Option<(TimeDelta, TaskResult)>> {
        let (key, attempt, now) = (work.key, work.attempt, self.clock.now());
        let Some(tracked) = self.tracked(key.run) else { return Ok(None) };
        let (graph, name) = (tracked.graph.clone(), tracked.name_at(key.task, work.child));
        let spec = graph.spec_at(key.task, work.child);
        Ok(match self.runtime.job(work, &graph, secrets(spec)).await? {
            Job::Ready(brief) => {
                let stub = Stubs::find(&self.test.stubs, &name, attempt);
                let stubbed = stub.map(|stub| (stub.takes, stub.end.result(key.run)));
                let custom = graph.workflow().custom_type(&spec.kind);
                if stubbed.is_none() && custom.is_some_and(|(_, custom)| custom.output.is_some()) {
                    let message =
                        format!("`{}` declares an output: give `{name}` a stub with one", spec.kind);
                    return Ok(Some((TimeDelta::zero(), TaskResult::Failed(Failure::permanent(message)))));
                }
                let limit = if spec.pacing.is_some() { TimeDelta::MAX } else { limit(spec, work, now) };
                let performed = perform(spec, stubbed, &brief.config, limit);
                if let Some(tracked) = self.tracked(key.run) {
                    tracked.configs.insert(key.task, brief.config);
                }
                Some(performed)
            }
            Job::Broken(failure) => Some((TimeDelta::zero(), TaskResult::Failed(failure))),
            Job::Gone => None,
        })
    }

    fn schedule(&mut self, takes: TimeDelta, attempt: Attempt) {
        self.started += 1;
        self.attempts.insert((attempt.started_at + takes, self.started), attempt);
    }

    /// A task requests a run: the task's stub states its result, or it is executed, too.
    async fn start_child(&mut self, request: RunRequested) -> Result<()> {
        let Some(parent) = request.parent else { return Ok(()) };
        let Some(name) = self.tracked(parent.key.run).map(|tracked| tracked.name(parent.key.task)) else {
            return Ok(());
        };
        if let Some(stub) = Stubs::find(&self.test.stubs, &name, parent.attempt) {
            let result = stub.end.result(request.run);
            let (key, number, started_at) = (parent.key, parent.attempt, self.clock.now());
            self.schedule(stub.takes, Attempt { key, number, worker: None, started_at, result });
            return Ok(());
        }
        let run = request.run;
        let start = StartRun::from(request);
        match self.runtime.child_runs().start(start, parent).await {
            // A task that does not wait for the run is not affected if it cannot start.
            Err(error) if !error.is_hopeless() => return Err(error),
            _ => {}
        }
        self.track(run, format!("{name}/")).await
    }

    /// The next event, and when it is due.
    async fn next(&self) -> Result<Option<(Instant, Next)>> {
        let ends = self.attempts.keys().next().map(|(at, _)| (*at, Next::EndAttempt));
        let action = self.test.actions.get(self.acted).map(|action| (self.start + action.after, Next::Act));
        let agenda = self.runtime.store().agenda(self.clock.now()).await?;
        let timers = agenda.timer.map(|at| (at, Next::FireTimers));
        let pauses = agenda.breaker.map(|at| (at, Next::EndPauses));
        Ok([ends, action, timers, pauses].into_iter().flatten().min())
    }

    async fn advance(&mut self, next: Next) -> Result<()> {
        match next {
            Next::EndAttempt => self.end_attempt().await,
            Next::Act => self.act().await,
            Next::FireTimers => self.fire_timers().await,
            Next::EndPauses => {
                self.runtime.slots().breakers().end_pauses(self.clock.now(), TIMER_BATCH).await.map(drop)
            }
        }
    }

    async fn end_attempt(&mut self) -> Result<()> {
        let Some((_, Attempt { key, number, worker, started_at, result })) = self.attempts.pop_first() else {
            return Ok(());
        };
        let report = Command::Report { task: key.task, attempt: number, worker, started_at, result };
        self.runtime.settle(key.run, report).await.map(drop)
    }

    async fn act(&mut self) -> Result<()> {
        let test = self.test;
        let Some(action) = test.actions.get(self.acted) else { return Ok(()) };
        self.acted += 1;
        let actor = action.by.clone();
        let command = match action.kind.clone() {
            ActionKind::Signal { name, payload } => Command::Signal { name, payload, actor },
            ActionKind::Approve { task, fields } => {
                Command::Answer { task, approved: true, payload: Value::Object(fields), actor }
            }
            ActionKind::Reject { task, reason } => {
                Command::Answer { task, approved: false, payload: Value::from(reason), actor }
            }
            ActionKind::Cancel { reason } => Command::Cancel { actor, reason },
        };
        if self.runtime.settle(RUN, command).await? == Settled::Stale {
            self.unused.push((action, self.clock.now()));
        }
        Ok(())
    }

    async fn fire_timers(&self) -> Result<()> {
        let due = self.runtime.store().due_timers(self.clock.now(), TIMER_BATCH).await?;
        let wake = due.into_iter().map(|due| {
            let timer = due.timer;
            (due.run, Command::Wake { task: timer.task, attempt: timer.attempt, kind: timer.kind })
        });
        self.runtime.settle_all(&wake.collect::<Vec<_>>()).await.map(drop)
    }

    async fn observe(&mut self) -> Result<()> {
        for tracked in &mut self.runs {
            self.order.extend(tracked.observe(&self.runtime).await?);
        }
        Ok(())
    }

    async fn close(mut self, finish: Finish) -> Result<Outcome<'t>> {
        self.observe().await?;
        let store = self.runtime.store();
        let gone = || store::Error::Unreadable { what: "run", why: "it is gone".to_owned() };
        let record = store.run(TENANT, RUN).await?.ok_or_else(gone)?;
        let mut tasks = Vec::new();
        for (tracked, run) in self.runs.iter().zip(0..) {
            let mut records = store.run_tasks(tracked.run, None, None, u32::MAX).await?;
            let fan_outs = tracked.graph.indices().filter(|task| tracked.graph.spec(*task).fan_out.is_some());
            for fan_out in fan_outs {
                records.extend(store.run_tasks(tracked.run, Some(fan_out), None, u32::MAX).await?);
            }
            tasks.extend(records.into_iter().map(|record| {
                let name = tracked.name_at(record.task.index, record.task.child);
                TaskOutcome { name, run, record }
            }));
        }
        Ok(Outcome {
            finish,
            run: record.run,
            runs: self.runs,
            tasks,
            order: self.order,
            callbacks: self.callbacks,
            start: self.start,
            now: self.clock.now(),
            unused: self.unused,
            pending: &self.test.actions[self.acted..],
        })
    }
}

/// The time limit of an attempt: its own, or what is left for all attempts together.
fn limit(spec: &TaskSpec, work: &TaskDispatched, now: Instant) -> TimeDelta {
    let one = TimeDelta::seconds(spec.timeout_seconds.into());
    work.give_up_at.map_or(one, |end| one.min(end - now))
}

/// Placeholders for the secrets that a task names.
fn secrets(spec: &TaskSpec) -> Map<String, Value> {
    callback::placeholders(runtime::secrets_of(spec))
}
