//! Two processes of each function on one Postgres and one bus. Those that die are restarted.

use std::path::PathBuf;
use std::sync::Arc;

use auth::Issuer;
use bus::SystemClock;
use chrono::TimeDelta;
use ebbflow_tests::{FunctionProcess, build, functions, signal};
use language::{Definition, FileKind};
use model::{Clock, Instant, Message, RunId, TenantId};
use serde_json::json;
use store::{Definitions, NewVersion, RunRecord, Runs};
use tempfile::TempDir;
use testkit::DEADLINE;

use crate::hub::{AUDIENCE, Hub, PUSHER};
use crate::ledger;
use crate::postgres::Postgres;

const API: &str = "api";
const PERSON: &str = "ada@example.com";
const ISSUER: &str = "https://issuer.example";

/// A cluster without faults that has not finished its runs by then hangs.
const CALM_WITHIN: TimeDelta = TimeDelta::minutes(10);

/// Tasks that append a line to a file each time they run, fan out, sleep, fail at first, and are shared with other runs.
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

/// A task that concurrent runs share.
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

pub(crate) struct Cluster {
    pub(crate) functions: Vec<FunctionProcess>,
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
    /// Starts a cluster on the local broker.
    pub(crate) async fn start() -> Self {
        let issuer = Arc::new(Issuer::generate(ISSUER));
        let hub = Hub::local(&issuer).await;
        Self::on(hub, issuer).await
    }

    /// Starts a cluster on Google's emulator, if it is installed.
    pub(crate) async fn start_on_google() -> Option<Self> {
        let issuer = Arc::new(Issuer::generate(ISSUER));
        let hub = Hub::google(&issuer).await?;
        Some(Self::on(hub, issuer).await)
    }

    async fn on(hub: Hub, issuer: Arc<Issuer>) -> Self {
        let program = build().await;
        let postgres = Postgres::start().await;
        store::Postgres::migrate(&postgres.url).await.unwrap();
        let store = store::Postgres::connect(&postgres.url, 4).await.unwrap();
        register(&store).await;
        let settings = settings(&postgres.url, hub.environment());
        let folder = tempfile::tempdir().unwrap();
        let mut cluster = Self {
            functions: Vec::new(),
            postgres,
            hub,
            store,
            mark: folder.path().join("mark"),
            issuer,
            client: reqwest::Client::builder().timeout(DEADLINE).build().unwrap(),
            requested: Vec::new(),
            _folder: folder,
        };
        cluster.hub.open_topics().await;
        for (name, topic) in functions() {
            let start = || FunctionProcess::start(name, &program, settings.clone());
            let pair = [start(), start()];
            cluster.hub.subscribe(name, &topic, &pair).await;
            cluster.functions.extend(pair);
        }
        for function in &cluster.functions {
            function.wait_until_ready().await;
        }
        cluster
    }

    /// Requests a run with a message.
    pub(crate) async fn request(&mut self) -> RunId {
        let request = testkit::run_requested("chaos", &json!({"mark": self.mark}));
        let run = request.run;
        self.hub.publish(Message::RunRequested(request)).await;
        self.requested.push(run);
        run
    }

    /// The scheduler's tick. It does not wait for the answer.
    pub(crate) async fn tick(&self) {
        for sweep in self.functions.iter().filter(|function| function.name == "sweep") {
            let request = self.post(&sweep.url("/sweep"));
            tokio::spawn(async move { request.send().await.map(|_| ()) });
        }
    }

    fn post(&self, url: &str) -> reqwest::RequestBuilder {
        let token = self.issuer.push_token(PUSHER, AUDIENCE, now());
        self.client.post(url).bearer_auth(token)
    }

    /// The URLs at which people start runs, and a token for them.
    pub(crate) fn api(&self) -> (Vec<String>, String) {
        let triggers = self.functions.iter().filter(|function| function.name == "trigger");
        let address = |trigger: &FunctionProcess| trigger.url("/api/v1/workflows/chaos/runs");
        (triggers.map(address).collect(), self.issuer.push_token(PERSON, API, now()))
    }

    /// The URL at which each function reports whether it is ready.
    pub(crate) fn ready_urls(&self) -> Vec<String> {
        self.functions.iter().map(|function| function.url("/readyz")).collect()
    }

    /// Whether no process has died.
    pub(crate) fn all_live(&mut self) -> bool {
        self.functions.iter_mut().all(FunctionProcess::is_alive)
    }

    /// Restarts processes that have died, as the platform does.
    pub(crate) fn restart_the_dead(&mut self) {
        self.functions.iter_mut().for_each(FunctionProcess::restart_if_dead);
    }

    /// Freezes a process for a while.
    pub(crate) fn freeze(&self, function: usize, duration: TimeDelta) {
        let process = self.functions[function].id();
        signal("-STOP", process);
        tokio::spawn(async move {
            pause(duration).await;
            signal("-CONT", process);
        });
    }

    /// Without further faults, lets time pass in the rows until every run has ended and nothing is left to do.
    pub(crate) async fn finish_all_runs(&mut self) -> Vec<RunRecord> {
        let (mut until, mut fewest) = (now() + CALM_WITHIN, usize::MAX);
        for function in &self.functions {
            signal("-CONT", function.id());
        }
        loop {
            self.restart_the_dead();
            self.tick().await;
            pause(TimeDelta::seconds(2)).await;
            let mut records = Vec::new();
            for run in &self.requested {
                // A connection to a killed Postgres fails once.
                records.extend(self.store.run(TenantId::DEFAULT, *run).await.unwrap_or_default());
            }
            let open = records.iter().filter(|record| !record.run.state.is_final()).count();
            let missing = self.requested.len() - records.len();
            let left = ledger::leftovers(&self.postgres.url).await;
            if open == 0 && missing == 0 && left.is_empty() {
                return records;
            }
            // A slow machine may take its time, as long as something ends.
            if open + missing + left.len() < fewest {
                (until, fewest) = (now() + CALM_WITHIN, open + missing + left.len());
            }
            assert!(now() < until, "{open} runs have not ended, {missing} are missing, left over: {left:?}");
            ledger::let_two_minutes_pass(&self.postgres.url).await;
        }
    }
}

/// The environment of every function.
fn settings(database: &str, bus: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
    let keys = bus.iter().find(|(name, _)| *name == "EBB_PUSH_KEYS_URL").unwrap().1.clone();
    let common = [
        ("DATABASE_URL", database),
        ("EBB_PUSH_AUDIENCE", AUDIENCE),
        ("EBB_PUSH_ACCOUNT", PUSHER),
        ("EBB_PUSH_ISSUER", ISSUER),
        ("EBB_API_AUDIENCE", API),
        ("EBB_API_ACCOUNTS", PERSON),
        ("EBB_RATE_CALLER", "0"),
        ("EBB_RATE_TENANT", "0"),
        ("EBB_API_ISSUER", ISSUER),
        ("EBB_API_KEYS_URL", &keys),
    ];
    bus.into_iter().chain(common.map(|(name, value)| (name, value.to_owned()))).collect()
}

async fn register(store: &store::Postgres) {
    let files = [(FileKind::Workflow, WORKFLOW), (FileKind::Task, COMMON)];
    for Definition { workflow, source, hash } in testkit::compile(&files) {
        let (tenant, by) = (TenantId::DEFAULT, "test".to_owned());
        store.register(&NewVersion { tenant, workflow, source, hash, by, at: now() }).await.unwrap();
    }
}
