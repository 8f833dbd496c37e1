//! Two processes of each function on one Postgres and one bus, and whoever restarts those that die.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use auth::Issuer;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bus::local::{Broker, Faults};
use bus::{Bus, Endpoint, Subscription};
use chrono::TimeDelta;
use clock::{Clock, SystemClock};
use language::{FileKind, SourceFile};
use model::message::RunRequested;
use model::{Instant, Message, RunId, TenantId, Topic};
use serde_json::{Map, json};
use store::{NewVersion, RunRecord, Store};
use tempfile::TempDir;
use uuid::Uuid;

use crate::ledger;
use crate::postgres::Postgres;

const FUNCTIONS: [&str; 4] = ["trigger", "evaluate", "execute", "sweep"];
const PUSHER: &str = "pusher@example.com";
const AUDIENCE: &str = "push";
const ISSUER: &str = "https://issuer.example";

/// Everything has ended within this once nobody is hit any more.
const CALM_WITHIN: TimeDelta = TimeDelta::seconds(120);

/// Work that leaves a line in a file each time it is done, fans out, waits, and fails at first.
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
  - {name: last, type: noop, depends_on: [merge, wavers]}
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
    port: u16,
    start: Arc<Starter>,
    process: Child,
}

impl Function {
    fn signal(&self, signal: &str) {
        let _ = Command::new("kill").args([signal, &self.process.id().to_string()]).status();
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// SIGSTOP, and SIGCONT after a while.
    pub(crate) fn stop_for(&self, duration: TimeDelta) {
        self.signal("-STOP");
        let pid = self.process.id().to_string();
        tokio::spawn(async move {
            pause(duration).await;
            let _ = Command::new("kill").args(["-CONT", &pid]).status();
        });
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
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
    pub(crate) bus_away: Arc<AtomicBool>,
    pub(crate) store: store::Postgres,
    pub(crate) mark: PathBuf,
    broker: Broker,
    issuer: Arc<Issuer>,
    client: reqwest::Client,
    requested: Vec<RunId>,
    _folder: TempDir,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let programs = tokio::task::spawn_blocking(build).await.unwrap();
        let postgres = Postgres::start().await;
        store::Postgres::migrate(&postgres.url).await.unwrap();
        let store = store::Postgres::connect(&postgres.url, 4).await.unwrap();
        register(&store).await;
        let issuer = Arc::new(Issuer::generate(ISSUER));
        let broker = Broker::new(Arc::new(SystemClock), issuer.clone(), PUSHER, Faults::default());
        let bus_away = Arc::new(AtomicBool::new(false));
        let host = host(broker.clone(), &issuer, bus_away.clone()).await;
        let start: Arc<Starter> = Arc::new(starter(programs, postgres.url.clone(), host));
        let folder = tempfile::tempdir().unwrap();
        let mut cluster = Self {
            functions: Vec::new(),
            postgres,
            bus_away,
            store,
            mark: folder.path().join("mark"),
            broker,
            issuer,
            client: reqwest::Client::builder().timeout(Duration::from_secs(20)).build().unwrap(),
            requested: Vec::new(),
            _folder: folder,
        };
        for name in FUNCTIONS {
            let pair: Vec<Function> = (0..2)
                .map(|_| {
                    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
                    Function { name, port, process: start(name, port), start: start.clone() }
                })
                .collect();
            cluster.mount(name, &pair);
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

    fn mount(&self, name: &str, pair: &[Function]) {
        let urls = pair.iter().map(Function::url).collect();
        let client = reqwest::Client::builder().timeout(Duration::from_secs(8)).build().unwrap();
        let balancer = Balancer { urls: Arc::new(urls), next: Arc::default(), client };
        let router = Router::new().route("/push", post(forward)).with_state(balancer);
        let topic = match name {
            "trigger" => Topic::Triggers,
            "evaluate" => Topic::Evaluations,
            "execute" => Topic::Work("light".into()),
            _ => Topic::Management,
        };
        let subscription = Subscription {
            ack_deadline: Duration::from_secs(10),
            max_backoff: Duration::from_secs(2),
            max_delivery_attempts: 1_000,
            ..Subscription::new(name, Endpoint::Router(router, "/push".into()), AUDIENCE)
        };
        self.broker.subscribe(&topic, subscription);
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
        self.broker.publish(&[request]).await.unwrap();
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

    /// What each function answers that is asked for something that needs the database.
    pub(crate) async fn ask_every_function(&self) -> Vec<u16> {
        let ask = |function: &Function| match function.name {
            "sweep" => self.asks(&format!("{}/sweep", function.url())).send(),
            _ => self.client.get(format!("{}/readyz", function.url())).send(),
        };
        let asked: Vec<_> = self.functions.iter().map(|function| tokio::spawn(ask(function))).collect();
        let mut answers = Vec::new();
        for answer in asked {
            answers.push(answer.await.unwrap().map_or(0, |answer| answer.status().as_u16()));
        }
        answers
    }

    /// What a platform does.
    pub(crate) fn restart_the_dead(&mut self) {
        for function in &mut self.functions {
            if function.process.try_wait().unwrap().is_some() {
                function.process = (function.start)(function.name, function.port);
            }
        }
    }

    /// Waits until these runs have ended, at most until then.
    pub(crate) async fn wait_for(&mut self, runs: &[RunId], until: Instant) {
        loop {
            self.restart_the_dead();
            self.tick().await;
            let mut open = 0;
            for run in runs {
                let record = self.store.run(TenantId::DEFAULT, *run).await;
                let ended =
                    record.is_ok_and(|record| record.is_some_and(|record| record.run.state.is_final()));
                open += u32::from(!ended);
            }
            if open == 0 {
                return;
            }
            assert!(now() < until, "{open} of {} runs have not ended", runs.len());
            pause(TimeDelta::milliseconds(100)).await;
        }
    }

    /// Lets everyone live, and lets time pass in the rows until every run has ended and nothing is left to be done.
    pub(crate) async fn calm_down(&mut self) -> Vec<RunRecord> {
        let until = now() + CALM_WITHIN;
        for function in &self.functions {
            function.signal("-CONT");
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

/// Sends each push to the next of several processes, as the platform's load balancer does.
#[derive(Clone)]
struct Balancer {
    urls: Arc<Vec<String>>,
    next: Arc<AtomicUsize>,
    client: reqwest::Client,
}

async fn forward(State(balancer): State<Balancer>, headers: HeaderMap, body: Bytes) -> (StatusCode, Body) {
    let turn = balancer.next.fetch_add(1, Ordering::Relaxed) % balancer.urls.len();
    let request = balancer.client.post(format!("{}/push", balancer.urls[turn])).headers(headers).body(body);
    match request.send().await {
        Ok(answer) => (answer.status(), Body::empty()),
        Err(_) => (StatusCode::BAD_GATEWAY, Body::empty()),
    }
}

async fn unless_away(State(away): State<Arc<AtomicBool>>, request: Request, next: Next) -> Response {
    let publishes = request.uri().path().starts_with("/v1/");
    if publishes && away.load(Ordering::SeqCst) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    next.run(request).await
}

/// The broker and the keys of its tokens, where other processes reach them.
async fn host(broker: Broker, issuer: &Issuer, away: Arc<AtomicBool>) -> String {
    let keys = issuer.jwks();
    let router = bus::broker_http::router(broker)
        .route("/keys", get(|| async { axum::Json(keys) }))
        .layer(from_fn_with_state(away, unless_away));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
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

fn starter(program: PathBuf, database: String, host: String) -> impl Fn(&str, u16) -> Child {
    move |name, port| {
        Command::new(&program)
            .arg(name)
            .env("PORT", port.to_string())
            .env("DATABASE_URL", &database)
            .env("EBB_BROKER_URL", &host)
            .env("EBB_PUSH_AUTH", "oidc")
            .env("EBB_PUSH_AUDIENCE", AUDIENCE)
            .env("EBB_PUSH_ACCOUNT", PUSHER)
            .env("EBB_PUSH_ISSUER", ISSUER)
            .env("EBB_PUSH_KEYS_URL", format!("{host}/keys"))
            .env("RUST_LOG", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }
}

async fn register(store: &store::Postgres) {
    let file = SourceFile { path: "chaos.yaml".into(), kind: FileKind::Workflow, text: WORKFLOW.into() };
    let compiled = language::compile(&[file]);
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
