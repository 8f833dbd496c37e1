//! `ebb dev --bus pubsub-emulator`: every function a process of its own, pushed to by Google's emulator.

use std::collections::BTreeMap;
use std::process::Command;

use embedded::Emulator;
use reqwest::Method;
use serde_json::{Value, json};

use crate::ebb::{Dev, Place};

const WORKFLOWS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../workflows");

/// Every example that waits for no person and no service, with what it is given; two of them end badly on purpose. Not
/// `deadline`, which gives itself five seconds, however many functions are killed meanwhile.
fn examples() -> Vec<(&'static str, Value, &'static str)> {
    let day = || json!({"day": "2026-01-31"});
    let well = |name, inputs| (name, inputs, "succeeded");
    vec![
        well("hello", json!({})),
        well("diamond", json!({})),
        well("retries", json!({"probability": 0})),
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
        well("market-pipeline", json!({"day": "2026-01-31", "cool_down": "1s"})),
    ]
}

/// The processes of the functions that live, as `ebb dev` has told.
fn processes(place: &Place) -> BTreeMap<String, u32> {
    let log = std::fs::read_to_string(place.log()).unwrap();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let told = lines.filter_map(|line| {
        let (name, rest) = line["message"].as_str()?.split_once(" is process ")?;
        Some((name.to_owned(), rest.split(' ').next()?.parse().ok()?))
    });
    told.collect()
}

fn kill(place: &Place, function: &str) {
    let process = processes(place)[function].to_string();
    assert!(Command::new("kill").args(["-KILL", &process]).status().unwrap().success(), "{function}");
}

async fn state(dev: &Dev, run: &str) -> Option<String> {
    let answer = dev.request(Method::GET, &format!("/runs/{run}")).send().await.ok()?;
    Some(answer.json::<Value>().await.ok()?["state"].as_str()?.to_owned())
}

/// Starts an example; whoever asks asks again until the API is there.
async fn start(dev: &Dev, workflow: &str, inputs: &Value) -> String {
    loop {
        let start = dev.request(Method::POST, &format!("/workflows/{workflow}/runs"));
        let start = start.header("idempotency-key", workflow).json(&json!({"inputs": inputs}));
        if let Ok(answer) = start.send().await
            && let Ok(run) = answer.json::<Value>().await
            && let Some(id) = run["id"].as_str()
        {
            return id.to_owned();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_examples_end_as_they_promise_whichever_function_is_killed() {
    if !Emulator::is_installed() {
        return eprintln!("skipped: Google's Pub/Sub emulator is not installed");
    }
    let place = Place::new();
    std::fs::create_dir_all(place.path().join(".ebb/secrets")).unwrap();
    std::fs::write(place.path().join(".ebb/secrets/SIGNING_KEY"), "open sesame\n").unwrap();
    let arguments = ["--bus", "pubsub-emulator", "--workflows", WORKFLOWS];
    let mut dev = place.dev_with(&arguments, &[("RUST_LOG", "info")]);
    let before = processes(&place);
    assert_eq!(before.len(), 5, "each function is a process of its own: {before:?}");
    // Nothing is claimed yet: what a dead worker holds is found after a minute, which `chaos` waits for.
    kill(&place, "execute");
    let mut runs = Vec::new();
    for (workflow, inputs, end) in examples() {
        runs.push((workflow, start(&dev, workflow, &inputs).await, end));
        match runs.len() {
            5 => kill(&place, "evaluate"),
            10 => kill(&place, "trigger"),
            15 => kill(&place, "sweep"),
            20 => kill(&place, "console"),
            _ => {}
        }
    }
    for (workflow, run, end) in &runs {
        let state = loop {
            match state(&dev, run).await.as_deref() {
                Some(state @ ("succeeded" | "failed" | "cancelled" | "stalled")) => break state.to_owned(),
                _ => tokio::task::yield_now().await,
            }
        };
        assert_eq!(state, *end, "{workflow}, run {run}");
    }
    let after = processes(&place);
    assert!(
        before.iter().all(|(name, process)| after[name] != *process),
        "all were killed: {before:?} {after:?}"
    );
    assert!(dev.stops_when_asked());
    let alive = |process: &&u32| std::path::Path::new(&format!("/proc/{process}/exe")).exists();
    assert_eq!(after.values().filter(alive).count(), 0, "nobody is left");
}
