//! How much memory the API takes while clients read large lists.

use std::sync::Arc;

use bus::SystemClock;
use bus::local::{Broker, Faults};
use ebbflow_tests::{FunctionProcess, build};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::processes::serve;
use crate::world::{ISSUER, PUSHER};

const LARGE: &str =
    "{name: large, inputs: {text: {type: string}}, tasks: [{name: a, type: sleep, config: {duration: 1h}}]}";

/// The largest inputs that a request can bring, in bytes.
const INPUT: usize = 1_000_000;

/// The number of runs on a page, and of clients that read it at the same time.
const RUNS: usize = 100;
const CLIENTS: usize = 100;

/// The most memory that the process may take, in bytes.
const MAX_MEMORY: u64 = 150 * 1024 * 1024;

/// The most memory that a process ever had, in bytes.
fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_clients_that_list_large_runs_do_not_exhaust_the_memory() {
    let program = build().await;
    let broker = Broker::new(Arc::new(SystemClock), ISSUER.clone(), PUSHER, Faults::default());
    let world = testkit::World::on_postgres(broker, SystemClock).await;
    world.write(LARGE).await;
    // Bytes that do not compress: the database must send them as they are.
    for number in 0..RUNS {
        let text: String =
            (0..INPUT).map(|at| char::from(b'a' + ((at * 7 + number * 13 + at / 26) % 26) as u8)).collect();
        world.start_with("large", &json!({"text": text})).await.unwrap();
    }
    let host = serve(&world.bus).await;
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
    let process = FunctionProcess::start("trigger", &program, settings);
    process.wait_until_ready().await;
    let token = ISSUER.sign(&json!({
        "iss": ISSUER.url(), "sub": "ada", "aud": "api", "email": "ada@example.com", "email_verified": true,
        "exp": world.now().timestamp() + 3600,
    }));
    let (client, url) = (Arc::new(reqwest::Client::new()), process.url("/api/v1/runs?limit=100"));
    let list = async || loop {
        let answer = client.get(&url).bearer_auth(&token).send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        // Clients share few connections: on a busy machine some are asked to try again.
        if status != reqwest::StatusCode::SERVICE_UNAVAILABLE {
            assert!(status.is_success(), "{status}: {text}");
            break text;
        }
    };
    let page: Value = serde_json::from_str(&list().await).unwrap();
    assert!(page["items"][0]["inputs_preview"]["bytes"].as_u64().unwrap() > INPUT as u64);
    for text in join_all((0..CLIENTS).map(|_| list())).await {
        assert!(text.len() < 1024 * 1024, "{} bytes", text.len());
    }
    let peak = peak_memory(process.id());
    assert!(peak < MAX_MEMORY, "{} MiB", peak / 1024 / 1024);
}
