//! Two processes of each function, on one database and one bus.

use std::collections::BTreeMap;
use std::net::TcpListener;
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
use bus::{Bus, Endpoint, Subscription};
use clock::SystemClock;
use model::message::RunRequested;
use model::{EventKind, Message, RunId, RunState, TenantId, Topic};
use serde_json::Map;
use store::{Postgres, Store};
use uuid::Uuid;

use crate::world::{AUDIENCE, PUSHER, register};

const FUNCTIONS: [&str; 4] = ["trigger", "evaluate", "execute", "sweep"];

/// A function as a process of its own, killed when the test is over.
struct Function {
    url: String,
    process: Child,
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

/// Builds the functions' binaries, or finds that they are built; answers with the folder they are in.
fn build() -> std::path::PathBuf {
    let packages = FUNCTIONS.iter().flat_map(|name| ["-p".to_owned(), format!("ebbflow-{name}")]);
    let built = Command::new(env!("CARGO")).arg("build").args(packages).status().unwrap();
    assert!(built.success(), "the functions do not build");
    // This test is target/debug/deps/acceptance-…: the binaries are one folder up.
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned()
}

async fn start(name: &str, folder: &std::path::Path, database: &str, host: &str) -> Function {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let process = Command::new(folder.join(format!("ebbflow-{name}")))
        .env("PORT", port.to_string())
        .env("DATABASE_URL", database)
        .env("EBB_BROKER_URL", host)
        .env("EBB_PUSH_AUTH", "oidc")
        .env("EBB_PUSH_AUDIENCE", AUDIENCE)
        .env("EBB_PUSH_ACCOUNT", PUSHER)
        .env("EBB_PUSH_ISSUER", "https://issuer.example")
        .env("EBB_PUSH_KEYS_URL", format!("{host}/keys"))
        .env("RUST_LOG", "warn")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let function = Function { url: format!("http://127.0.0.1:{port}"), process };
    let ready = format!("{}/readyz", function.url);
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_of_each_function_release_no_dependant_twice() {
    let folder = tokio::task::spawn_blocking(build).await.unwrap();
    let database = testkit::database().await;
    Postgres::migrate(&database.url).await.unwrap();
    let store = Postgres::connect(&database.url, 4).await.unwrap();
    let issuer = Arc::new(Issuer::generate("https://issuer.example"));
    // Every third message comes twice.
    let faults = Faults { duplicate: 0.3, seed: 7, ..Faults::default() };
    let broker = Broker::new(Arc::new(SystemClock), issuer.clone(), PUSHER, faults);
    let keys = issuer.jwks();
    let host = bus::broker_http::router(broker.clone()).route("/keys", get(|| async { axum::Json(keys) }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, host).await.unwrap() });

    let mut processes = BTreeMap::new();
    for name in FUNCTIONS {
        let first = start(name, &folder, &database.url, &address).await;
        let second = start(name, &folder, &database.url, &address).await;
        let balancer = Balancer {
            urls: Arc::new(vec![first.url.clone(), second.url.clone()]),
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
        broker.subscribe(&topic, Subscription::new(name, Endpoint::Router(router, "/push".into()), AUDIENCE));
        processes.insert(name, [first, second]);
    }

    let joins: Vec<String> = (0..20).map(|index| format!("start -> p{index} -> join -> end")).collect();
    register(&store, testkit::workflow(&joins.join(", "))).await;
    let runs: Vec<RunId> = (0..10).map(|_| RunId(Uuid::now_v7())).collect();
    let requests = runs.iter().map(|run| {
        Message::RunRequested(RunRequested {
            run: *run,
            tenant: TenantId::DEFAULT,
            workflow: "example".into(),
            inputs: Map::new(),
            logical_date: None,
            labels: Map::new(),
            trigger: "message".into(),
            parent: None,
        })
    });
    broker.publish(&requests.collect::<Vec<_>>()).await.unwrap();
    broker.idle().await;

    for run in runs {
        let record = store.run(TenantId::DEFAULT, run).await.unwrap().expect("the run was created");
        assert_eq!(record.run.state, RunState::Succeeded);
        let mut seen: BTreeMap<(EventKind, u32), u32> = BTreeMap::new();
        for (_, event) in store.events(run, 0, 10_000).await.unwrap() {
            if let (EventKind::TaskDispatched | EventKind::TaskSucceeded, Some(task)) =
                (event.kind, event.task)
            {
                *seen.entry((event.kind, task.0)).or_default() += 1;
            }
        }
        assert_eq!(seen.len(), 2 * 23, "each of the 23 tasks was released and succeeded");
        assert!(seen.values().all(|count| *count == 1), "exactly once: {seen:?}");
    }
    for function in processes.into_values().flatten() {
        assert!(function.stops_when_asked(), "SIGTERM ends a function gently");
    }
}
