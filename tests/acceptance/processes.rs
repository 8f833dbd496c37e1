//! Two processes of each function, on one database and one bus.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use axum::routing::get;
use bus::local::{Broker, Faults};
use bus::{Bus, Endpoint, Subscription, SystemClock};
use ebbflow_tests::{Balancer, FunctionProcess, build, functions};
use language::FileKind;
use model::{EventKind, Message, RunId, RunState};
use serde_json::{Value, json};
use store::RunRecord;
use testkit::DEADLINE;

use crate::child_runs::{LOAD, allow_to_finish, needs_load};
use crate::world::{AUDIENCE, ISSUER, PUSHER};

/// Two processes of each function, on a bus that delivers every third message twice.
pub(crate) struct Cluster {
    base: testkit::World<Broker, SystemClock>,
    pub(crate) processes: Vec<FunctionProcess>,
}

impl Deref for Cluster {
    type Target = testkit::World<Broker, SystemClock>;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let program = build().await;
        let faults = Faults { duplicate: 0.3, seed: 7, ..Faults::default() };
        let broker = Broker::new(Arc::new(SystemClock), ISSUER.clone(), PUSHER, faults);
        let base = testkit::World::on_postgres(broker, SystemClock).await;
        let settings = settings(base.database_url(), &serve(&base.bus).await);
        let start = |name: &'static str| FunctionProcess::start(name, &program, settings.clone());
        let (balancer, mut processes) = (Balancer::new(DEADLINE), Vec::new());
        for (name, topic) in functions() {
            for process in [start(name), start(name)] {
                balancer.add(&process);
                processes.push(process);
            }
            let endpoint = Endpoint::Router(balancer.router(), format!("/push/{name}"));
            base.bus.subscribe(&topic, Subscription::new(name, endpoint, AUDIENCE));
        }
        for process in &processes {
            process.wait_until_ready().await;
        }
        Self { base, processes }
    }

    /// Requests a run of each of these workflows at the same time.
    pub(crate) async fn request(&self, workflows: &[&str], inputs: &Value) -> Vec<RunId> {
        let requests: Vec<_> =
            workflows.iter().map(|workflow| testkit::run_requested(workflow, inputs)).collect();
        let runs = requests.iter().map(|request| request.run).collect();
        let messages: Vec<Message> = requests.into_iter().map(Message::RunRequested).collect();
        self.bus.publish(&messages).await.unwrap();
        runs
    }

    /// The runs once no message is in flight.
    pub(crate) async fn finished(&self, runs: Vec<RunId>) -> Vec<RunRecord> {
        self.bus.idle().await;
        let mut records = Vec::new();
        for run in runs {
            records.push(self.run(run).await);
        }
        records
    }
}

/// Serves the broker and the keys of tokens over HTTP. Returns the address.
pub(crate) async fn serve(broker: &Broker) -> String {
    let keys = ISSUER.jwks();
    let router = bus::broker_http::router(broker.clone()).route("/keys", get(|| async { axum::Json(keys) }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

fn settings(database: &str, host: &str) -> Vec<(&'static str, String)> {
    vec![
        ("DATABASE_URL", database.to_owned()),
        ("EBB_BROKER_URL", host.to_owned()),
        ("EBB_PUSH_AUTH", "oidc".to_owned()),
        ("EBB_PUSH_AUDIENCE", AUDIENCE.to_owned()),
        ("EBB_PUSH_ACCOUNT", PUSHER.to_owned()),
        ("EBB_PUSH_ISSUER", ISSUER.url().to_owned()),
        ("EBB_PUSH_KEYS_URL", format!("{host}/keys")),
        ("EBB_GRACE_SECONDS", "1".to_owned()),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_of_each_function_release_no_dependant_twice() {
    let cluster = Cluster::start().await;
    let joins: Vec<String> = (0..20).map(|index| format!("start -> p{index} -> join -> end")).collect();
    cluster.register(testkit::workflow(&joins.join(", "))).await;
    let runs = cluster.request(&["example"; 10], &json!({})).await;
    for record in cluster.finished(runs).await {
        assert_eq!(record.run.state, RunState::Succeeded);
        let mut seen: BTreeMap<(EventKind, u32), u32> = BTreeMap::new();
        for event in cluster.events(record.run.id).await {
            if let (EventKind::TaskDispatched | EventKind::TaskSucceeded, Some(task)) =
                (event.kind, event.task)
            {
                *seen.entry((event.kind, task.0)).or_default() += 1;
            }
        }
        assert_eq!(seen.len(), 2 * 23, "each of the 23 tasks was released and succeeded");
        assert!(seen.values().all(|count| *count == 1), "exactly once: {seen:?}");
    }
    for mut process in cluster.processes {
        assert!(process.stops_on_request(), "{} does not stop on SIGTERM", process.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_run_a_global_task_once_for_all_runs_that_need_it() {
    let cluster = Cluster::start().await;
    let (one, two) = (needs_load("one"), needs_load("two"));
    let files = [(FileKind::Task, LOAD), (FileKind::Workflow, &*one), (FileKind::Workflow, &*two)];
    cluster.write_files(&files).await;
    for expected in [RunState::Succeeded, RunState::Failed] {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        if expected == RunState::Failed {
            std::fs::write(mark.with_extension("fail"), "").unwrap();
        }
        let runs = cluster.request(&["one", "two", "one", "two"], &json!({"mark": mark})).await;
        allow_to_finish(&**cluster.store(), &runs, &mark).await;
        for record in cluster.finished(runs).await {
            assert_eq!(record.run.state, expected, "{:?}", record.run.error);
        }
        assert_eq!(std::fs::read_to_string(&mark).unwrap(), "loaded\n", "it ran once for all");
    }
}
