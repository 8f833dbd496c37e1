//! Two processes of each function on one Postgres and one bus, and whoever restarts those that die.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use auth::Issuer;
use bus::SystemClock;
use chrono::TimeDelta;
use language::{FileKind, SourceFile};
use model::message::RunRequested;
use model::{Clock, Instant, Message, RunId, TenantId};
use serde_json::{Map, json};
use store::{Definitions, NewVersion, RunRecord, Runs};
use tempfile::TempDir;
use testkit::Port;
use uuid::Uuid;

use crate::hub::{AUDIENCE, Hub, PUSHER, signal};
use crate::ledger;
use crate::postgres::Postgres;

const FUNCTIONS: [&str; 4] = ["trigger", "evaluate", "execute", "sweep"];
const API: &str = "api";
const PERSON: &str = "ada@example.com";
const ISSUER: &str = "https://issuer.example";

/// Everything has ended within this once nobody is hit any more.
const CALM_WITHIN: TimeDelta = TimeDelta::seconds(300);

/// Work that leaves a line in a file each time it is done, fans out, waits, fails at first, and is shared with other runs.
const WORKFLOW: &str = r#"
name: chaos
inputs: {mark: {type: string}}
tasks:
  - name: first
    type: bash
    retry_policy: {max_retries: 30, initial_delay_seconds: 0.1}
    config: {command: 'echo "{{ run.id }} first" >> {{ inputs.mark }}; sleep 0.1'}
  - name: split
    type: fan_out
    depends_on: [first]
    for_each: range(3) | list
    task:
      type: bash
      retry_policy: {max_retries: 30, initial_delay_seconds: 0.1}
      config: {command: 'echo "{{ run.id }} split" >> {{ inputs.mark }}; sleep 0.2'}
  - {name: merge, type: fan_in, depends_on: [split]}
  - {name: rest, type: sleep, depends_on: [first], config: {duration: 1s}}
  - name: wavers
    type: bash
    depends_on: [rest]
    retry_policy: {max_retries: 30, initial_delay_seconds: 0.1}
    config: {command: 'echo "{{ run.id }} wavers" >> {{ inputs.mark }}; test {{ task.attempt }} -gt 1'}
  - {name: together, task: common, depends_on: [first]}
  - {name: last, type: noop, depends_on: [merge, wavers, together]}
"#;

/// Work that runs share while they need it at the same time.
const COMMON: &str = r#"
name: common
global: true
type: bash
retry_policy: {max_retries: 30, initial_delay_seconds: 0.1}
config: {command: sleep 0.3}
"#;

pub(crate) fn now() -> Instant {
    SystemClock.now()
}

pub(crate) async fn pause(duration: TimeDelta) {
    SystemClock.wait_until(now() + duration).await;
}

/// Starts a function of that name at a port.
type Starter = dyn Fn(&str, u16) -> Child + Send + Sync;

/// A function as a process, which is started again at the same port when it dies.
pub(crate) struct Function {
    name: &'static str,
    port: Port,
    start: Arc<Starter>,
    process: Child,
}

impl Function {
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// SIGSTOP, and SIGCONT after a while.
    pub(crate) fn stop_for(&self, duration: TimeDelta) {
        let process = self.process.id();
        signal("-STOP", process);
        tokio::spawn(async move {
            pause(duration).await;
            signal("-CONT", process);
        });
    }

    fn url(&self) -> String {
        self.port.url()
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) struct Cluster {
    pub(crate) functions: Vec<Function>,
    pub(crate) postgres: Postgres,
    pub(crate) hub: Hub,
    pub(crate) store: store::Postgres,
    pub(crate) mark: PathBuf,
    issuer: Arc<Issuer>,
    client: reqwest::Client,
    requested: Vec<RunId>,
    _folder: TempDir,
}

impl Cluster {
    /// On the local broker.
    pub(crate) async fn start() -> Self {
        let issuer = Arc::new(Issuer::generate(ISSUER));
        let hub = Hub::local(&issuer).await;
        Self::on(hub, issuer).await
    }

    /// On Google's emulator, where it is installed.
    pub(crate) async fn start_on_google() -> Option<Self> {
        let issuer = Arc::new(Issuer::generate(ISSUER));
        let hub = Hub::google(&issuer).await?;
        Some(Self::on(hub, issuer).await)
    }

    async fn on(hub: Hub, issuer: Arc<Issuer>) -> Self {
        let program = tokio::task::spawn_blocking(build).await.unwrap();
        let postgres = Postgres::start().await;
        store::Postgres::migrate(&postgres.url).await.unwrap();
        let store = store::Postgres::connect(&postgres.url, 4).await.unwrap();
        register(&store).await;
        let start: Arc<Starter> = Arc::new(starter(program, postgres.url.clone(), hub.environment()));
        let folder = tempfile::tempdir().unwrap();
        let mut cluster = Self {
            functions: Vec::new(),
            postgres,
            hub,
            store,
            mark: folder.path().join("mark"),
            issuer,
            client: reqwest::Client::builder().timeout(Duration::from_secs(20)).build().unwrap(),
            requested: Vec::new(),
            _folder: folder,
        };
        cluster.hub.open_topics().await;
        for name in FUNCTIONS {
            let pair: Vec<Function> = (0..2)
                .map(|_| {
                    let port = Port::reserve();
                    let process = start(name, port.number());
                    Function { name, port, process, start: start.clone() }
                })
                .collect();
            cluster.hub.mount(name, pair.iter().map(Function::url).collect()).await;
            cluster.functions.extend(pair);
        }
        for function in &cluster.functions {
            let ready = format!("{}/readyz", function.url());
            while !cluster.client.get(&ready).send().await.is_ok_and(|answer| answer.status().is_success()) {
                pause(TimeDelta::milliseconds(20)).await;
            }
        }
        cluster
    }

    /// Asks for a run; whoever asks goes on until it is there.
    pub(crate) async fn request(&mut self) -> RunId {
        let run = RunId(Uuid::now_v7());
        let inputs = json!({"mark": self.mark}).as_object().cloned().unwrap();
        let request = Message::RunRequested(RunRequested {
            run,
            tenant: TenantId::DEFAULT,
            workflow: "chaos".into(),
            inputs,
            logical_date: None,
            labels: Map::new(),
            trigger: "message".into(),
            parent: None,
            priority: 0,
        });
        self.hub.publish(request).await;
        self.requested.push(run);
        run
    }

    /// The scheduler's tick, which waits for no answer.
    pub(crate) async fn tick(&self) {
        for sweep in self.functions.iter().filter(|function| function.name == "sweep") {
            let request = self.asks(&format!("{}/sweep", sweep.url())).timeout(Duration::from_secs(90));
            tokio::spawn(async move { request.send().await.map(|_| ()) });
        }
    }

    fn asks(&self, url: &str) -> reqwest::RequestBuilder {
        let token = self.issuer.push_token(PUSHER, AUDIENCE, now());
        self.client.post(url).bearer_auth(token)
    }

    /// What people use: the addresses at which runs are started, and a token that is good there.
    pub(crate) fn api(&self) -> (Vec<String>, String) {
        let triggers = self.functions.iter().filter(|function| function.name == "trigger");
        let address = |trigger: &Function| format!("{}/api/v1/workflows/chaos/runs", trigger.url());
        (triggers.map(address).collect(), self.issuer.push_token(PERSON, API, now()))
    }

    /// The address at which each function says whether it can work.
    pub(crate) fn ready_urls(&self) -> Vec<String> {
        self.functions.iter().map(|function| format!("{}/readyz", function.url())).collect()
    }

    /// Whether every process is still the one that was started.
    pub(crate) fn all_live(&mut self) -> bool {
        self.functions.iter_mut().all(|function| function.process.try_wait().unwrap().is_none())
    }

    /// What a platform does.
    pub(crate) fn restart_the_dead(&mut self) {
        for function in &mut self.functions {
            if function.process.try_wait().unwrap().is_some() {
                function.process = (function.start)(function.name, function.port.number());
            }
        }
    }

    /// Lets everyone live, and lets time pass in the rows until every run has ended and nothing is left to be done.
    pub(crate) async fn calm_down(&mut self) -> Vec<RunRecord> {
        let until = now() + CALM_WITHIN;
        for function in &self.functions {
            signal("-CONT", function.process.id());
        }
        loop {
            self.restart_the_dead();
            self.tick().await;
            pause(TimeDelta::seconds(2)).await;
            let mut records = Vec::new();
            for run in &self.requested {
                // A connection that Postgres took along when it was killed says so once.
                records.extend(self.store.run(TenantId::DEFAULT, *run).await.unwrap_or_default());
            }
            let open = records.iter().filter(|record| !record.run.state.is_final()).count();
            let missing = self.requested.len() - records.len();
            let left = ledger::leftovers(&self.postgres.url).await;
            if open == 0 && missing == 0 && left.is_empty() {
                return records;
            }
            assert!(now() < until, "{open} runs have not ended, {missing} are missing, left over: {left:?}");
            ledger::let_two_minutes_pass(&self.postgres.url).await;
        }
    }
}

/// Builds the program that is any of the functions, or finds that it is built.
fn build() -> PathBuf {
    let arguments = ["build", "--workspace", "--example", "function"];
    assert!(
        Command::new(env!("CARGO")).args(arguments).status().unwrap().success(),
        "the functions do not build"
    );
    // This test is target/debug/deps/chaos-…
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples/function")
}

fn starter(
    program: PathBuf,
    database: String,
    told: Vec<(&'static str, String)>,
) -> impl Fn(&str, u16) -> Child {
    let keys = told.iter().find(|(name, _)| *name == "EBB_PUSH_KEYS_URL").unwrap().1.clone();
    move |name, port| {
        Command::new(&program)
            .arg(name)
            .envs(told.iter().cloned())
            .env("PORT", port.to_string())
            .env("DATABASE_URL", &database)
            .env("EBB_PUSH_AUDIENCE", AUDIENCE)
            .env("EBB_PUSH_ACCOUNT", PUSHER)
            .env("EBB_PUSH_ISSUER", ISSUER)
            .env("EBB_API_AUDIENCE", API)
            .env("EBB_API_ACCOUNTS", PERSON)
            .env("EBB_RATE_CALLER", "0")
            .env("EBB_RATE_TENANT", "0")
            .env("EBB_API_ISSUER", ISSUER)
            .env("EBB_API_KEYS_URL", &keys)
            .env("RUST_LOG", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }
}

async fn register(store: &store::Postgres) {
    let file = |path: &str, kind, text: &str| SourceFile { path: path.into(), kind, text: text.to_owned() };
    let compiled = language::compile(&[
        file("chaos.yaml", FileKind::Workflow, WORKFLOW),
        file("common.yaml", FileKind::Task, COMMON),
    ]);
    assert!(compiled.diagnostics.is_empty(), "{:#?}", compiled.diagnostics);
    for definition in compiled.definitions {
        let new = NewVersion {
            tenant: TenantId::DEFAULT,
            workflow: definition.workflow,
            source: String::new(),
            hash: "chaos".into(),
            by: "test".into(),
            at: now(),
        };
        store.register(&new).await.unwrap();
    }
}
