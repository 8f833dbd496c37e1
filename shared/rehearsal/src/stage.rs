//! A run is played: the real runtime over a store in memory, and time that jumps to the next thing that is due.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta};
use clock::Clock;
use engine::{Command, Graph};
use language::Definition;
use model::message::{TaskDispatched, TaskResult};
use model::{
    Event, EventKind, Instant, Message, RunId, TaskIndex, TaskKey, TaskSpec, TenantId, VersionId, WorkerId,
};
use runtime::{Job, Result, Runtime, Settled, StartRun};
use serde_json::{Map, Value};
use store::Memory;
use uuid::Uuid;

use crate::attempt::{Attempt, perform};
use crate::line::{Deed, Line};
use crate::outcome::{Outcome, Rest};
use crate::props::{Queue, VirtualClock};
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
    graph: Arc<Graph>,
    version: VersionId,
    /// Attempts by when they end; of those at one instant, by when they began.
    attempts: BTreeMap<(Instant, usize), Attempt>,
    /// How many attempts began.
    begun: usize,
    /// How many lines were said.
    said: usize,
    /// The lines that came when nobody could use them, and when.
    unheard: Vec<(&'t Line, Instant)>,
    events: Vec<Event>,
    /// The config of each task's latest attempt, rendered.
    configs: BTreeMap<TaskIndex, Value>,
    ended: bool,
}

/// Plays one run to its end, or until nothing more happens.
pub(crate) async fn play<'t>(definition: &Definition, test: &'t Test) -> Result<Outcome<'t>> {
    let mut stage = Stage::set(definition, test).await?;
    stage.start_run().await?;
    let rest = stage.go_on().await?;
    stage.close(rest).await
}

impl<'t> Stage<'t> {
    async fn set(definition: &Definition, test: &'t Test) -> Result<Self> {
        let start = test.now.or(test.logical_date).unwrap_or(BEGINNING);
        let (queue, clock) = (Queue::default(), VirtualClock::at(start));
        let runtime =
            Runtime::new(Arc::new(Memory::default()), Arc::new(queue.clone()), Arc::new(clock.clone()));
        let version = runtime.register(TENANT, vec![definition.clone()], "test").await?[0].version;
        let gone = || runtime::Error::NoSuchWorkflow(definition.workflow.name.clone());
        let graph = runtime.graph(version).await?.ok_or_else(gone)?;
        let (attempts, configs) = (BTreeMap::new(), BTreeMap::new());
        let (begun, said, unheard, events, ended) = (0, 0, Vec::new(), Vec::new(), false);
        Ok(Self {
            test,
            runtime,
            queue,
            clock,
            start,
            graph,
            version,
            attempts,
            begun,
            said,
            unheard,
            events,
            configs,
            ended,
        })
    }

    async fn start_run(&self) -> Result<()> {
        let request = StartRun {
            id: RUN,
            tenant: TENANT,
            workflow: self.graph.workflow().name.clone(),
            inputs: self.test.inputs.clone(),
            labels: Map::new(),
            logical_date: self.test.logical_date,
            trigger_kind: "api".to_owned(),
            by: "test".to_owned(),
            parent: None,
        };
        self.runtime.start(request).await.map(drop)
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

    /// Takes what was published: dispatched attempts begin.
    async fn deliver(&mut self) -> Result<()> {
        self.observe().await?;
        for message in self.queue.take() {
            match message {
                Message::TaskDispatched(work) => self.begin(&work).await?,
                Message::RunFinished(finished) if finished.run == RUN => self.ended = true,
                // Timers are looked up, and nobody else listens.
                _ => {}
            }
        }
        Ok(())
    }

    async fn begin(&mut self, work: &TaskDispatched) -> Result<()> {
        let (task, attempt) = (work.key.task, work.attempt);
        let claim = Command::Claim { task, attempt, worker: WORKER };
        if self.runtime.settle(RUN, claim).await? != Settled::Applied {
            return Ok(());
        }
        let spec = self.graph.spec_at(task, work.child);
        let (takes, result) = match self.runtime.job(work, &self.graph, secrets(spec)).await? {
            Job::Ready(brief) => {
                let stub = Stubs::find(&self.test.stubs, &self.graph.name_at(task, work.child), attempt);
                let performed = perform(spec, stub, &brief.config);
                self.configs.insert(task, brief.config);
                performed
            }
            Job::Broken(failure) => (TimeDelta::zero(), TaskResult::Failed(failure)),
            Job::Gone => return Ok(()),
        };
        let started_at = self.clock.now();
        self.begun += 1;
        let attempt = Attempt { task, number: attempt, started_at, result };
        self.attempts.insert((started_at + takes, self.begun), attempt);
        Ok(())
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
        let Some((_, Attempt { task, number, started_at, result })) = self.attempts.pop_first() else {
            return Ok(());
        };
        let report = Command::Report { task, attempt: number, worker: Some(WORKER), started_at, result };
        self.runtime.settle(RUN, report).await.map(drop)
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

    /// Reads what happened since the last time, and keeps the config that inside tasks began with: no attempt at
    /// them is ever dispatched.
    async fn observe(&mut self) -> Result<()> {
        let new = self.runtime.store().events(RUN, self.events.len() as i64, u32::MAX).await?;
        for (_, event) in new {
            let begins = matches!(
                event.kind,
                EventKind::TaskSleeping | EventKind::TaskWaiting | EventKind::TaskSucceeded
            );
            if let Some(task) = event.task.filter(|task| begins && !self.configs.contains_key(task)) {
                let (key, queue) = (TaskKey { run: RUN, task }, String::new());
                let (attempt, version) = (event.attempt, self.version);
                let (child, give_up_at) = (event.child, None);
                let work = TaskDispatched { key, tenant: TENANT, attempt, version, queue, child, give_up_at };
                if let Job::Ready(brief) = self.runtime.job(&work, &self.graph, Map::new()).await? {
                    self.configs.insert(task, brief.config);
                }
            }
            self.events.push(event);
        }
        Ok(())
    }

    async fn close(mut self, rest: Rest) -> Result<Outcome<'t>> {
        self.observe().await?;
        let store = self.runtime.store();
        let gone = || store::Error::Unreadable { what: "run", why: "it is gone".to_owned() };
        let record = store.run(TENANT, RUN).await?.ok_or_else(gone)?;
        let mut tasks = store.run_tasks(RUN, None, None, u32::MAX).await?;
        for fan_out in self.graph.indices().filter(|task| self.graph.spec(*task).fan_out.is_some()) {
            tasks.extend(store.run_tasks(RUN, Some(fan_out), None, u32::MAX).await?);
        }
        Ok(Outcome {
            rest,
            run: record.run,
            tasks,
            events: self.events,
            configs: self.configs,
            start: self.start,
            now: self.clock.now(),
            unheard: self.unheard,
            unsaid: &self.test.lines[self.said..],
            graph: self.graph,
        })
    }
}

/// Stands in for the secrets that a task names: a test shows where they go, and needs none.
fn secrets(spec: &TaskSpec) -> Map<String, Value> {
    let named = runtime::secrets_of(spec).into_iter();
    named.map(|name| (name.clone(), Value::String(format!("secrets.{name}")))).collect()
}
