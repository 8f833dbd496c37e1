//! Definitions that are short and share something large, compiled for several clients at the same time.

use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Served, peak_memory, world};

/// How much more memory the process may take than when nobody compiles, in bytes: it has 512 MiB.
const MAX_GROWTH: u64 = 300 * 1024 * 1024;

/// The number of clients, and of uses of what is shared: together gigabytes.
const CLIENTS: usize = 4;
const USES: usize = 8_000;

/// A workflow whose tasks all use one task of many short values, which take more memory than their texts do.
fn body() -> String {
    let file = |kind: &str, path: &str, text: String| json!({"kind": kind, "path": path, "text": text});
    let short = "{a: 1},".repeat(50_000);
    let task = format!("{{name: big, type: echo, config: {{value: [{short}]}}}}");
    let uses: Vec<String> = (0..USES).map(|number| format!("{{task: big, name: t{number}}}")).collect();
    let workflow = format!("{{name: a, tasks: [{}]}}", uses.join(", "));
    let files = [file("task", "tasks/big.yaml", task), file("workflow", "graphs/a.yaml", workflow)];
    json!({ "files": files }).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_compile_large_definitions_together_do_not_exhaust_the_memory() {
    let served = Served::start("trigger", world().await).await;
    served.get("/api/v1/runs").await;
    let (idle, body) = (peak_memory(served.process.id()), body());
    let compile = async |_| {
        let request = served.client.post(served.process.url("/api/v1/workflows/validate"));
        let request = request.bearer_auth(&served.token).header("content-type", "application/json");
        let answer = request.body(body.clone()).send().await.unwrap();
        (answer.status(), answer.json::<Value>().await.unwrap())
    };
    for (status, answer) in join_all((0..CLIENTS).map(compile)).await {
        // One after the other is compiled, and one that waits for too long is asked to come again.
        assert!(
            [StatusCode::UNPROCESSABLE_ENTITY, StatusCode::SERVICE_UNAVAILABLE].contains(&status),
            "{answer}"
        );
    }
    let grown = peak_memory(served.process.id()) - idle;
    assert!(grown < MAX_GROWTH, "{} MiB", grown / 1024 / 1024);
}
