//! `ebb dev`: every function in one process, on an embedded database and an embedded push broker.
//!
//! The functions are the real ones: their routers receive signed pushes, and all state is in Postgres. If it is killed, it
//! continues after a restart.

mod database;
mod folder;
mod functions;
mod issuer;
mod problems;
mod queues;
mod separate_processes;
mod sign_in;
mod workflows;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use accounts::Accounts;
use anyhow::Context;
use bus::SystemClock;
use bus::local::{Broker, Faults};
use chrono::TimeDelta;
use execute::{Executor, Runner, Worker};
use host::config::{ContainmentConfig, Environment, OtlpConfig, UserCode};
use host::metrics::Exporter;
use host::{App, Connected, EgressPolicy, Operations, Secrets, ShutdownSignal};
use model::Clock;
use runtime::Runtime;
use store::{Connections, Postgres};
use tokio::net::TcpListener;

use database::Database;
use folder::DataFolder;
use functions::Functions;
use issuer::LocalIssuer;
use problems::Reporter;
use queues::EveryQueue;
pub use separate_processes::SeparateProcesses;

/// The maximum number of database connections: enough for the cores of a small machine, and few for Postgres.
pub const CONNECTIONS: u32 = 6;

/// How long a request waits for a connection: as long as it may take at all. On one machine no other instance would serve it
/// sooner.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);

/// Shorter than in production, so that a cancelled attempt stops sooner.
const HEARTBEAT_INTERVAL: TimeDelta = TimeDelta::seconds(2);

/// The bus that delivers messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum BusKind {
    /// A broker in this process, with every function
    Local,
    /// Google's emulator, which pushes to functions in separate processes
    PubsubEmulator,
}

/// The options of `ebb dev`.
#[derive(Clone, Debug, clap::Args)]
pub struct DevArgs {
    /// Folder of workflows to load and watch: graphs/, tasks/, templates/, types/ and queues/
    #[arg(long, default_value = "workflows", value_name = "DIR")]
    pub workflows: PathBuf,
    /// Port to serve on; 0 picks a free one
    #[arg(long, default_value_t = 8480, value_name = "N")]
    pub port: u16,
    /// Bus: a broker in this process, or Google's Pub/Sub emulator with a separate process for each function
    #[arg(long, value_enum, default_value_t = BusKind::Local, value_name = "BUS")]
    pub bus: BusKind,
    /// Address of a Postgres to use instead of an embedded one
    #[arg(long, env = "DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Workflow to start a run of once everything is up, and to watch
    #[arg(long, value_name = "WORKFLOW")]
    pub run: Option<String>,
    /// With --run: stop when the run has ended; the exit code is 0 if it succeeded
    #[arg(long, requires = "run")]
    pub once: bool,
}

/// Secrets from the environment, and from files in the data folder.
fn secrets(environment: &Environment, folder: &DataFolder) -> anyhow::Result<Secrets> {
    let secrets = Secrets::from_env(environment).map_err(|problems| anyhow::anyhow!(problems.join("\n")))?;
    Ok(secrets.with_folder(folder.file("secrets")))
}

/// The executor of attempts.
fn executor(
    app: &App,
    args: &DevArgs,
    environment: &Environment,
    secrets: Secrets,
    containment: &ContainmentConfig,
) -> anyhow::Result<Arc<Executor>> {
    let egress = EgressPolicy::read(None, Some(&egress_allowed(environment)));
    let egress = egress.map_err(|problems| anyhow::anyhow!(problems.join("\n")))?;
    let worker = Worker::with_heartbeat_interval(HEARTBEAT_INTERVAL, app.runtime.clone());
    let user_code = UserCode::from_env(environment, UserCode::Allow).map_err(anyhow::Error::msg)?;
    let runner = Runner::new(app.runtime.clock().clone(), args.workflows.clone())
        .with_secrets(secrets)
        .with_egress_policy(egress)
        .with_user_code(user_code)
        .with_containment(execute::containment(containment));
    let storage = environment.get("EBB_STORAGE_ENDPOINT").map(str::to_owned);
    Ok(Arc::new(Executor::new(app.runtime.clone(), worker, runner).with_storage(storage)))
}

/// During development, workflows often call servers on this machine: every host is allowed, and the sockets that
/// `EBB_EGRESS_ALLOW` lists. The socket of the embedded database, where everyone is superuser, is not.
fn egress_allowed(environment: &Environment) -> String {
    ["0.0.0.0/0,::/0", environment.get("EBB_EGRESS_ALLOW").unwrap_or_default()].join(",")
}

/// The connections of the only process.
fn connections() -> Connections {
    Connections { acquire_timeout: ACQUIRE_TIMEOUT, ..Connections::at_most(CONNECTIONS) }
}

/// The admin may use the operator endpoints, and the metrics include the load in the store.
fn operations(environment: &Environment, issuer: &LocalIssuer) -> Operations {
    let token = environment.get("EBB_OPERATIONS_TOKEN").map(str::to_owned);
    Operations { token, account: Some(Arc::new(issuer.admin_auth())), with_load: true }
}

/// Exports metrics and spans to the collector at `EBB_OTLP_ENDPOINT`, if it is set.
fn exporter(environment: &Environment) -> anyhow::Result<Option<Arc<Exporter>>> {
    let problems = |problems| anyhow::anyhow!("invalid settings for metrics and spans:\n{problems}");
    let Some(config) = OtlpConfig::from_env(environment).map_err(problems)? else { return Ok(None) };
    let exporter = Arc::new(Exporter::new(&config, "dev").map_err(anyhow::Error::msg)?);
    let sending = exporter.clone();
    tokio::spawn(async move { sending.keep_sending().await });
    Ok(Some(exporter))
}

/// Replaces the only worker when it ends, as a platform replaces an instance.
async fn replace_ended_workers(executor: Arc<Executor>, runtime: Arc<Runtime>) {
    loop {
        executor.worker().ended().await;
        executor.replace_worker(Worker::with_heartbeat_interval(HEARTBEAT_INTERVAL, runtime.clone()));
    }
}

/// A running `ebb dev`.
pub struct Dev {
    /// The address of the console and the API.
    pub url: String,
    /// The token of the admin.
    pub token: String,
    /// A description of the database.
    pub database: String,
    broker: Broker,
    exporter: Option<Arc<Exporter>>,
    functions: Functions,
    executor: Arc<Executor>,
    replacing: tokio::task::JoinHandle<()>,
    server: tokio::task::JoinHandle<std::io::Result<()>>,
    stop: tokio::sync::oneshot::Sender<()>,
    embedded: Database,
    _watcher: workflows::Watcher,
    _folder: DataFolder,
}

impl Dev {
    /// Starts everything, resumes runs that an earlier process left unfinished, and returns once it serves.
    pub async fn start(data: &Path, args: &DevArgs) -> anyhow::Result<Self> {
        let folder = DataFolder::open(data)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}: choose another port with --port"))?;
        let url = format!("http://{}", listener.local_addr()?);
        let embedded = Database::open(args.database_url.as_deref(), &folder).await?;
        Postgres::migrate(embedded.url()).await.context("cannot migrate the database")?;
        let store = Postgres::open(embedded.url(), None, connections()).await?;
        let (database, accounts) = (read::Database::new(&store), Accounts::new(&store));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let issuer = LocalIssuer::open(&folder, &url)?;
        let broker = Broker::new(clock.clone(), issuer.issuer(), issuer::PUSHER, Faults::default());
        let bus = EveryQueue::new(broker.clone());
        let environment = Environment::of_process();
        let liveness = host::config::liveness(&environment).map_err(anyhow::Error::msg)?;
        let settings = runtime::Settings { exact_wake_ups: true, liveness, ..runtime::Settings::default() };
        let runtime = Arc::new(Runtime::new(Arc::new(store), bus.clone(), clock.clone()).with(settings));
        let operations = operations(&environment, &issuer);
        let app = App::new(runtime.clone(), issuer.push_auth()).operated(operations);
        let secrets = secrets(&environment, &folder)?;
        let containment = ContainmentConfig::from_env(&environment).map_err(anyhow::Error::msg)?;
        let executor = executor(&app, args, &environment, secrets.clone(), &containment)?;
        let replacing = tokio::spawn(replace_ended_workers(executor.clone(), runtime.clone()));
        let reporter = Reporter::new(accounts.clone(), app.file_problems.clone());
        let connected = Connected { app: app.clone(), database, accounts };
        let functions = Functions::mount(connected, &issuer, &url, &broker, executor.clone(), secrets)?;
        bus.deliver_to(functions.execute.clone(), functions.evaluate.clone());
        if embedded.is_exclusive() {
            functions.resume(&runtime).await?;
        }
        let exporter = exporter(&environment)?;
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let stop_serving: ShutdownSignal = Box::pin(async move { drop(stopped.await) });
        functions.keep_ticking(issuer.clone(), clock);
        let _watcher = workflows::load_and_watch(&args.workflows, runtime, bus, reporter).await?;
        let token = issuer.admin_token(app.now());
        folder.publish(&url, &token)?;
        // Last: a script that waits for /readyz then uses the token and the workflows. Until then, connections wait.
        let server = tokio::spawn(host::serve(
            listener,
            functions.public.clone(),
            stop_serving,
            host::DEFAULT_GRACE_PERIOD,
        ));
        let database = embedded.to_string();
        Ok(Self {
            url,
            token,
            database,
            broker,
            exporter,
            functions,
            executor,
            replacing,
            server,
            stop,
            embedded,
            _watcher,
            _folder: folder,
        })
    }

    /// The broker of its functions.
    pub fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Shuts down gracefully: takes no more work, lets attempts finish or hands them back, then stops the database.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.functions.stop_ticking();
        let _ = self.stop.send(());
        self.replacing.abort();
        let worker = self.executor.worker();
        tokio::join!(
            self.broker.close(),
            worker.stop("`ebb dev` was asked to stop", host::DEFAULT_GRACE_PERIOD)
        );
        self.server.await??;
        self.embedded.close().await;
        if let Some(exporter) = self.exporter {
            exporter.send().await;
        }
        Ok(())
    }
}
