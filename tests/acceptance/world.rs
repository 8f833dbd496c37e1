//! All functions on a Postgres and a local broker, as `ebb dev` mounts them, without the folder and the port.

use std::sync::Arc;

use auth::{Issuer, Keys, PushAuth, Verifier};
use bus::local::{Broker, Faults};
use bus::{Endpoint, Subscription, SystemClock};
use engine::Command;
use execute::{Executor, Worker};
use host::App;
use language::{FileKind, SourceFile};
use model::{Event, RunId, RunState, TenantId, Topic, Workflow};
use runtime::{Runtime, StartRun};
use serde_json::{Map, Value};
use store::{NewVersion, Postgres, RunRecord, Store, TaskRecord};
use tempfile::TempDir;
use testkit::Database;
use uuid::Uuid;

pub(crate) const PUSHER: &str = "pusher@example.com";
pub(crate) const AUDIENCE: &str = "push";

pub(crate) struct World {
    pub(crate) database: Database,
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) broker: Broker,
    pub(crate) app: App,
    pub(crate) issuer: Arc<Issuer>,
    /// The folder of the workers' secrets, one in each file.
    pub(crate) secrets: TempDir,
}

impl World {
    pub(crate) async fn new() -> Self {
        let database = testkit::database().await;
        Postgres::migrate(&database.url).await.unwrap();
        let store: Arc<dyn Store> = Arc::new(Postgres::connect(&database.url, 8).await.unwrap());
        let issuer = Arc::new(Issuer::generate("https://issuer.example"));
        let broker = Broker::new(Arc::new(SystemClock), issuer.clone(), PUSHER, Faults::default());
        let runtime = Arc::new(Runtime::new(store, Arc::new(broker.clone()), Arc::new(SystemClock)));
        let verifier = Verifier::new([issuer.url()], AUDIENCE, Keys::fixed(&issuer.jwks()));
        let push = PushAuth::Oidc { verifier, service_account: PUSHER.into() };
        let app = App::new(runtime.clone(), push);
        let secrets = tempfile::tempdir().unwrap();
        let executor = Executor::new(runtime.clone(), Worker::new(runtime.clone()), ".");
        // Those whom workflows of tests call are on this machine.
        let executor =
            executor.with_secrets_in(secrets.path()).with_egress_policy(host::EgressPolicy::allow_internal());
        let execute = execute::router_with(app.clone(), executor);
        for (topic, router) in [
            (Topic::Triggers, trigger::router(app.clone(), None)),
            (Topic::Evaluations, evaluate::router(app.clone())),
            (Topic::Work("light".into()), execute),
            (Topic::Management, sweep::router(app.clone())),
        ] {
            let endpoint = Endpoint::Router(router, "/push".into());
            broker.subscribe(&topic, Subscription::new(topic.id(), endpoint, AUDIENCE));
        }
        Self { database, runtime, broker, app, issuer, secrets }
    }

    pub(crate) async fn register(&self, workflow: Workflow) {
        register(&**self.runtime.store(), workflow).await;
    }

    /// Registers workflows as they are written, with the reusable tasks that they name.
    pub(crate) async fn write(&self, files: &[(FileKind, &str)]) {
        for workflow in compile(files) {
            self.register(workflow).await;
        }
    }

    /// Starts a run with inputs.
    pub(crate) async fn start(&self, workflow: &str, inputs: Value) -> runtime::Result<RunId> {
        let inputs = inputs.as_object().cloned().unwrap_or_default();
        Ok(self.runtime.start(StartRun { inputs, ..request(workflow) }).await?.record.run.id)
    }

    /// Sends a signal to a run.
    pub(crate) async fn signal(&self, run: RunId, name: &str) {
        let (name, payload, actor) = (name.to_owned(), Value::Null, "test".to_owned());
        self.runtime.settle(run, Command::Signal { name, payload, actor }).await.unwrap();
    }

    /// How a run stands once nothing is on its way any more.
    pub(crate) async fn state(&self, run: RunId) -> RunState {
        self.finished(run).await.run.state
    }

    /// What a task of the definition delivered.
    pub(crate) async fn output(&self, run: RunId, task: u32) -> Value {
        self.tasks(run).await.swap_remove(task as usize).output.unwrap_or_default()
    }

    pub(crate) async fn trigger(&self, workflow: &str) -> RunId {
        self.start(workflow, Value::Null).await.unwrap()
    }

    /// The run once nothing is on its way any more.
    pub(crate) async fn finished(&self, run: RunId) -> RunRecord {
        self.broker.idle().await;
        self.run(run).await
    }

    pub(crate) async fn run(&self, run: RunId) -> RunRecord {
        self.runtime.store().run(TenantId::DEFAULT, run).await.unwrap().unwrap()
    }

    pub(crate) async fn tasks(&self, run: RunId) -> Vec<TaskRecord> {
        self.runtime.store().run_tasks(run, None, None, 10_000).await.unwrap()
    }

    /// How the tasks stand, in words.
    pub(crate) async fn states(&self, run: RunId) -> Vec<&'static str> {
        self.tasks(run).await.iter().map(|row| row.task.state.name()).collect()
    }

    pub(crate) async fn events(&self, run: RunId) -> Vec<Event> {
        let events = self.runtime.store().events(run, 0, 100_000).await.unwrap();
        events.into_iter().map(|(_, event)| event).collect()
    }
}

/// The workflows that these files define.
pub(crate) fn compile(files: &[(FileKind, &str)]) -> Vec<Workflow> {
    let file = |(place, (kind, text)): (usize, &(FileKind, &str))| SourceFile {
        path: format!("file-{place}"),
        kind: *kind,
        text: (*text).to_owned(),
    };
    let compiled = language::compile(&files.iter().enumerate().map(file).collect::<Vec<_>>());
    assert!(compiled.diagnostics.is_empty(), "{:#?}", compiled.diagnostics);
    compiled.definitions.into_iter().map(|definition| definition.workflow).collect()
}

pub(crate) async fn register(store: &dyn Store, workflow: Workflow) {
    let hash = Uuid::now_v7().to_string();
    let at = model::Clock::now(&SystemClock);
    let new = NewVersion {
        tenant: TenantId::DEFAULT,
        workflow,
        source: String::new(),
        hash,
        by: "test".into(),
        at,
    };
    store.register(&new).await.unwrap();
}

pub(crate) fn request(workflow: &str) -> StartRun {
    StartRun {
        id: RunId(Uuid::now_v7()),
        tenant: TenantId::DEFAULT,
        workflow: workflow.into(),
        inputs: Map::<String, Value>::new(),
        labels: Map::new(),
        logical_date: None,
        origin: runtime::Origin::Api { by: "test".into() },
        priority: 0,
    }
}
