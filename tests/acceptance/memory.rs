//! How much memory the API and the console take while clients read what is large.

mod compiling;

use std::sync::Arc;

use bus::SystemClock;
use bus::local::{Broker, Faults};
use ebbflow_tests::{FunctionProcess, build};
use futures::future::join_all;
use model::message::TaskResult;
use model::{Failure, RunId};
use serde_json::{Value, json};
use testkit::{peak_memory, within_deadline};

use crate::processes::serve;
use crate::world::{ISSUER, PUSHER};

const LARGE: &str =
    "{name: large, inputs: {text: {type: string}}, tasks: [{name: a, type: sleep, config: {duration: 1h}}]}";

/// The size of each run's inputs and of each task's output, in bytes: the largest that there are.
const VALUE: usize = 1_000_000;

/// The number of items on a page, and of clients that read it at the same time.
const ITEMS: usize = 100;
const CLIENTS: usize = 100;

/// The most memory that the process may take, in bytes.
const MAX_MEMORY: u64 = 150 * 1024 * 1024;

/// Letters without a pattern: the database must send them as they are, since it compresses only what is repeated.
fn value(number: usize) -> String {
    let mut state = 0x9E37_79B9_7F4A_7C15 ^ (number as u64 + 1);
    let letter = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + (state % 26) as u8)
    };
    (0..VALUE).map(letter).collect()
}

/// A workflow with as many tasks as a page has items.
fn wide() -> String {
    let tasks = (0..ITEMS).map(|task| format!("{{name: t{task:02}, type: echo, config: {{value: 1}}}}"));
    format!("{{name: wide, tasks: [{}]}}", tasks.collect::<Vec<_>>().join(", "))
}

type World = testkit::World<Broker, SystemClock>;

/// A function whose clients are all one person, who may everything.
struct Served {
    world: World,
    process: FunctionProcess,
    client: reqwest::Client,
    token: String,
}

impl Served {
    async fn start(function: &'static str, world: World) -> Self {
        let (program, host) = (build().await, serve(&world.bus).await);
        let settings = vec![
            ("DATABASE_URL", world.database_url().to_owned()),
            ("EBB_BROKER_URL", host.clone()),
            ("EBB_PUSH_AUTH", "none".to_owned()),
            ("EBB_API_AUDIENCE", "api".to_owned()),
            ("EBB_API_ISSUER", ISSUER.url().to_owned()),
            ("EBB_API_KEYS_URL", format!("{host}/keys")),
            ("EBB_API_ACCOUNTS", "ada@example.com".to_owned()),
            ("EBB_RATE_CALLER", "0".to_owned()),
            ("EBB_RATE_TENANT", "0".to_owned()),
        ];
        let process = FunctionProcess::start(function, &program, settings);
        process.wait_until_ready().await;
        let token = ISSUER.sign(&json!({
            "iss": ISSUER.url(), "sub": "ada", "aud": "api", "email": "ada@example.com", "email_verified": true,
            "exp": world.now().timestamp() + 3600,
        }));
        Self { world, process, client: reqwest::Client::new(), token }
    }

    async fn get(&self, path: &str) -> String {
        loop {
            let request = self.client.get(self.process.url(path)).bearer_auth(&self.token);
            let answer = request.send().await.unwrap();
            let status = answer.status();
            let text = answer.text().await.unwrap();
            // Clients share few connections: on a busy machine some are asked to try again.
            if status != reqwest::StatusCode::SERVICE_UNAVAILABLE {
                assert!(status.is_success(), "{path}: {status}: {text}");
                return text;
            }
        }
    }

    /// Has many clients read a page at the same time.
    async fn read_by_many(&self, path: &str, max_bytes: usize) {
        for text in join_all((0..CLIENTS).map(|_| self.get(path))).await {
            assert!(text.len() < max_bytes, "{path}: {} bytes", text.len());
        }
        self.check(path);
    }

    fn check(&self, what: &str) {
        let peak = peak_memory(self.process.id());
        assert!(peak < MAX_MEMORY, "{what}: {} MiB", peak / 1024 / 1024);
    }
}

async fn world() -> World {
    let broker = Broker::new(Arc::new(SystemClock), ISSUER.clone(), PUSHER, Faults::default());
    let world = testkit::World::on_postgres(broker, SystemClock).await;
    world.write_all(&[LARGE, &wide()]).await;
    world
}

/// Has every task of a run succeed with a large output.
async fn deliver(world: &World, run: RunId) {
    for number in 0..ITEMS {
        world.report(run, number as u32, 1, TaskResult::Succeeded(json!(value(number)))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_clients_that_list_large_runs_and_tasks_do_not_exhaust_the_memory() {
    let world = world().await;
    let run = world.start("wide").await;
    deliver(&world, run).await;
    for number in 0..ITEMS {
        world.start_with("large", &json!({"text": value(number)})).await.unwrap();
    }
    let served = Served::start("trigger", world).await;
    let tasks = format!("/api/v1/runs/{run}/tasks?limit={ITEMS}");
    let runs = format!("/api/v1/runs?workflow=large&limit={ITEMS}");
    for (path, preview) in [(runs, "inputs_preview"), (tasks, "output_preview")] {
        let page: Value = serde_json::from_str(&served.get(&path).await).unwrap();
        assert_eq!(page["items"].as_array().unwrap().len(), ITEMS, "{path}");
        assert!(page["items"][0][preview]["bytes"].as_u64().unwrap() >= VALUE as u64, "{path}");
        served.read_by_many(&path, 1024 * 1024).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_readers_of_pages_about_large_outputs_do_not_exhaust_the_memory() {
    let world = world().await;
    let run = world.start("wide").await;
    deliver(&world, run).await;
    let served = Served::start("console", world).await;
    let page = served.get(&format!("/runs/{run}?tab=data")).await;
    assert!(page.contains("/output\">All"), "{page}");
    for path in ["?tab=data", "?tab=try", "?tab=try&expression=outputs.t00+%7C+length"] {
        served.read_by_many(&format!("/runs/{run}{path}"), 2 * 1024 * 1024).await;
    }
}

/// The number of runs whose tasks all fail with a long message, and of clients that were there before that.
const FAILED: usize = 5;
const LISTENERS: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listeners_that_catch_up_with_a_large_history_do_not_exhaust_the_memory() {
    let world = world().await;
    for _ in 0..FAILED {
        let run = world.start("wide").await;
        for task in 0..ITEMS as u32 {
            let failure = Failure::permanent("x".repeat(10_000));
            world.report(run, task, 1, TaskResult::Failed(failure)).await;
        }
    }
    let served = Served::start("trigger", world).await;
    let listen = async |_| {
        let mut answer = loop {
            let request = served.client.get(served.process.url("/api/v1/events")).bearer_auth(&served.token);
            let answer = request.header("last-event-id", "1:1:").send().await.unwrap();
            // Few catch up at the same time; on a busy machine some are asked to come again.
            if answer.status() != reqwest::StatusCode::SERVICE_UNAVAILABLE {
                break answer;
            }
        };
        assert!(answer.status().is_success(), "{}", answer.status());
        let first = within_deadline("something is sent", answer.chunk()).await.unwrap();
        assert!(first.is_some_and(|bytes| !bytes.is_empty()));
        // It reads no more, and keeps the connection.
        answer
    };
    let listeners = join_all((0..LISTENERS).map(listen)).await;
    served.check("listeners");
    assert_eq!(listeners.len(), LISTENERS);
    assert!(served.world.runs("wide").await.len() >= FAILED);
}
