//! Everything that can be read, of a tenant that has stored as much as it may.

use std::time::Duration;

use api::endpoints;
use futures::StreamExt;
use model::{Failure, Labels, RemoteFacts, RunId, TenantId, VersionId, WorkerFacts, WorkerId, Workflow};
use runtime::{Origin, StartRun};
use serde_json::{Map, Value, json};

use super::{ITEMS, Served, World, deliver, peak_memory, value, world};

/// The number of tasks that failed, of workers, of versions, and of runs with labels.
const FAILED: usize = 500;
const WORKERS: usize = 100;
const VERSIONS: usize = 50;
const LABELLED: usize = 30;

/// The number of clients that read the same at the same time.
const CLIENTS: usize = 8;

/// How much more memory the process may take than when nobody reads, in bytes.
const MAX_GROWTH: u64 = 150 * 1024 * 1024;

/// What a tenant has stored that holds as much as it may.
struct Stored {
    failed: RunId,
    wide: RunId,
    versions: Vec<RunId>,
}

fn many(name: &str, count: usize, last: &str) -> String {
    let tasks = (0..count).map(|task| format!("{{name: t{task:02}, type: echo, config: {{value: 1}}}}"));
    let tasks: Vec<String> = tasks.chain((!last.is_empty()).then(|| last.to_owned())).collect();
    format!("{{name: {name}, tasks: [{}]}}", tasks.join(", "))
}

impl Stored {
    async fn new(world: &World) -> Self {
        let last = "{name: last, type: echo, depends_on: [t00, t01], config: {value: '{{ outputs.t00 }}'}}";
        world.write_all(&[&many("failing", FAILED, ""), &many("outputs", ITEMS, last)]).await;
        let failed = world.start("failing").await;
        let failure = Failure {
            detail: Some(Value::String("d".repeat(60_000))),
            ..Failure::permanent("é\0".repeat(5_000))
        };
        for task in 0..FAILED as u32 {
            world.report(failed, task, 1, model::message::TaskResult::Failed(failure.clone())).await;
        }
        let wide = world.start("outputs").await;
        deliver(world, wide).await;
        report_progress(world, wide).await;
        for number in 0..WORKERS {
            register_worker(world, number as u128 + 1).await;
        }
        for number in 0..LABELLED {
            start_labelled(world, number as u128 + 1).await;
        }
        Self { failed, wide, versions: register_versions(world).await }
    }
}

/// Writes what ten attempts at each task reported: as many metrics as there may be, each with as many values.
async fn report_progress(world: &World, run: RunId) {
    let values: Vec<_> =
        (0..60).map(|second| json!([1_800_000_000_000_i64 + second, 0.123_456_789])).collect();
    let metrics: Map<String, Value> =
        (0..32).map(|number| (format!("{number:064}"), json!(values))).collect();
    sqlx::query(
        "insert into progress (run, idx, attempt, at, fraction, message, phase, metrics)
         select $1, task, attempt, now(), 0.5, 'message', 'phase', $2::json
           from generate_series(0, 99) as task, generate_series(1, 10) as attempt",
    )
    .bind(run.0)
    .bind(Value::Object(metrics).to_string())
    .execute(world.postgres().pool())
    .await
    .unwrap();
}

async fn register_worker(world: &World, number: u128) {
    let long = |number: usize| format!("{number:0>4}{}", "𝄞".repeat(96));
    let labels = (0..32).map(|number| (long(number), model::Label::Text(long(number)))).collect();
    let remote = RemoteFacts {
        tenant: TenantId::DEFAULT,
        name: format!("worker-{number}"),
        slots: 1,
        labels: Labels(labels),
        types: Some((0..100).map(long).collect()),
        usage: None,
    };
    let facts = WorkerFacts {
        function: "remote".into(),
        queue: Some("light".into()),
        host: "host".into(),
        version: "1".into(),
        since: world.now(),
        breakers: Vec::new(),
        remote: Some(remote),
    };
    world.runtime.workers().check_in(WorkerId(uuid::Uuid::from_u128(number)), facts).await.unwrap();
}

async fn start_labelled(world: &World, number: u128) {
    let id = RunId(uuid::Uuid::from_u128(number));
    let start = StartRun::new(id, TenantId::DEFAULT, "large", Origin::Api { by: "test".into() });
    let map = |name: &str, text: String| [(name.to_owned(), Value::String(text))].into_iter().collect();
    let (inputs, labels) = (map("text", "x".to_owned()), map("note", value(number as usize)));
    world.runtime.start(StartRun { inputs, labels, ..start }).await.unwrap();
}

/// Registers versions of several megabytes, and starts a run of each.
async fn register_versions(world: &World) -> Vec<RunId> {
    world.write(&many("versioned", 1, "")).await;
    let first = world.start("versioned").await;
    let version: VersionId = world.run(first).await.run.version;
    let mut workflow: Workflow = world.store().version(version).await.unwrap().unwrap().workflow;
    let mut runs = Vec::new();
    for number in 0..VERSIONS {
        workflow.tasks[0].config = json!({"value": [value(number), value(1), value(2), value(3)]});
        world.register(workflow.clone()).await;
        runs.push(world.start("versioned").await);
    }
    runs
}

/// The paths of everything that is read and ends, with names of what is stored.
fn paths(stored: &Stored) -> Vec<String> {
    let endpoints = endpoints::list().into_iter();
    let read = endpoints.filter(|endpoint| endpoint.method == "GET" && !endpoint.is_stream());
    let api = read.map(|endpoint| format!("/api/v1{}", endpoint.path));
    let sources = [
        include_str!("../../../functions/console/src/pages.rs"),
        include_str!("../../../functions/console/src/pages/operations.rs"),
    ];
    let routes = sources.iter().flat_map(|source| source.split(".route(\"").skip(1));
    let pages = routes.filter_map(|route| {
        let (path, handler) = route.split_once('"')?;
        // This one is a stream.
        (handler.starts_with(", get(") && path != "/live").then(|| path.to_owned())
    });
    let templates: Vec<String> = api.chain(pages).collect();
    assert!(templates.len() > 60, "{templates:?}");
    let all = templates.into_iter().flat_map(|path| {
        let about_runs = path.contains("/runs/{id}");
        let runs = if about_runs { vec![stored.failed, stored.wide] } else { vec![stored.failed] };
        runs.into_iter().map(move |run| filled(&path, run)).collect::<Vec<_>>()
    });
    all.collect()
}

fn filled(path: &str, run: RunId) -> String {
    let mut path = path.replace("/runs/{id}", &format!("/runs/{run}"));
    for (name, text) in [
        ("/limits/{kind}/{name}", "/limits/queue/light"),
        ("/tenants/{name}", "/tenants/default"),
        ("{name}", "versioned"),
        ("{workflow}", "versioned"),
        ("{task}", "t01"),
        ("{number}", "2"),
        ("{other}", "3"),
        ("{id}", "018f0000-0000-7000-8000-000000000001"),
        ("{trigger}", "none"),
    ] {
        path = path.replace(name, text);
    }
    assert!(!path.contains('{'), "{path}: a parameter has no value here");
    path
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_read_of_a_hostile_tenant_takes_little_memory() {
    let world = world().await;
    let stored = Stored::new(&world).await;
    let served = Served::start("console", world).await;
    served.get("/").await;
    let idle = peak_memory(served.process.id());
    let check = |what: &str| {
        let grown = peak_memory(served.process.id()) - idle;
        assert!(grown < MAX_GROWTH, "{what}: {} MiB", grown / 1024 / 1024);
    };
    let mut found = 0;
    for path in paths(&stored) {
        // What is no list has no limit.
        let read = read(&served, &format!("{path}?limit=100")).await || read(&served, &path).await;
        found += usize::from(read);
        check(&path);
    }
    for tab in ["data", "events", "try"] {
        for run in [stored.failed, stored.wide] {
            let path = format!("/runs/{run}?tab={tab}");
            assert!(read(&served, &path).await, "{path}");
            check(&path);
        }
    }
    assert!(found > 70, "only {found} were found");
    futures::stream::iter(&stored.versions)
        .for_each_concurrent(CLIENTS, async |run| {
            served.get(&format!("/api/v1/runs/{run}/graph")).await;
        })
        .await;
    check("versions");
}

/// Has many clients read the same at the same time. Returns whether there is something to read.
async fn read(served: &Served, path: &str) -> bool {
    let one = async |_| {
        loop {
            let request = served.client.get(served.process.url(path)).bearer_auth(&served.token);
            let answer = request.timeout(Duration::from_secs(120)).send().await.unwrap();
            let status = answer.status();
            // Skipped as it comes: the clients are in this process, and many.
            let mut body = answer.bytes_stream();
            while let Some(part) = body.next().await {
                part.unwrap();
            }
            if status != reqwest::StatusCode::SERVICE_UNAVAILABLE {
                assert!(!status.is_server_error(), "{path}: {status}");
                return status.is_success();
            }
        }
    };
    let answers: Vec<bool> =
        futures::stream::iter(0..CLIENTS).map(one).buffer_unordered(CLIENTS).collect().await;
    answers.into_iter().all(|found| found)
}
