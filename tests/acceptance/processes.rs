//! Two processes of each function, on one database and one bus.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use auth::Issuer;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use bus::local::{Broker, Faults};
use bus::{Bus, Endpoint, Subscription, SystemClock};
use language::FileKind;
use model::message::RunRequested;
use model::{EventKind, Message, RunId, RunState, TenantId, Topic};
use serde_json::{Map, Value, json};
use store::{Postgres, RunRecord, Runs};
use testkit::{Database, Port};
use uuid::Uuid;

use crate::child_runs::{LOAD, let_go, needs_load};
use crate::world::{AUDIENCE, PUSHER, compile, register};

const FUNCTIONS: [&str; 4] = ["trigger", "evaluate", "execute", "sweep"];

/// A function as a process of its own, killed when the test is over.
pub(crate) struct Function {
    port: Port,
    pub(crate) process: Child,
}

impl Function {
    /// Sends SIGTERM and waits; answers whether the process ended well.
    fn stops_when_asked(mut self) -> bool {
        let asked = Command::new("kill").arg(self.process.id().to_string()).status().unwrap();
        asked.success() && self.process.wait().unwrap().success()
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Builds the program that is any of the functions, or finds that it is built.
fn build() -> std::path::PathBuf {
    let arguments = ["build", "--workspace", "--example", "function"];
    assert!(
        Command::new(env!("CARGO")).args(arguments).status().unwrap().success(),
        "the functions do not build"
    );
    // This test is target/debug/deps/acceptance-…
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples/function")
}

async fn start(name: &str, program: &std::path::Path, database: &str, host: &str) -> Function {
    let port = Port::reserve();
    let process = Command::new(program)
        .arg(name)
        .env("PORT", port.number().to_string())
        .env("DATABASE_URL", database)
        .env("EBB_BROKER_URL", host)
        .env("EBB_PUSH_AUTH", "oidc")
        .env("EBB_PUSH_AUDIENCE", AUDIENCE)
        .env("EBB_PUSH_ACCOUNT", PUSHER)
        .env("EBB_PUSH_ISSUER", "https://issuer.example")
        .env("EBB_PUSH_KEYS_URL", format!("{host}/keys"))
        .env("EBB_GRACE_SECONDS", "1")
        .env("RUST_LOG", "warn")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let function = Function { port, process };
    let ready = format!("{}/readyz", function.port.url());
    let client = reqwest::Client::new();
    while !client.get(&ready).send().await.is_ok_and(|answer| answer.status().is_success()) {
        tokio::task::yield_now().await;
    }
    function
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

/// Two processes of each function, on one database and one bus that delivers every third message twice.
pub(crate) struct Cluster {
    database: Database,
    pub(crate) store: Postgres,
    pub(crate) broker: Broker,
    pub(crate) processes: Vec<Function>,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let program = tokio::task::spawn_blocking(build).await.unwrap();
        let database = testkit::database().await;
        Postgres::migrate(&database.url).await.unwrap();
        let store = Postgres::connect(&database.url, 4).await.unwrap();
        let issuer = Arc::new(Issuer::generate("https://issuer.example"));
        let faults = Faults { duplicate: 0.3, seed: 7, ..Faults::default() };
        let broker = Broker::new(Arc::new(SystemClock), issuer.clone(), PUSHER, faults);
        let keys = issuer.jwks();
        let host =
            bus::broker_http::router(broker.clone()).route("/keys", get(|| async { axum::Json(keys) }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, host).await.unwrap() });
        let mut cluster = Self { store, broker, processes: Vec::new(), database };
        for name in FUNCTIONS {
            let url = cluster.database.url.clone();
            let first = start(name, &program, &url, &address).await;
            let second = start(name, &program, &url, &address).await;
            cluster.mount(name, [first, second]);
        }
        cluster
    }

    fn mount(&mut self, name: &str, processes: [Function; 2]) {
        let balancer = Balancer {
            urls: Arc::new(processes.iter().map(|process| process.port.url()).collect()),
            next: Arc::default(),
            client: reqwest::Client::new(),
        };
        let router = Router::new().route("/push", post(forward)).with_state(balancer);
        let topic = match name {
            "trigger" => Topic::Triggers,
            "evaluate" => Topic::Evaluations,
            "execute" => Topic::Work("light".into()),
            _ => Topic::Management,
        };
        let endpoint = Endpoint::Router(router, "/push".into());
        self.broker.subscribe(&topic, Subscription::new(name, endpoint, AUDIENCE));
        self.processes.extend(processes);
    }

    /// Asks for a run of each of these workflows at the same time.
    pub(crate) async fn request(&self, workflows: &[&str], inputs: &Value) -> Vec<RunId> {
        let runs: Vec<RunId> = workflows.iter().map(|_| RunId(Uuid::now_v7())).collect();
        let requests = runs.iter().zip(workflows).map(|(run, workflow)| {
            Message::RunRequested(RunRequested {
                run: *run,
                tenant: TenantId::DEFAULT,
                workflow: (*workflow).to_owned(),
                inputs: inputs.as_object().cloned().unwrap_or_default(),
                logical_date: None,
                labels: Map::new(),
                trigger: "message".into(),
                parent: None,
                priority: 0,
            })
        });
        self.broker.publish(&requests.collect::<Vec<_>>()).await.unwrap();
        runs
    }

    /// How these runs stand once nothing is on its way any more.
    pub(crate) async fn finished(&self, runs: Vec<RunId>) -> Vec<RunRecord> {
        self.broker.idle().await;
        let mut records = Vec::new();
        for run in runs {
            records.push(self.store.run(TenantId::DEFAULT, run).await.unwrap().expect("the run was created"));
        }
        records
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_of_each_function_release_no_dependant_twice() {
    let cluster = Cluster::start().await;
    let joins: Vec<String> = (0..20).map(|index| format!("start -> p{index} -> join -> end")).collect();
    register(&cluster.store, testkit::workflow(&joins.join(", "))).await;
    let runs = cluster.request(&["example"; 10], &json!({})).await;
    for record in cluster.finished(runs).await {
        assert_eq!(record.run.state, RunState::Succeeded);
        let mut seen: BTreeMap<(EventKind, u32), u32> = BTreeMap::new();
        for (_, event) in cluster.store.events(record.run.id, 0, 10_000).await.unwrap() {
            if let (EventKind::TaskDispatched | EventKind::TaskSucceeded, Some(task)) =
                (event.kind, event.task)
            {
                *seen.entry((event.kind, task.0)).or_default() += 1;
            }
        }
        assert_eq!(seen.len(), 2 * 23, "each of the 23 tasks was released and succeeded");
        assert!(seen.values().all(|count| *count == 1), "exactly once: {seen:?}");
    }
    for function in cluster.processes {
        assert!(function.stops_when_asked(), "SIGTERM ends a function gently");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_carry_out_a_global_task_once_for_all_who_need_it() {
    let cluster = Cluster::start().await;
    let (one, two) = (needs_load("one"), needs_load("two"));
    let files =
        [(FileKind::Task, LOAD), (FileKind::Workflow, one.as_str()), (FileKind::Workflow, two.as_str())];
    for workflow in compile(&files) {
        register(&cluster.store, workflow).await;
    }
    for expected in [RunState::Succeeded, RunState::Failed] {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        if expected == RunState::Failed {
            std::fs::write(mark.with_extension("fail"), "").unwrap();
        }
        let runs = cluster.request(&["one", "two", "one", "two"], &json!({"mark": mark})).await;
        let_go(&cluster.store, &runs, &mark).await;
        for record in cluster.finished(runs).await {
            assert_eq!(record.run.state, expected, "{:?}", record.run.error);
        }
        assert_eq!(std::fs::read_to_string(&mark).unwrap(), "loaded\n", "it was carried out once for all");
    }
}
