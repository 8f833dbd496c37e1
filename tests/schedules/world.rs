//! The runtime over the in-memory store, with workers that take as long as a test says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bus::Bus;
use chrono::TimeDelta;
use engine::Command;
use language::{FileKind, SourceFile};
use model::message::{TaskDispatched, TaskResult};
use model::{Clock, Failure, Instant, Limit, Message, RunId, TaskIndex, TaskKey, TenantId, WorkerId};
use runtime::{Runtime, Settled, StartRun};
use serde_json::Value;
use store::{Memory, RunFilter, RunRecord, ScheduleRecord, Store};
use testkit::ManualClock;
use uuid::Uuid;

pub(crate) const TENANT: TenantId = TenantId::DEFAULT;
const WORKER: WorkerId = WorkerId(Uuid::from_u128(9));

/// Keeps what is published.
#[derive(Clone, Default)]
pub(crate) struct Letters(Arc<Mutex<Vec<Message>>>);

#[async_trait]
impl Bus for Letters {
    async fn publish(&self, messages: &[Message]) -> Result<(), bus::Error> {
        self.0.lock().unwrap().extend_from_slice(messages);
        Ok(())
    }

    async fn ping(&self) -> Result<(), bus::Error> {
        Ok(())
    }
}

/// Takes nothing and never answers.
struct Silence;

#[async_trait]
impl Bus for Silence {
    async fn publish(&self, _: &[Message]) -> Result<(), bus::Error> {
        std::future::pending().await
    }

    async fn ping(&self) -> Result<(), bus::Error> {
        Ok(())
    }
}

/// Whether a task of a run of that date fails.
type Verdict = Box<dyn Fn(Option<Instant>, TaskIndex) -> bool + Send>;

pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) runtime: Arc<Runtime>,
    letters: Letters,
    /// What workers will have done, and when.
    work: BTreeMap<(Instant, usize), TaskDispatched>,
    dispatched: usize,
    /// How long a task takes.
    pub(crate) takes: TimeDelta,
    pub(crate) fails: Verdict,
}

impl World {
    pub(crate) fn at(instant: &str) -> Self {
        let (clock, letters) = (ManualClock::at(instant), Letters::default());
        let runtime =
            Runtime::new(Arc::new(Memory::default()), Arc::new(letters.clone()), Arc::new(clock.clone()));
        Self {
            clock,
            runtime: Arc::new(runtime),
            letters,
            work: BTreeMap::new(),
            dispatched: 0,
            takes: TimeDelta::minutes(10),
            fails: Box::new(|_, _| false),
        }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.runtime.store()
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// A second process on the same state.
    pub(crate) fn twin(&self) -> Runtime {
        Runtime::new(self.store().clone(), Arc::new(self.letters.clone()), Arc::new(self.clock.clone()))
    }

    /// A second process on the same state, which stands still for ever as soon as it has something to say.
    pub(crate) fn dying_twin(&self) -> Runtime {
        Runtime::new(self.store().clone(), Arc::new(Silence), Arc::new(self.clock.clone()))
    }

    /// Registers a workflow as it is written.
    pub(crate) async fn write(&self, text: &str) {
        let file = SourceFile { path: "inline".into(), kind: FileKind::Workflow, text: text.to_owned() };
        let compiled = language::compile(&[file]);
        assert!(compiled.diagnostics.is_empty(), "{:#?}", compiled.diagnostics);
        self.runtime.register(TENANT, compiled.definitions, "test").await.unwrap();
    }

    /// Starts a run as a person does.
    pub(crate) async fn start(&mut self, workflow: &str, number: u128) {
        let request = StartRun {
            id: RunId(Uuid::from_u128(1_000 + number)),
            tenant: TENANT,
            workflow: workflow.to_owned(),
            inputs: Default::default(),
            labels: Default::default(),
            logical_date: None,
            origin: runtime::Origin::Api { by: "test".into() },
            priority: 0,
        };
        self.runtime.start(request).await.unwrap();
        self.deliver().await;
    }

    pub(crate) async fn places(&self, places: Option<u32>) {
        self.store().set_slots(&Limit::Queue("light".into()), places).await.unwrap();
        self.store().set_slots(&Limit::Tenant(TENANT), None).await.unwrap();
    }

    pub(crate) async fn schedule(&self, workflow: &str, name: &str) -> ScheduleRecord {
        let all = self.store().schedules(TENANT, Some(workflow), None, 100).await.unwrap();
        all.into_iter().find(|record| record.schedule.name == name).unwrap()
    }

    pub(crate) async fn runs(&self, workflow: &str) -> Vec<RunRecord> {
        let filter = RunFilter { workflow: Some(workflow.into()), limit: u32::MAX, ..RunFilter::default() };
        let mut runs = self.store().runs(TENANT, &filter).await.unwrap();
        runs.sort_by_key(|found| (found.facts.logical_date, found.run.id));
        runs
    }

    /// The logical dates of a workflow's runs, as texts.
    pub(crate) async fn dates(&self, workflow: &str) -> Vec<String> {
        let date =
            |found: RunRecord| found.facts.logical_date.map(|date| date.format("%m-%dT%H:%M").to_string());
        self.runs(workflow).await.into_iter().filter_map(date).collect()
    }

    /// What the first task of a run is given, rendered.
    pub(crate) async fn config(&self, found: &RunRecord) -> Value {
        let (version, queue) = (found.run.version, "light".to_owned());
        let key = TaskKey { run: found.run.id, task: TaskIndex(0) };
        let work =
            TaskDispatched { key, tenant: TENANT, attempt: 1, version, queue, child: None, give_up_at: None };
        let graph = self.runtime.graph(version).await.unwrap().unwrap();
        match self.runtime.job(&work, &graph, Default::default()).await.unwrap() {
            runtime::Job::Ready(brief) => brief.config,
            other => panic!("{other:?}"),
        }
    }

    /// When the first task of a run began.
    pub(crate) async fn began(&self, run: RunId) -> Option<Instant> {
        self.store().run_tasks(run, None, None, 1).await.unwrap()[0].task.started_at
    }

    /// Moves time and lets the sweep look at what is due then, and only then.
    pub(crate) async fn sweep_at(&mut self, instant: &str) {
        self.clock.set(instant.parse().unwrap());
        self.sweep().await;
    }

    pub(crate) async fn sweep(&mut self) {
        let now = self.now();
        while self.runtime.schedules().fire(now, 100).await.unwrap() > 0
            && self.store().agenda(now).await.unwrap().schedule.is_some_and(|at| at <= now)
        {}
        self.runtime.backfills().advance_due(now, 100).await.unwrap();
        self.deliver().await;
    }

    /// Lives through time until that instant: the sweep ticks when something is due, workers work.
    pub(crate) async fn live_until(&mut self, end: Instant) {
        self.deliver().await;
        loop {
            let agenda = self.store().agenda(self.now()).await.unwrap();
            let due = [agenda.schedule, agenda.backfill].into_iter().flatten().filter(|at| *at <= self.now());
            let next = due.map(|_| self.now()).next().or(agenda.next_timer);
            let next = next.into_iter().chain(self.work.keys().next().map(|(at, _)| *at)).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.clock.set(next.max(self.now()));
            self.finish_work().await;
            self.sweep().await;
        }
        self.clock.set(end);
    }

    async fn finish_work(&mut self) {
        while let Some(entry) = self.work.first_entry().filter(|entry| entry.key().0 <= self.clock.now()) {
            let TaskDispatched { key, attempt, .. } = entry.remove();
            let facts = self.store().facts(key.run).await.unwrap().unwrap();
            let result = match (self.fails)(facts.logical_date, key.task) {
                true => TaskResult::Failed(Failure::permanent("as it was told")),
                false => TaskResult::Succeeded(Value::Null),
            };
            let (task, worker, started_at) = (key.task, Some(WORKER), self.now() - self.takes);
            let report = Command::Report { task, attempt, worker, started_at, result };
            self.runtime.settle(key.run, report).await.unwrap();
            self.deliver().await;
        }
    }

    /// Carries out what was published, and what follows from it.
    pub(crate) async fn deliver(&mut self) {
        loop {
            let messages = std::mem::take(&mut *self.letters.0.lock().unwrap());
            if messages.is_empty() {
                return;
            }
            for message in messages {
                match message {
                    Message::TaskDispatched(task) => self.claim(task).await,
                    Message::ConcurrencyGroupFreed(freed) => self.runtime.admit(&freed).await.unwrap(),
                    Message::CancelRequested(asked) => {
                        let (actor, reason) = (asked.actor, Some(asked.reason));
                        self.runtime.settle(asked.run, Command::Cancel { actor, reason }).await.unwrap();
                    }
                    _ => {}
                }
            }
        }
    }

    async fn claim(&mut self, task: TaskDispatched) {
        let claim = Command::Claim { task: task.key.task, attempt: task.attempt, worker: WORKER };
        if self.runtime.settle(task.key.run, claim).await.unwrap() == Settled::Applied {
            self.dispatched += 1;
            self.work.insert((self.now() + self.takes, self.dispatched), task);
        }
    }
}
