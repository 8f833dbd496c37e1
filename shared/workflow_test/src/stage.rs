//! A run is played: the real runtime over a store in memory, and time that jumps to the next thing that is due.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta};
use clock::Clock;
use engine::Command;
use model::message::{CancelRequested, PollDue, RunRequested, TaskDispatched, TaskResult, Watch};
use model::{Instant, Message, RunId, TaskKey, TaskSpec, TenantId, WorkerId};
use runtime::{Job, Result, Runtime, Settled, StartRun};
use serde_json::{Map, Value};
use store::Memory;
use uuid::Uuid;

use crate::attempt::{Attempt, perform};
use crate::callback;
use crate::cast::Cast;
use crate::line::{Deed, Line};
use crate::outcome::{Outcome, Played, Rest};
use crate::props::{Queue, VirtualClock};
use crate::role::Role;
use crate::stub::Stubs;
use crate::suite::Test;

/// Every test has a store of its own, so one id does for all; jitter, which comes from it, is always the same.
const RUN: RunId = RunId(Uuid::from_u128(1));
const WORKER: WorkerId = WorkerId(Uuid::from_u128(2));
const TENANT: TenantId = TenantId::DEFAULT;

/// When virtual time begins, unless a test says otherwise: 2026-01-01T00:00:00Z.
const BEGINNING: DateTime<chrono::Utc> =
    DateTime::from_timestamp_secs(1_767_225_600).expect("a valid instant");

/// A run that needs more steps is going round in circles.
const MOST_STEPS: u32 = 100_000;

/// Nobody waits longer for a run.
const LONGEST: TimeDelta = TimeDelta::days(20 * 366);

/// So many timers fire in one transaction.
const BATCH: u32 = 200;

/// What happens next. At one instant attempts end first, then people act, then timers fire: what comes at the very
/// last moment is in time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    AttemptEnds,
    LineIsSaid,
    TimersFire,
}

struct Stage<'t> {
    test: &'t Test,
    runtime: Runtime,
    queue: Queue,
    clock: VirtualClock,
    start: Instant,
    /// The run under test, and then those that were started, in this order.
    roles: Vec<Role>,
    /// Attempts by when they end; of those at one instant, by when they began.
    attempts: BTreeMap<(Instant, usize), Attempt>,
    /// How many attempts began.
    begun: usize,
    /// How many lines were said.
    said: usize,
    /// The lines that came when nobody could use them, and when.
    unheard: Vec<(&'t Line, Instant)>,
    /// The tasks that began, in the order in which they did.
    order: Vec<TaskKey>,
    callbacks: Vec<Value>,
    ended: bool,
}

/// Plays one run to its end, or until nothing more happens.
pub(crate) async fn play<'t>(cast: &Cast, test: &'t Test) -> Result<Outcome<'t>> {
    let mut stage = Stage::set(test);
    stage.start_run(cast).await?;
    let rest = stage.go_on().await?;
    stage.close(rest).await
}

impl<'t> Stage<'t> {
    fn set(test: &'t Test) -> Self {
        let start = test.now.or(test.logical_date).unwrap_or(BEGINNING);
        let (queue, clock) = (Queue::default(), VirtualClock::at(start));
        let runtime =
            Runtime::new(Arc::new(Memory::default()), Arc::new(queue.clone()), Arc::new(clock.clone()));
        let (roles, attempts, unheard, order, callbacks) = Default::default();
        let (begun, said, ended) = Default::default();
        Self {
            test,
            runtime,
            queue,
            clock,
            start,
            roles,
            attempts,
            begun,
            said,
            unheard,
            order,
            callbacks,
            ended,
        }
    }

    async fn start_run(&mut self, cast: &Cast) -> Result<()> {
        self.runtime.register(TENANT, cast.0.clone(), "test").await?;
        let request = StartRun {
            id: RUN,
            tenant: TENANT,
            workflow: cast.workflow().name.clone(),
            inputs: self.test.inputs.clone(),
            labels: Map::new(),
            logical_date: self.test.logical_date,
            trigger_kind: "api".to_owned(),
            by: "test".to_owned(),
            parent: None,
            depth: 0,
            priority: 0,
        };
        self.runtime.start(request).await?;
        self.enter(RUN, String::new()).await
    }

    /// Follows a run from here on, if it exists.
    async fn enter(&mut self, run: RunId, path: String) -> Result<()> {
        self.roles.extend(Role::of(&self.runtime, TENANT, run, path).await?);
        Ok(())
    }

    fn role(&mut self, run: RunId) -> Option<&mut Role> {
        self.roles.iter_mut().find(|role| role.run == run)
    }

    async fn go_on(&mut self) -> Result<Rest> {
        for _ in 0..MOST_STEPS {
            self.deliver().await?;
            if self.ended {
                return Ok(Rest::Ended);
            }
            match self.next().await? {
                Some((at, _)) if at > self.start + LONGEST => return Ok(Rest::TooLong(LONGEST)),
                Some((at, next)) => {
                    self.clock.reach(at);
                    self.happen(next).await?;
                }
                None => return Ok(Rest::Waiting),
            }
        }
        Ok(Rest::Endless(MOST_STEPS))
    }

    /// Takes what was published, and what follows from it, until there is no more.
    async fn deliver(&mut self) -> Result<()> {
        loop {
            self.observe().await?;
            let messages = self.queue.take();
            if messages.is_empty() {
                return Ok(());
            }
            for message in messages {
                self.hear(message).await?;
            }
        }
    }

    async fn hear(&mut self, message: Message) -> Result<()> {
        match message {
            Message::TaskDispatched(work) => self.begin(&work).await?,
            Message::PollDue(due) => self.look(due).await?,
            Message::RunRequested(request) => self.start_child(request).await?,
            Message::ChildFinished(finished) => drop(self.runtime.child_ended(&finished).await?),
            Message::SharedFinished(finished) => self.runtime.shared_ended(&finished).await?,
            Message::LaneFreed(freed) => self.runtime.admit(&freed).await?,
            Message::CancelRequested(CancelRequested { run, actor, reason }) => {
                let cancel = Command::Cancel { actor, reason: Some(reason) };
                self.runtime.settle(run, cancel).await?;
            }
            Message::CallbackDue(due) if due.run == RUN => {
                self.callbacks.push(callback::render(&self.runtime, &due).await?);
            }
            Message::RunFinished(finished) if finished.run == RUN => self.ended = true,
            // Timers are looked up, and nobody else listens.
            _ => {}
        }
        Ok(())
    }

    async fn begin(&mut self, work: &TaskDispatched) -> Result<()> {
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

    /// A sensor looks: its stub says when it sees what it waits for, and what that is.
    async fn look(&mut self, PollDue { tenant, queue, watch }: PollDue) -> Result<()> {
        let Watch::Task { key, attempt, version, child, .. } = watch else { return Ok(()) };
        if self.attempts.values().any(|under_way| under_way.key == key && under_way.number == attempt) {
            return Ok(());
        }
        let work = TaskDispatched { key, tenant, attempt, version, queue, child, give_up_at: None };
        let Some((takes, result)) = self.perform(&work).await? else { return Ok(()) };
        let started_at = self.clock.now();
        self.schedule(takes, Attempt { key, number: attempt, worker: None, started_at, result });
        Ok(())
    }

    /// What an attempt comes to, and after how long; none if its run is gone.
    async fn perform(&mut self, work: &TaskDispatched) -> Result<Option<(TimeDelta, TaskResult)>> {
        let (key, attempt, now) = (work.key, work.attempt, self.clock.now());
        let Some(role) = self.role(key.run) else { return Ok(None) };
        let (graph, name) = (role.graph.clone(), role.name_at(key.task, work.child));
        let spec = graph.spec_at(key.task, work.child);
        Ok(match self.runtime.job(work, &graph, secrets(spec)).await? {
            Job::Ready(brief) => {
                let stub = Stubs::find(&self.test.stubs, &name, attempt);
                let stubbed = stub.map(|stub| (stub.takes, stub.end.result(key.run)));
                let limit = if spec.pacing.is_some() { TimeDelta::MAX } else { limit(spec, work, now) };
                let performed = perform(spec, stubbed, &brief.config, limit);
                if let Some(role) = self.role(key.run) {
                    role.configs.insert(key.task, brief.config);
                }
                Some(performed)
            }
            Job::Broken(failure) => Some((TimeDelta::zero(), TaskResult::Failed(failure))),
            Job::Gone => None,
        })
    }

    fn schedule(&mut self, takes: TimeDelta, attempt: Attempt) {
        self.begun += 1;
        self.attempts.insert((attempt.started_at + takes, self.begun), attempt);
    }

    /// A task asks for a run: the task's stub says what becomes of it, or it is played, too.
    async fn start_child(&mut self, request: RunRequested) -> Result<()> {
        let Some(parent) = request.parent else { return Ok(()) };
        let Some(name) = self.role(parent.key.run).map(|role| role.name(parent.key.task)) else {
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
        match self.runtime.start_child(start, parent).await {
            // That it cannot be started is nothing to a task that does not wait for it.
            Err(error) if !error.is_hopeless() => return Err(error),
            _ => {}
        }
        self.enter(run, format!("{name}/")).await
    }

    /// What is due first, and when.
    async fn next(&self) -> Result<Option<(Instant, Next)>> {
        let ends = self.attempts.keys().next().map(|(at, _)| (*at, Next::AttemptEnds));
        let line = self.test.lines.get(self.said).map(|line| (self.start + line.after, Next::LineIsSaid));
        let agenda = self.runtime.store().agenda(self.clock.now()).await?;
        let timers = agenda.timer.map(|at| (at, Next::TimersFire));
        Ok([ends, line, timers].into_iter().flatten().min())
    }

    async fn happen(&mut self, next: Next) -> Result<()> {
        match next {
            Next::AttemptEnds => self.end_attempt().await,
            Next::LineIsSaid => self.say().await,
            Next::TimersFire => self.fire_timers().await,
        }
    }

    async fn end_attempt(&mut self) -> Result<()> {
        let Some((_, Attempt { key, number, worker, started_at, result })) = self.attempts.pop_first() else {
            return Ok(());
        };
        let report = Command::Report { task: key.task, attempt: number, worker, started_at, result };
        self.runtime.settle(key.run, report).await.map(drop)
    }

    async fn say(&mut self) -> Result<()> {
        let test = self.test;
        let Some(line) = test.lines.get(self.said) else { return Ok(()) };
        self.said += 1;
        let actor = line.by.clone();
        let command = match line.deed.clone() {
            Deed::Signal { name, payload } => Command::Signal { name, payload, actor },
            Deed::Approve { task, fields } => {
                Command::Answer { task, approved: true, payload: Value::Object(fields), actor }
            }
            Deed::Reject { task, reason } => {
                Command::Answer { task, approved: false, payload: Value::from(reason), actor }
            }
            Deed::Cancel { reason } => Command::Cancel { actor, reason },
        };
        if self.runtime.settle(RUN, command).await? == Settled::Stale {
            self.unheard.push((line, self.clock.now()));
        }
        Ok(())
    }

    async fn fire_timers(&self) -> Result<()> {
        let due = self.runtime.store().due_timers(self.clock.now(), BATCH).await?;
        let wake = due.into_iter().map(|due| {
            let timer = due.timer;
            (due.run, Command::Wake { task: timer.task, attempt: timer.attempt, kind: timer.kind })
        });
        self.runtime.settle_all(&wake.collect::<Vec<_>>()).await.map(drop)
    }

    async fn observe(&mut self) -> Result<()> {
        for role in &mut self.roles {
            self.order.extend(role.observe(&self.runtime).await?);
        }
        Ok(())
    }

    async fn close(mut self, rest: Rest) -> Result<Outcome<'t>> {
        self.observe().await?;
        let store = self.runtime.store();
        let gone = || store::Error::Unreadable { what: "run", why: "it is gone".to_owned() };
        let record = store.run(TENANT, RUN).await?.ok_or_else(gone)?;
        let mut tasks = Vec::new();
        for (role, place) in self.roles.iter().zip(0..) {
            let mut records = store.run_tasks(role.run, None, None, u32::MAX).await?;
            let fan_outs = role.graph.indices().filter(|task| role.graph.spec(*task).fan_out.is_some());
            for fan_out in fan_outs {
                records.extend(store.run_tasks(role.run, Some(fan_out), None, u32::MAX).await?);
            }
            tasks.extend(records.into_iter().map(|record| {
                let name = role.name_at(record.task.index, record.task.child);
                Played { name, role: place, record }
            }));
        }
        Ok(Outcome {
            rest,
            run: record.run,
            roles: self.roles,
            tasks,
            order: self.order,
            callbacks: self.callbacks,
            start: self.start,
            now: self.clock.now(),
            unheard: self.unheard,
            unsaid: &self.test.lines[self.said..],
        })
    }
}

/// How long an attempt may take: what one may, and no longer than is left for all of them together.
fn limit(spec: &TaskSpec, work: &TaskDispatched, now: Instant) -> TimeDelta {
    let one = TimeDelta::seconds(spec.timeout_seconds.into());
    work.give_up_at.map_or(one, |end| one.min(end - now))
}

/// Stands in for the secrets that a task names.
fn secrets(spec: &TaskSpec) -> Map<String, Value> {
    callback::placeholders(runtime::secrets_of(spec))
}
