//! The world of a scenario: a database server, and for each scenario a new database with all of Ebbflow.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::definitions::{File, Files, Kind};
use api::runs::StartBody;
use api::views::RunView;
use api::workflows::Registration;
use bus::local::Broker;
use ebb::client::{self, Client};
use ebb::dev::{BusKind, Dev, DevArgs};
use embedded::{Options, Server};
use indicatif::ProgressBar;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Map, Value};
use store::Postgres;
use tokio::time::interval;

use crate::database::{Database, Scratch};
use crate::processes::{Processes, Setting, http_client};
use crate::scenarios::BenchArgs;
use crate::workflows::{LEASED_QUEUE, Written};

/// Settings that make the server count statements.
const STATEMENT_SETTINGS: &[&str] =
    &["shared_preload_libraries=pg_stat_statements", "pg_stat_statements.max=1000"];

/// The pause before a request that a busy server refused is repeated.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The database server of all measurements.
pub(crate) struct Bench {
    pub(crate) quick: bool,
    /// A description of the server.
    pub(crate) database: String,
    url: String,
    embedded: Option<(Server, PathBuf)>,
    progress: Option<ProgressBar>,
}

impl Bench {
    pub(crate) async fn open(args: &BenchArgs) -> Result<Self> {
        Self::start(args.quick, args.database_url.clone()).await
    }

    /// Uses the server at an address, or else starts an embedded one.
    pub(crate) async fn start(quick: bool, database_url: Option<String>) -> Result<Self> {
        let progress = std::io::stderr().is_terminal().then(ProgressBar::new_spinner);
        if let Some(url) = database_url {
            let database = "the server at --database-url".into();
            return Ok(Self { quick, database, url, embedded: None, progress });
        }
        let folder = std::env::temp_dir().join(format!("ebb-bench-{}", uuid::Uuid::now_v7().simple()));
        let server = start(&folder).await.context("cannot start the embedded database")?;
        let (database, url) = (server.kind().to_string(), server.url("postgres"));
        Ok(Self { quick, database, url, embedded: Some((server, folder)), progress })
    }

    /// Whether the server's files are on this machine's disk for temporary files.
    pub(crate) fn is_embedded(&self) -> bool {
        self.embedded.is_some()
    }

    pub(crate) fn size<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    pub(crate) fn progress(&self, what: &str) {
        if let Some(progress) = &self.progress {
            progress.set_message(what.to_owned());
            progress.enable_steady_tick(Duration::from_millis(100));
        }
    }

    /// Creates an empty database for one scenario.
    pub(crate) async fn scratch(&self) -> Result<Scratch> {
        Scratch::create(&self.url).await
    }

    pub(crate) async fn server(&self) -> Result<Database> {
        Database::connect(&self.url, 1).await
    }

    /// All of Ebbflow in this process, as `ebb dev` runs it, on a fresh database.
    pub(crate) async fn world(&self) -> Result<World> {
        let (scratch, data) = (self.scratch().await?, tempfile::tempdir()?);
        let workflows = data.path().join("workflows");
        std::fs::create_dir(&workflows)?;
        let database_url = Some(scratch.url());
        let args = DevArgs { workflows, port: 0, bus: BusKind::Local, database_url, run: None, once: false };
        let dev = Dev::start(&data.path().join("data"), &args).await?;
        let server = client::Server { url: dev.url.clone(), token: dev.token.clone(), tenant: None };
        let broker = dev.broker().clone();
        World::new(scratch, vec![server], broker, Running::Dev(Box::new(dev), data)).await
    }

    /// Each function in `instances` processes, on a fresh database.
    pub(crate) async fn processes(&self, instances: usize) -> Result<World> {
        self.processes_with(instances, &[]).await
    }

    /// The same with other settings.
    pub(crate) async fn processes_with(&self, instances: usize, settings: &[Setting]) -> Result<World> {
        let scratch = self.scratch().await?;
        Postgres::migrate(&scratch.url()).await?;
        let processes = Processes::start(&scratch.url(), instances, settings).await?;
        let (servers, broker) = (processes.servers(), processes.broker.clone());
        World::new(scratch, servers, broker, Running::Processes(processes)).await
    }

    pub(crate) async fn close(self) {
        if let Some(progress) = &self.progress {
            progress.finish_and_clear();
        }
        if let Some((server, folder)) = self.embedded {
            server.stop().await;
            // Leftovers are in the folder for temporary files.
            let _ = Server::remove(&folder).await;
        }
    }
}

/// A server with the default settings that counts statements if it can.
async fn start(folder: &Path) -> Result<Server, embedded::Error> {
    match Server::start_with(folder, Options { settings: STATEMENT_SETTINGS, ..Options::default() }).await {
        // The compiled-in Postgres has no such library.
        Err(embedded::Error::NotStarted { .. }) => Server::start(folder).await,
        other => other,
    }
}

/// All of Ebbflow on a temporary database.
pub(crate) struct World {
    pub(crate) broker: Broker,
    pub(crate) database: Database,
    servers: Vec<client::Server>,
    clients: Vec<Arc<Client>>,
    http: reqwest::Client,
    turn: AtomicUsize,
    running: Running,
    scratch: Scratch,
}

/// The processes of a world.
enum Running {
    Dev(Box<Dev>, tempfile::TempDir),
    Processes(Processes),
}

impl World {
    async fn new(
        scratch: Scratch,
        servers: Vec<client::Server>,
        broker: Broker,
        running: Running,
    ) -> Result<Self> {
        let database = Database::connect(&scratch.url(), 4).await?;
        let clients: Result<_, _> =
            servers.iter().map(|server| Client::new(server.clone()).map(Arc::new)).collect();
        let (clients, http, turn) = (clients?, http_client()?, AtomicUsize::new(0));
        Ok(Self { broker, database, servers, clients, http, turn, running, scratch })
    }

    /// A client of the instances in turn.
    pub(crate) fn client(&self) -> Arc<Client> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        self.clients[turn % self.clients.len()].clone()
    }

    /// A page of the console.
    pub(crate) async fn page(&self, path: &str) -> Result<String> {
        let client::Server { url, token, .. } = &self.servers[0];
        let response = self.http.get(format!("{url}{path}")).bearer_auth(token).send().await?;
        Ok(response.error_for_status()?.text().await?)
    }

    pub(crate) async fn register(&self, workflows: &[Written]) -> Result<()> {
        let file = |workflow: &Written| File {
            path: format!("{}.yaml", workflow.name),
            kind: Kind::Workflow,
            text: workflow.text.clone(),
        };
        let queue = File {
            path: format!("queues/{LEASED_QUEUE}.yaml"),
            kind: Kind::Queue,
            text: format!("name: {LEASED_QUEUE}\nkind: pool\n"),
        };
        let body = Files { files: workflows.iter().map(file).chain([queue]).collect() };
        let _: Registration = self.client().post(&["workflows"], HeaderMap::new(), &body).await?;
        Ok(())
    }

    /// Starts a run through the API.
    pub(crate) fn trigger(
        &self,
        workflow: &str,
        inputs: Map<String, Value>,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let (client, workflow) = (self.client(), workflow.to_owned());
        async move {
            let body = StartBody { inputs, ..StartBody::default() };
            let _: RunView = client.post(&["workflows", &workflow, "runs"], HeaderMap::new(), &body).await?;
            Ok(())
        }
    }

    /// Starts a run without inputs: once, however often a busy server asks to repeat the request.
    pub(crate) fn trigger_once(&self, workflow: &str) -> impl Future<Output = Result<()>> + Send + use<> {
        let (client, workflow) = (self.client(), workflow.to_owned());
        async move {
            let key = HeaderValue::from_str(&uuid::Uuid::now_v7().to_string())?;
            let headers = HeaderMap::from_iter([("idempotency-key".parse()?, key)]);
            let (path, body) = (["workflows", &workflow, "runs"], StartBody::default());
            let mut pauses = interval(RETRY_INTERVAL);
            loop {
                pauses.tick().await;
                match client.post(&path, headers.clone(), &body).await {
                    Err(client::Error::Rejected { status: 429 | 503, .. }) => {}
                    started => return Ok(started.map(|_: RunView| ())?),
                }
            }
        }
    }

    /// The name of its database.
    pub(crate) fn name(&self) -> &str {
        &self.scratch.name
    }

    /// The processes of its functions; none if all of Ebbflow is in this process.
    pub(crate) fn functions(&self) -> Option<&Processes> {
        match &self.running {
            Running::Dev(..) => None,
            Running::Processes(processes) => Some(processes),
        }
    }

    /// The same, to replace some.
    pub(crate) fn functions_mut(&mut self) -> Option<&mut Processes> {
        match &mut self.running {
            Running::Dev(..) => None,
            Running::Processes(processes) => Some(processes),
        }
    }

    /// The address of an instance of the API, and a token.
    pub(crate) fn server(&self) -> &client::Server {
        &self.servers[0]
    }

    /// Waits until every run has succeeded; fails if one does not.
    pub(crate) async fn drain(&self) -> Result<()> {
        let mut ticks = interval(POLL_INTERVAL);
        while self.database.unfinished_runs().await? > 0 {
            ticks.tick().await;
        }
        let unsuccessful = self.database.unsuccessful_runs().await?;
        ensure!(unsuccessful == 0, "{unsuccessful} runs did not succeed, so the measurement is invalid");
        Ok(())
    }

    /// Stops Ebbflow and returns its database.
    pub(crate) async fn stop(self) -> Result<Scratch> {
        self.database.close().await;
        match self.running {
            Running::Dev(dev, _data) => dev.stop().await?,
            Running::Processes(processes) => drop(processes),
        }
        Ok(self.scratch)
    }

    /// Stops Ebbflow and drops its database.
    pub(crate) async fn close(self) -> Result<()> {
        self.stop().await?.drop().await
    }
}
