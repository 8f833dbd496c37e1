//! What scenarios work on: a server, and for each of them a database and an `ebb dev` on it.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use api::definitions::{File, Files, Kind};
use api::runs::StartBody;
use api::views::RunView;
use api::workflows::Registration;
use embedded::{Options, Server};
use gauge::{Gauge, Scratch};
use indicatif::ProgressBar;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value};
use tokio::time::interval;

use super::BenchArgs;
use super::workflows::Written;
use crate::client::{self, Client, Place};
use crate::dev::{Dev, DevArgs};

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

    /// All of Ebbflow on a fresh database.
    pub(super) async fn world(&self) -> Result<World> {
        World::open(self.scratch().await?).await
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

/// All of Ebbflow as `ebb dev` runs it, on a database of its own.
pub(super) struct World {
    pub(super) dev: Dev,
    pub(super) client: Arc<Client>,
    /// A look into the database, beside Ebbflow's own.
    pub(super) gauge: Gauge,
    scratch: Scratch,
    data: tempfile::TempDir,
}

impl World {
    async fn open(scratch: Scratch) -> Result<Self> {
        let data = tempfile::tempdir()?;
        let workflows = data.path().join("workflows");
        std::fs::create_dir(&workflows)?;
        let database_url = Some(scratch.url());
        let args = DevArgs { workflows, port: 0, database_url, run: None, once: false };
        let dev = Dev::start(&data.path().join("data"), &args).await?;
        let client = Client::new(Place { url: dev.url.clone(), token: dev.token.clone() })?;
        let gauge = Gauge::connect(&scratch.url(), 4).await?;
        Ok(Self { dev, client: client.into(), gauge, scratch, data })
    }

    /// Registers workflows by the API.
    pub(super) async fn register(&self, workflows: &[Written]) -> Result<()> {
        let file = |workflow: &Written| File {
            path: format!("{}.yaml", workflow.name),
            kind: Kind::Workflow,
            text: workflow.text.clone(),
        };
        let body = Files { files: workflows.iter().map(file).collect() };
        let _: Registration = self.client.post(&["workflows"], HeaderMap::new(), &body).await?;
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
        let (client, workflow) = (self.client.clone(), workflow.to_owned());
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
        self.dev.stop().await?;
        drop(self.data);
        Ok(self.scratch)
    }

    /// Ends Ebbflow and drops the database.
    pub(super) async fn close(self) -> Result<()> {
        Ok(self.stop().await?.drop().await?)
    }
}
