//! A runtime over a store, a bus and a clock: what every suite about runs starts from.

use std::sync::Arc;

use accounts::Accounts;
use auth::PushAuth;
use bus::Bus;
use engine::Command;
use host::{App, Connected};
use language::{Definition, FileKind};
use model::message::TaskResult;
use model::{Clock, Event, Instant, RunId, TaskIndex, TenantId, VersionId, Workflow};
use runtime::{Runtime, Settings, Settled, StartRun};
use serde_json::Value;
use store::{
    Connections, DeadLetter, DeadLetterFilter, Memory, NewVersion, Postgres, Registered, RunFilter,
    RunRecord, Store, TaskRecord,
};

use crate::{DEADLINE, Database, ManualClock, SilentBus, compile, definition, migrated, start_run};

/// Several worlds share one server, whose connections are limited.
const CONNECTIONS: u32 = 8;

/// A runtime, and what it runs on. Suites put functions, workers or an API on top of it.
pub struct World<B = SilentBus, C = ManualClock> {
    /// Where the runtime publishes.
    pub bus: B,
    /// The time of the runtime.
    pub clock: C,
    /// Everything that changes runs goes through it.
    pub runtime: Arc<Runtime>,
    memory: Option<Memory>,
    postgres: Option<(Postgres, Database)>,
}

impl World {
    /// A world in memory whose messages are dropped. The test moves its clock.
    pub fn at(instant: &str) -> Self {
        Self::in_memory(SilentBus, ManualClock::at(instant))
    }
}

impl<B: Bus + Clone + 'static, C: Clock + Clone + 'static> World<B, C> {
    /// A world in memory.
    pub fn in_memory(bus: B, clock: C) -> Self {
        let memory = Memory::default();
        let runtime = runtime(Arc::new(memory.clone()), &bus, &clock);
        Self { bus, clock, runtime, memory: Some(memory), postgres: None }
    }

    /// A world on a database of its own.
    pub async fn on_postgres(bus: B, clock: C) -> Self {
        let database = migrated(Postgres::migrate).await;
        let postgres = connect(&database, CONNECTIONS).await;
        let runtime = runtime(Arc::new(postgres.clone()), &bus, &clock);
        Self { bus, clock, runtime, memory: None, postgres: Some((postgres, database)) }
    }

    /// The same world with other settings of its runtime.
    pub fn with(self, settings: Settings) -> Self {
        let (bus, clock) = (Arc::new(self.bus.clone()), Arc::new(self.clock.clone()));
        let runtime = Runtime::new(self.store().clone(), bus, clock).with(settings);
        Self { runtime: Arc::new(runtime), ..self }
    }

    /// The store of the runtime.
    pub fn store(&self) -> &Arc<dyn Store> {
        self.runtime.store()
    }

    /// The store of a world in memory, to look into its rows.
    ///
    /// # Panics
    /// If the world is on Postgres.
    pub fn memory(&self) -> &Memory {
        self.memory.as_ref().expect("a world in memory")
    }

    /// The same store as what it is, for reads and accounts.
    ///
    /// # Panics
    /// If the world is in memory.
    pub fn postgres(&self) -> &Postgres {
        &self.postgres.as_ref().expect("a world on Postgres").0
    }

    /// Where to connect to the database.
    ///
    /// # Panics
    /// If the world is in memory.
    pub fn database_url(&self) -> &str {
        &self.postgres.as_ref().expect("a world on Postgres").1.url
    }

    /// Another process on the same state and bus: it has connections of its own, and its own time.
    pub async fn process(&self, clock: impl Clock + 'static) -> Arc<Runtime> {
        self.process_with(self.bus.clone(), clock, 4).await
    }

    /// Another process on the same state, with a bus, a time and a number of connections of its own.
    pub async fn process_with(
        &self,
        bus: impl Bus + 'static,
        clock: impl Clock + 'static,
        connections: u32,
    ) -> Arc<Runtime> {
        let store: Arc<dyn Store> = match &self.postgres {
            Some((_, database)) => Arc::new(connect(database, connections).await),
            None => self.store().clone(),
        };
        Arc::new(Runtime::new(store, Arc::new(bus), Arc::new(clock)))
    }

    /// What an API stands on.
    ///
    /// # Panics
    /// If the world is in memory.
    pub fn connected(&self, push: PushAuth) -> Connected {
        let (database, accounts) = (read::Database::new(self.postgres()), Accounts::new(self.postgres()));
        Connected { app: self.app(push), database, accounts }
    }

    /// The host of a function.
    pub fn app(&self, push: PushAuth) -> App {
        App::new(self.runtime.clone(), push)
    }

    /// The current time of the world.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Registers a workflow for the default tenant.
    pub async fn register(&self, workflow: Workflow) -> VersionId {
        self.register_all(TenantId::DEFAULT, vec![definition(workflow)]).await[0].version
    }

    /// Registers a workflow file.
    pub async fn write(&self, text: &str) {
        self.write_all(&[text]).await;
    }

    /// Registers workflow files, all of them or none.
    pub async fn write_all(&self, texts: &[&str]) {
        let files: Vec<(FileKind, &str)> = texts.iter().map(|text| (FileKind::Workflow, *text)).collect();
        self.write_files(&files).await;
    }

    /// Registers workflows together with the reusable tasks and templates they name.
    pub async fn write_files(&self, files: &[(FileKind, &str)]) {
        self.register_all(TenantId::DEFAULT, compile(files)).await;
    }

    /// Registers definitions for a tenant. Unlike the runtime it does not wake the sweep, so that a test decides when
    /// schedules and sensors begin.
    pub async fn register_all(&self, tenant: TenantId, definitions: Vec<Definition>) -> Vec<Registered> {
        let new: Vec<NewVersion> = definitions
            .into_iter()
            .map(|Definition { workflow, source, hash }| NewVersion {
                tenant,
                workflow,
                source,
                hash,
                by: "test".to_owned(),
                at: self.now(),
            })
            .collect();
        self.store().register_all(&new).await.expect("sound definitions are registered")
    }

    /// Starts a run without inputs.
    pub async fn start(&self, workflow: &str) -> RunId {
        self.start_with(workflow, &Value::Null).await.expect("the run is created")
    }

    /// Starts a run with inputs.
    ///
    /// # Errors
    /// If the runtime refuses to create it.
    pub async fn start_with(&self, workflow: &str, inputs: &Value) -> runtime::Result<RunId> {
        let inputs = inputs.as_object().cloned().unwrap_or_default();
        let started = self.runtime.start(StartRun { inputs, ..start_run(workflow) }).await?;
        Ok(started.record.run.id)
    }

    /// Settles a command that must take effect.
    pub async fn apply(&self, run: RunId, command: Command) {
        let settled = self.runtime.settle(run, command).await.expect("the command is settled");
        assert_eq!(settled, Settled::Applied);
    }

    /// Reports the result of an attempt, as a worker does.
    pub async fn report(&self, run: RunId, task: u32, attempt: u32, result: TaskResult) {
        let (task, started_at) = (TaskIndex(task), self.now());
        self.apply(run, Command::Report { task, attempt, worker: None, started_at, result }).await;
    }

    /// Sends a signal without a payload.
    pub async fn signal(&self, run: RunId, name: &str) {
        let (name, payload, actor) = (name.to_owned(), Value::Null, "test".to_owned());
        self.apply(run, Command::Signal { name, payload, actor }).await;
    }

    /// Cancels a run, as a person does.
    pub async fn cancel(&self, run: RunId) {
        self.apply(run, Command::Cancel { actor: "test".to_owned(), reason: None }).await;
    }

    /// Reads a run of the default tenant.
    pub async fn run(&self, run: RunId) -> RunRecord {
        let record = self.store().run(TenantId::DEFAULT, run).await.expect("the store answers");
        record.expect("the run exists")
    }

    /// Reads the runs of a workflow, by logical date.
    pub async fn runs(&self, workflow: &str) -> Vec<RunRecord> {
        let filter = RunFilter { workflow: Some(workflow.into()), limit: u32::MAX, ..RunFilter::default() };
        let mut runs = self.store().runs(TenantId::DEFAULT, &filter).await.expect("the store answers");
        runs.sort_by_key(|record| (record.facts.logical_date, record.run.id));
        runs
    }

    /// Reads the tasks of a run in the order of its definition.
    pub async fn tasks(&self, run: RunId) -> Vec<TaskRecord> {
        self.store().run_tasks(run, None, None, 10_000).await.expect("the store answers")
    }

    /// Reads the names of the states of a run's tasks.
    pub async fn states(&self, run: RunId) -> Vec<&'static str> {
        self.tasks(run).await.iter().map(|row| row.task.state.name()).collect()
    }

    /// Reads the output of a task, or null.
    pub async fn output(&self, run: RunId, task: u32) -> Value {
        self.tasks(run).await.swap_remove(task as usize).output.unwrap_or_default()
    }

    /// Reads the history of a run.
    pub async fn events(&self, run: RunId) -> Vec<Event> {
        let events = self.store().events(run, 0, 100_000).await.expect("the store answers");
        events.into_iter().map(|(_, event)| event).collect()
    }

    /// Reads the newest dead letters.
    pub async fn dead_letters(&self) -> Vec<DeadLetter> {
        self.store().dead_letters(&DeadLetterFilter::newest(10)).await.expect("the store answers")
    }
}

fn runtime(
    store: Arc<dyn Store>,
    bus: &(impl Bus + Clone + 'static),
    clock: &(impl Clock + Clone + 'static),
) -> Arc<Runtime> {
    Arc::new(Runtime::new(store, Arc::new(bus.clone()), Arc::new(clock.clone())))
}

/// Connects to the database of a test with at most `max` connections. However busy the machine is, a caller that waits for
/// one gets it.
///
/// # Panics
/// If the database cannot be reached.
pub async fn connect(database: &Database, max: u32) -> Postgres {
    let connections = Connections { acquire_timeout: DEADLINE, ..Connections::at_most(max) };
    Postgres::open(&database.url, None, connections).await.expect("the database of a test is there")
}
