//! `ebb dev --bus pubsub-emulator`: every function is a process of its own, and Google's emulator pushes to it.

use std::collections::BTreeMap;
use std::process::Command;

use embedded::Emulator;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::eventually;

use crate::project::{Dev, Project};

const WORKFLOWS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../workflows");

/// Every example that waits for no person and no service, with its inputs and its final state. Two of them fail on
/// purpose.
fn examples() -> Vec<(&'static str, Value, &'static str)> {
    let day = || json!({"day": "2026-01-31"});
    let well = |name, inputs| (name, inputs, "succeeded");
    vec![
        well("hello", json!({})),
        well("diamond", json!({})),
        well("retries", json!({"probability": 0})),
        well("charge", json!({})),
        well("nap", json!({"length": "1s"})),
        well("etl", json!({})),
        ("broken", json!({}), "failed"),
        well("branch", json!({})),
        well("choice", json!({})),
        well("ingest-orders", json!({})),
        well("fan-out", json!({})),
        well("notify", json!({"text": "Good morning"})),
        well("publish-report", day()),
        well("daily-report", day()),
        well("poll", json!({})),
        well("per-customer", json!({})),
        well("rush-orders", json!({})),
        well("callbacks", json!({})),
        well("price-list", json!({})),
        well("price-check", json!({})),
        ("cleanup", json!({"broken": true}), "failed"),
        well("mirrors", json!({})),
        well("signed-order", json!({})),
        well("new-object", json!({"path": "gs://b/a"})),
        well("after-both", day()),
        well("deadline", json!({})),
        well("market-pipeline", json!({"day": "2026-01-31", "cool_down": "1s"})),
    ]
}

/// The latest process of each function, according to the log of `ebb dev`.
fn processes(project: &Project) -> BTreeMap<String, u32> {
    let log = std::fs::read_to_string(project.log()).unwrap();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let started = lines.filter_map(|line| {
        let (name, rest) = line["message"].as_str()?.split_once(" is process ")?;
        Some((name.to_owned(), rest.split(' ').next()?.parse().ok()?))
    });
    started.collect()
}

fn kill(project: &Project, function: &str) {
    let process = processes(project)[function].to_string();
    assert!(Command::new("kill").args(["-KILL", &process]).status().unwrap().success(), "{function}");
}

async fn state(dev: &Dev, run: &str) -> Option<String> {
    let answer = dev.request(Method::GET, &format!("/runs/{run}")).send().await.ok()?;
    Some(answer.json::<Value>().await.ok()?["state"].as_str()?.to_owned())
}

/// Starts an example, as often as it takes: the API may have been killed.
async fn start(dev: &Dev, workflow: &str, inputs: &Value) -> String {
    eventually(&format!("{workflow} is started"), async || {
        let start = dev.request(Method::POST, &format!("/workflows/{workflow}/runs"));
        let start = start.header("idempotency-key", workflow).json(&json!({"inputs": inputs}));
        let run: Value = start.send().await.ok()?.json().await.ok()?;
        Some(run["id"].as_str()?.to_owned())
    })
    .await
}

/// Waits for the final state of a run.
async fn final_state(dev: &Dev, run: &str) -> String {
    eventually(&format!("run {run} ends"), async || {
        let state = state(dev, run).await?;
        ["succeeded", "failed", "cancelled", "stalled"].contains(&state.as_str()).then_some(state)
    })
    .await
}

#[tokio::test]
async fn the_examples_end_as_documented_whichever_function_is_killed() {
    if !Emulator::is_installed() {
        return eprintln!("skipped: Google's Pub/Sub emulator is not installed");
    }
    let project = Project::new().with_secret("SIGNING_KEY", "open sesame\n");
    let arguments = ["--bus", "pubsub-emulator", "--workflows", WORKFLOWS];
    let dev = project.dev_with(&arguments, &[("RUST_LOG", "info")]);
    let before = processes(&project);
    assert_eq!(before.len(), 5, "each function is a process of its own: {before:?}");
    // No attempt is claimed yet: those of a dead worker are found after a minute, which `chaos` tests.
    kill(&project, "execute");
    let mut runs = Vec::new();
    for (workflow, inputs, end) in examples() {
        runs.push((workflow, start(&dev, workflow, &inputs).await, end));
        match runs.len() {
            5 => kill(&project, "evaluate"),
            10 => kill(&project, "trigger"),
            15 => kill(&project, "sweep"),
            20 => kill(&project, "console"),
            _ => {}
        }
    }
    for (workflow, run, end) in &runs {
        assert_eq!(final_state(&dev, run).await, *end, "{workflow}, run {run}");
    }
    let after = eventually("every function is restarted", async || {
        let after = processes(&project);
        before.iter().all(|(name, process)| after[name] != *process).then_some(after)
    })
    .await;
    assert!(dev.stops_on_request());
    let alive = |process: &&u32| std::path::Path::new(&format!("/proc/{process}/exe")).exists();
    assert_eq!(after.values().filter(alive).count(), 0, "no process is left");
}
