//! `ebb dev --bus pubsub-emulator`: each function is a separate process, to which Google's emulator pushes over HTTP, as in
//! the cloud. One that dies is restarted at the same address.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use accounts::Accounts;
use anyhow::{Context, bail};
use async_trait::async_trait;
use axum::Router;
use axum::routing::get;
use bus::pubsub::PubSub;
use bus::{Subscription, SystemClock};
use chrono::{DurationRound, TimeDelta};
use embedded::{Emulator, kill_with_parent};
use host::FileProblems;
use host::config::Environment;
use model::{Clock, Topic};
use runtime::Runtime;
use rustix::process::{Pid, Signal, kill_process};
use store::Postgres;
use tokio::net::TcpSocket;
use tracing::{info, warn};

use super::DevArgs;
use super::database::Database;
use super::folder::DataFolder;
use super::functions::{RUN_FINISHED, SWEEP_ACK_DEADLINE};
use super::issuer::{ADMIN, API_AUDIENCE, LocalIssuer, PUSH_AUDIENCE, PUSHER};
use super::problems::Reporter;
use super::workflows::{self, Queues};

const PROJECT: &str = "ebbflow-dev";

/// The functions, in the order in which they are started.
const FUNCTIONS: [&str; 5] = ["trigger", "evaluate", "execute", "sweep", "console"];

/// The maximum number of database connections of each function: a compiled-in Postgres allows eleven in all.
const MAX_CONNECTIONS: &str = "2";

/// The maximum time that Pub/Sub waits for a response: a longer attempt is redelivered, and found to be claimed.
const MAX_ACK_DEADLINE: Duration = Duration::from_secs(600);

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How often to check that all functions are alive.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// An `ebb dev` with functions in separate processes.
pub struct SeparateProcesses {
    /// The address of the console and the API.
    pub url: String,
    /// The token of the admin.
    pub token: String,
    /// A description of the database.
    pub database: String,
    functions: Arc<Mutex<Vec<Function>>>,
    background: Vec<tokio::task::JoinHandle<()>>,
    embedded: Database,
    _watcher: workflows::Watcher,
    _reserved: Vec<TcpSocket>,
    _emulator: Emulator,
    _folder: DataFolder,
}

impl SeparateProcesses {
    /// Starts everything, resumes runs that an earlier process left unfinished, and returns once all functions are ready.
    pub async fn start(data: &Path, args: &DevArgs) -> anyhow::Result<Self> {
        let folder = DataFolder::open(data)?;
        let Some(emulator) = Emulator::start().await else {
            bail!("Google's Pub/Sub emulator is not installed: `gcloud components install pubsub-emulator`");
        };
        let embedded = Database::open(args.database_url.as_deref(), &folder).await?;
        Postgres::migrate(embedded.url()).await.context("cannot migrate the database")?;
        let (ports, reserved) = reserve_ports(args.port)?;
        let url = format!("http://{}:{}", Ipv4Addr::LOCALHOST, ports[FUNCTIONS.len() - 1]);
        let issuer = LocalIssuer::open(&folder, &url)?;
        let (keys_url, keys) = serve_keys(&issuer).await?;
        let pubsub = Arc::new(PubSub::connect(PROJECT, Some(emulator.url.clone())).await?);
        let subscriber = Arc::new(Subscriber { pubsub: pubsub.clone(), ports, known: Mutex::default() });
        subscriber.open_all().await?;

        let settings = Settings {
            workflows: args.workflows.clone(),
            common: vec![
                ("DATABASE_URL", embedded.url().to_owned()),
                ("EBB_API_ACCOUNTS", ADMIN.to_owned()),
                ("EBB_API_AUDIENCE", API_AUDIENCE.to_owned()),
                ("EBB_API_ISSUER", url.clone()),
                ("EBB_API_KEYS_URL", keys_url),
                ("EBB_CONSOLE_URL", url.clone()),
                ("EBB_DATABASE_CONNECTIONS", MAX_CONNECTIONS.to_owned()),
                ("EBB_HOST", Ipv4Addr::LOCALHOST.to_string()),
                ("EBB_EGRESS_ALLOW", super::egress_allowed(&Environment::of_process())),
                ("EBB_PROJECT", PROJECT.to_owned()),
                ("EBB_PUBSUB_ENDPOINT", emulator.url.clone()),
                ("EBB_PUSH_AUTH", "none".to_owned()),
                ("EBB_USER_CODE", user_code(&Environment::of_process())),
                ("EBB_SECRETS_DIR", folder.file("secrets").display().to_string()),
            ],
        };
        let start = |(name, port)| Function::start(name, port, &settings);
        let mut starting = FUNCTIONS.into_iter().zip(ports);
        let others = starting.by_ref().take(FUNCTIONS.len() - 1).map(start);
        let mut functions: Vec<Function> = others.collect::<anyhow::Result<_>>()?;
        for function in &functions {
            function.wait_until_ready().await?;
        }
        let store = Arc::new(Postgres::connect(embedded.url(), 1).await?);
        // The console is another process: it does not see the current problems of files. The audit log has them.
        let reporter = Reporter::new(Accounts::new(&store), FileProblems::default());
        let runtime = Arc::new(Runtime::new(store, pubsub, Arc::new(SystemClock)));
        if embedded.is_exclusive() {
            let sweep = sweep::Sweep::new(runtime.clone());
            sweep.after_restart().await.context("cannot resume unfinished runs")?;
        }
        let watcher = workflows::load_and_watch(&args.workflows, runtime, subscriber, reporter).await?;
        let token = issuer.admin_token(SystemClock.now());
        folder.publish(&url, &token)?;
        // Last: a script that waits for the console's /readyz then uses the token and the workflows.
        for console in starting.map(start) {
            let console = console?;
            console.wait_until_ready().await?;
            functions.push(console);
        }
        let functions = Arc::new(Mutex::new(functions));
        let sweep_url = format!("http://{}:{}/sweep", Ipv4Addr::LOCALHOST, ports[3]);
        let background = vec![
            keys,
            tokio::spawn(keep_alive(functions.clone(), settings)),
            tokio::spawn(keep_ticking(sweep_url)),
        ];
        Ok(Self {
            url,
            token,
            database: embedded.to_string(),
            functions,
            background,
            embedded,
            _watcher: watcher,
            _reserved: reserved,
            _emulator: emulator,
            _folder: folder,
        })
    }

    /// Terminates all functions, and waits for their end.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.background.iter().for_each(|task| task.abort());
        let functions = std::mem::take(&mut *lock(&self.functions));
        functions.iter().for_each(Function::terminate);
        functions.into_iter().for_each(Function::wait);
        self.embedded.close().await;
        Ok(())
    }
}

/// Reserves a port for each function; the last one is the console's. No other process is given a port while its socket is
/// bound. A socket that does not listen leaves the port to the function, which listens on it.
fn reserve_ports(last: u16) -> anyhow::Result<([u16; FUNCTIONS.len()], Vec<TcpSocket>)> {
    let mut reserved = Vec::new();
    for number in 1..=FUNCTIONS.len() {
        let port = if number == FUNCTIONS.len() { last } else { 0 };
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        let bound = socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        bound.with_context(|| format!("cannot listen on port {port}: choose another with --port"))?;
        reserved.push(socket);
    }
    let ports: Vec<u16> =
        reserved.iter().map(|socket| Ok(socket.local_addr()?.port())).collect::<anyhow::Result<_>>()?;
    if cfg!(not(target_os = "linux")) {
        // Elsewhere a bound socket keeps the function from listening.
        reserved.clear();
    }
    Ok((ports.try_into().expect("there is one for each function"), reserved))
}

/// Code of users runs, unless the environment says otherwise.
fn user_code(environment: &Environment) -> String {
    environment.get("EBB_USER_CODE").unwrap_or("allow").to_owned()
}

/// The keys with which functions check the admin's token.
async fn serve_keys(issuer: &LocalIssuer) -> anyhow::Result<(String, tokio::task::JoinHandle<()>)> {
    let keys = issuer.issuer().jwks();
    let router = Router::new().route("/keys", get(|| async { axum::Json(keys) }));
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("http://{}/keys", listener.local_addr()?);
    let serving = tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            warn!("The token keys are no longer served: {error}");
        }
    });
    Ok((url, serving))
}

/// The environment of the functions.
struct Settings {
    workflows: PathBuf,
    common: Vec<(&'static str, String)>,
}

struct Function {
    name: &'static str,
    port: u16,
    process: Child,
}

impl Function {
    fn start(name: &'static str, port: u16, settings: &Settings) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", name]).stdin(Stdio::null());
        command.envs(settings.common.iter().map(|(name, value)| (name, value))).env("PORT", port.to_string());
        if settings.workflows.is_dir() {
            // Script paths are relative to it.
            command.current_dir(&settings.workflows);
        }
        kill_with_parent(&mut command);
        let process = command.spawn().with_context(|| format!("cannot start {name}"))?;
        info!("{name} is process {} on port {port}", process.id());
        Ok(Self { name, port, process })
    }

    async fn wait_until_ready(&self) -> anyhow::Result<()> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        let ready = format!("http://{}:{}/readyz", Ipv4Addr::LOCALHOST, self.port);
        let polling = async {
            let mut ticks = tokio::time::interval(Duration::from_millis(20));
            while !client.get(&ready).send().await.is_ok_and(|response| response.status().is_success()) {
                ticks.tick().await;
            }
        };
        let ready = tokio::time::timeout(START_TIMEOUT, polling).await;
        ready.with_context(|| format!("{} is not ready after {} s", self.name, START_TIMEOUT.as_secs()))
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    fn terminate(&self) {
        if let Some(process) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(process, Signal::TERM);
        }
    }

    fn wait(mut self) {
        let _ = self.process.wait();
    }
}

/// Restarts functions that have died.
async fn keep_alive(functions: Arc<Mutex<Vec<Function>>>, settings: Settings) {
    let mut ticks = tokio::time::interval(CHECK_INTERVAL);
    loop {
        ticks.tick().await;
        for function in lock(&functions).iter_mut().filter_map(|each| each.has_ended().then_some(each)) {
            warn!("{} has died; restarting it", function.name);
            match Function::start(function.name, function.port, &settings) {
                Ok(restarted) => *function = restarted,
                Err(error) => warn!("{error:#}"),
            }
        }
    }
}

/// Ticks the sweep at once and at the start of every minute, as the cloud's scheduler does.
async fn keep_ticking(url: String) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap_or_default();
    loop {
        // A sweep may respond after the next tick, which then joins it.
        let tick = client.post(&url).send();
        tokio::spawn(async move {
            if let Err(error) = tick.await {
                warn!("Cannot reach the sweep; the next tick tries again: {error}");
            }
        });
        let (now, minute) = (SystemClock.now(), TimeDelta::minutes(1));
        SystemClock.wait_until(now.duration_trunc(minute).unwrap_or(now) + minute).await;
    }
}

/// Creates topics and subscriptions, as terraform does in the cloud.
struct Subscriber {
    pubsub: Arc<PubSub>,
    ports: [u16; FUNCTIONS.len()],
    known: Mutex<BTreeSet<String>>,
}

impl Subscriber {
    async fn open_all(&self) -> anyhow::Result<()> {
        self.subscribe(Topic::Triggers, "trigger", "trigger").await?;
        self.subscribe(Topic::Lifecycle, "trigger-lifecycle", "trigger").await?;
        self.subscribe(Topic::Evaluations, "evaluate", "evaluate").await?;
        self.subscribe(Topic::Management, "sweep", "sweep").await?;
        // Callbacks need this queue, whatever other queues there are.
        self.open([model::message::CALLBACK_QUEUE.to_owned()].into()).await
    }

    async fn subscribe(&self, topic: Topic, name: &str, function: &str) -> anyhow::Result<()> {
        let address = |function: &str, path: &str| {
            let index = FUNCTIONS.iter().position(|name| *name == function).unwrap_or_default();
            format!("http://{}:{}{path}", Ipv4Addr::LOCALHOST, self.ports[index])
        };
        let defaults = Subscription::new(name, address(function, "/push"), PUSH_AUDIENCE);
        let ack_deadline = match &topic {
            Topic::Work(_) => MAX_ACK_DEADLINE,
            Topic::Management => SWEEP_ACK_DEADLINE,
            _ => defaults.ack_deadline,
        };
        let only = (topic == Topic::Lifecycle).then(|| RUN_FINISHED.to_owned());
        let subscription = Subscription { ack_deadline, only, ..defaults };
        self.pubsub.provision(&topic, &subscription, PUSHER).await?;
        Ok(self.pubsub.push_dead_letters(&topic, &address("evaluate", "/dead-letters")).await?)
    }
}

#[async_trait]
impl Queues for Subscriber {
    async fn open(&self, queues: BTreeSet<String>) -> anyhow::Result<()> {
        for queue in queues {
            if !lock(&self.known).contains(&queue) {
                self.subscribe(Topic::Work(queue.clone()), &format!("execute-{queue}"), "execute").await?;
                lock(&self.known).insert(queue);
            }
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("no holder panics")
}
