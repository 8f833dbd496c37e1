//! What scenarios work on: a server, and for each of them a database and an `ebb dev` on it.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use api::definitions::{File, Files, Kind};
use api::runs::StartBody;
use api::views::RunView;
use api::workflows::Registration;
use bus::local::Broker;
use embedded::{Options, Server};
use gauge::{Gauge, Scratch};
use indicatif::ProgressBar;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value};
use store::Postgres;
use tokio::time::interval;

use super::BenchArgs;
use super::processes::Processes;
use super::workflows::Written;
use crate::client::{self, Client};
use crate::dev::{BusKind, Dev, DevArgs};

/// Lets the server count statements.
const COUNTING: &[&str] = &["shared_preload_libraries=pg_stat_statements", "pg_stat_statements.max=1000"];

/// How often to look whether something has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The server that everything is measured on.
pub(super) struct Bench {
    /// Whether sizes shall be small.
    pub(super) quick: bool,
    /// What the server is, in words.
    pub(super) database: String,
    /// Where its files lie, if they are ours.
    pub(super) folder: Option<PathBuf>,
    url: String,
    embedded: Option<Server>,
    progress: Option<ProgressBar>,
}

impl Bench {
    pub(super) async fn open(args: &BenchArgs) -> Result<Self> {
        let progress = std::io::stderr().is_terminal().then(ProgressBar::new_spinner);
        let bench = Self {
            quick: args.quick,
            database: String::new(),
            folder: None,
            url: String::new(),
            embedded: None,
            progress,
        };
        if let Some(url) = &args.database_url {
            return Ok(Self {
                database: "the server named by --database-url".into(),
                url: url.clone(),
                ..bench
            });
        }
        let folder = std::env::temp_dir().join(format!("ebb-bench-{}", uuid::Uuid::now_v7().simple()));
        let server = start(&folder).await.context("the embedded database does not start")?;
        let (database, url) = (server.kind().to_string(), server.url("postgres"));
        Ok(Self { database, folder: Some(folder), url, embedded: Some(server), ..bench })
    }

    /// One of two sizes.
    pub(super) fn size<T>(&self, usual: T, quick: T) -> T {
        if self.quick { quick } else { usual }
    }

    /// Says on a terminal what is going on.
    pub(super) fn say(&self, what: &str) {
        if let Some(progress) = &self.progress {
            progress.set_message(what.to_owned());
            progress.enable_steady_tick(Duration::from_millis(100));
        }
    }

    /// A database of one's own, with nothing in it.
    pub(super) async fn scratch(&self) -> Result<Scratch> {
        Ok(Scratch::create(&self.url).await?)
    }

    /// A look at the server itself.
    pub(super) async fn server(&self) -> Result<Gauge> {
        Ok(Gauge::connect(&self.url, 1).await?)
    }

    /// All of Ebbflow in this process, on a fresh database.
    pub(super) async fn world(&self) -> Result<World> {
        World::together(self.scratch().await?).await
    }

    /// So many processes of each function, on a fresh database.
    pub(super) async fn processes(&self, instances: usize) -> Result<World> {
        World::apart(self.scratch().await?, instances).await
    }

    pub(super) async fn close(self) {
        if let Some(progress) = &self.progress {
            progress.finish_and_clear();
        }
        if let (Some(server), Some(folder)) = (self.embedded, self.folder) {
            server.stop().await;
            // What is left behind lies in the folder for temporary files.
            let _ = Server::remove(&folder).await;
        }
    }
}

/// A server with its usual settings, that counts statements if it can.
async fn start(folder: &std::path::Path) -> Result<Server, embedded::Error> {
    match Server::start_with(folder, Options { settings: COUNTING, ..Options::default() }).await {
        // The one that is compiled in has no such library.
        Err(embedded::Error::NotStarted { .. }) => Server::start(folder).await,
        other => other,
    }
}

/// All of Ebbflow on a database of its own.
pub(super) struct World {
    /// What its functions publish to.
    pub(super) broker: Broker,
    /// A look into the database, beside Ebbflow's own.
    pub(super) gauge: Gauge,
    clients: Vec<Arc<Client>>,
    turn: AtomicUsize,
    running: Running,
    scratch: Scratch,
}

/// What ends with a world.
enum Running {
    Dev(Box<Dev>, tempfile::TempDir),
    Apart(Processes),
}

impl World {
    /// Everything in this process, as `ebb dev` runs it.
    async fn together(scratch: Scratch) -> Result<Self> {
        let data = tempfile::tempdir()?;
        let workflows = data.path().join("workflows");
        std::fs::create_dir(&workflows)?;
        let database_url = Some(scratch.url());
        let args = DevArgs { workflows, port: 0, bus: BusKind::Local, database_url, run: None, once: false };
        let dev = Dev::start(&data.path().join("data"), &args).await?;
        let client =
            Client::new(client::Server { url: dev.url.clone(), token: dev.token.clone(), tenant: None })?;
        let broker = dev.broker().clone();
        Self::new(scratch, vec![client], broker, Running::Dev(Box::new(dev), data)).await
    }

    /// Each function in processes of its own, so many of each.
    async fn apart(scratch: Scratch, instances: usize) -> Result<Self> {
        Postgres::migrate(&scratch.url()).await?;
        let processes = Processes::start(&scratch.url(), instances).await?;
        let clients = processes.places().into_iter().map(Client::new).collect::<client::Result<_>>()?;
        let broker = processes.broker.clone();
        Self::new(scratch, clients, broker, Running::Apart(processes)).await
    }

    async fn new(scratch: Scratch, clients: Vec<Client>, broker: Broker, running: Running) -> Result<Self> {
        let gauge = Gauge::connect(&scratch.url(), 4).await?;
        let clients = clients.into_iter().map(Arc::new).collect();
        Ok(Self { broker, gauge, clients, turn: AtomicUsize::new(0), running, scratch })
    }

    /// The API, of one instance after the other.
    pub(super) fn client(&self) -> Arc<Client> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        self.clients[turn % self.clients.len()].clone()
    }

    /// Registers workflows by the API.
    pub(super) async fn register(&self, workflows: &[Written]) -> Result<()> {
        let file = |workflow: &Written| File {
            path: format!("{}.yaml", workflow.name),
            kind: Kind::Workflow,
            text: workflow.text.clone(),
        };
        let body = Files { files: workflows.iter().map(file).collect() };
        let _: Registration = self.client().post(&["workflows"], HeaderMap::new(), &body).await?;
        Ok(())
    }

    /// Starts a run by the API.
    pub(super) async fn trigger(&self, workflow: &str, inputs: Map<String, Value>) -> Result<()> {
        Ok(self.post(workflow, inputs).await?)
    }

    /// The same, for many at once.
    pub(super) fn post(
        &self,
        workflow: &str,
        inputs: Map<String, Value>,
    ) -> impl Future<Output = client::Result<()>> + Send + use<> {
        let (client, workflow) = (self.client(), workflow.to_owned());
        async move {
            let body = StartBody { inputs, ..StartBody::default() };
            let _: RunView = client.post(&["workflows", &workflow, "runs"], HeaderMap::new(), &body).await?;
            Ok(())
        }
    }

    /// The name of its database.
    pub(super) fn database(&self) -> String {
        self.scratch.name().to_owned()
    }

    /// Returns once every run has ended; it is an error if one did not succeed.
    pub(super) async fn drain(&self) -> Result<()> {
        let mut ticks = interval(LOOK_EVERY);
        while self.gauge.unfinished().await? > 0 {
            ticks.tick().await;
        }
        match self.gauge.unsuccessful().await? {
            0 => Ok(()),
            some => anyhow::bail!("{some} runs did not succeed: what was measured is worth nothing"),
        }
    }

    /// Ends Ebbflow, and gives what is left: the database, for a last look.
    pub(super) async fn stop(self) -> Result<Scratch> {
        self.gauge.close().await;
        match self.running {
            Running::Dev(dev, _data) => dev.stop().await?,
            Running::Apart(processes) => drop(processes),
        }
        Ok(self.scratch)
    }

    /// Ends Ebbflow and drops the database.
    pub(super) async fn close(self) -> Result<()> {
        Ok(self.stop().await?.drop().await?)
    }
}
