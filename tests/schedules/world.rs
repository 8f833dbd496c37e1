//! The runtime over the store in memory, with workers that take as long as a test says.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use chrono::TimeDelta;
use engine::Command;
use model::message::{TaskDispatched, TaskResult};
use model::{Failure, Instant, Limit, Message, RunId, TaskIndex, TaskKey, TenantId, WorkerId};
use runtime::{Runtime, Settings, Settled};
use serde_json::Value;
use store::{RunRecord, ScheduleRecord};
use testkit::{HangingBus, ManualClock, RecordingBus};
use uuid::Uuid;

pub(crate) const TENANT: TenantId = TenantId::DEFAULT;
const WORKER: WorkerId = WorkerId(Uuid::from_u128(9));

/// Whether a task of a run with that logical date fails.
type Fails = Box<dyn Fn(Option<Instant>, TaskIndex) -> bool + Send>;

pub(crate) struct World {
    base: testkit::World<RecordingBus>,
    /// Running attempts, by when they end.
    work: BTreeMap<(Instant, usize), TaskDispatched>,
    dispatched: usize,
    /// How long a task takes.
    pub(crate) takes: TimeDelta,
    pub(crate) fails: Fails,
}

impl Deref for World {
    type Target = testkit::World<RecordingBus>;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

impl World {
    pub(crate) fn at(instant: &str) -> Self {
        Self {
            base: testkit::World::in_memory(RecordingBus::default(), ManualClock::at(instant)),
            work: BTreeMap::new(),
            dispatched: 0,
            takes: TimeDelta::minutes(10),
            fails: Box::new(|_, _| false),
        }
    }

    /// The same world with a quota of unfinished runs.
    pub(crate) fn limited(self, run_quota: u32) -> Self {
        let settings = Settings { run_quota: Some(run_quota), ..Settings::default() };
        Self { base: self.base.with(settings), ..self }
    }

    /// Another process on the same state, which hangs as soon as it publishes.
    pub(crate) async fn hanging_process(&self) -> Arc<Runtime> {
        self.process_with(HangingBus, self.clock.clone(), 1).await
    }

    /// Starts a run and lets workers claim its tasks.
    pub(crate) async fn start_and_deliver(&mut self, workflow: &str) {
        self.start(workflow).await;
        self.deliver().await;
    }

    /// Limits the active tasks of the queue.
    pub(crate) async fn set_slots(&self, slots: Option<u32>) {
        self.store().set_slots(&Limit::Queue("light".into()), slots).await.unwrap();
        self.store().set_slots(&Limit::Tenant(TENANT), None).await.unwrap();
    }

    pub(crate) async fn schedule(&self, workflow: &str, name: &str) -> ScheduleRecord {
        let all = self.store().schedules(TENANT, Some(workflow), None, 100).await.unwrap();
        all.into_iter().find(|record| record.schedule.name == name).unwrap()
    }

    /// The logical dates of a workflow's runs, as texts.
    pub(crate) async fn dates(&self, workflow: &str) -> Vec<String> {
        let date =
            |found: RunRecord| found.facts.logical_date.map(|date| date.format("%m-%dT%H:%M").to_string());
        self.runs(workflow).await.into_iter().filter_map(date).collect()
    }

    /// The rendered settings of the first task of a run.
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
        self.tasks(run).await[0].task.started_at
    }

    /// Moves time to an instant and fires the schedules and backfills that are due then.
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

    /// Lets time pass until an instant: the sweep ticks whenever something is due, and attempts end.
    pub(crate) async fn pass_until(&mut self, end: Instant) {
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
        while let Some(entry) = self.work.first_entry().filter(|entry| entry.key().0 <= self.base.now()) {
            let TaskDispatched { key, attempt, .. } = entry.remove();
            let facts = self.store().run(TENANT, key.run).await.unwrap().unwrap().facts;
            let result = match (self.fails)(facts.logical_date, key.task) {
                true => TaskResult::Failed(Failure::permanent("the test lets it fail")),
                false => TaskResult::Succeeded(Value::Null),
            };
            let (task, worker, started_at) = (key.task, Some(WORKER), self.now() - self.takes);
            let report = Command::Report { task, attempt, worker, started_at, result };
            self.runtime.settle(key.run, report).await.unwrap();
            self.deliver().await;
        }
    }

    /// Handles the published messages, and those that follow from them.
    pub(crate) async fn deliver(&mut self) {
        loop {
            let messages = self.bus.take();
            if messages.is_empty() {
                return;
            }
            for message in messages {
                match message {
                    Message::TaskDispatched(task) => self.claim(task).await,
                    Message::ConcurrencyGroupFreed(freed) => self.runtime.admit(&freed).await.unwrap(),
                    Message::CancelRequested(request) => {
                        let (actor, reason) = (request.actor, Some(request.reason));
                        self.runtime.settle(request.run, Command::Cancel { actor, reason }).await.unwrap();
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
