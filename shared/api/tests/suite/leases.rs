//! Leases: who gets which task, and in which order.

mod reports;
mod waiting;

use std::collections::BTreeSet;

use axum::http::StatusCode;
use futures::StreamExt;
use futures::future::join_all;
use model::RunId;
use serde_json::{Value, json};

use crate::world::World;

async fn register(world: &World, text: &str) {
    let registered = world.post("/workflows", text.to_owned()).await;
    assert_eq!(registered.status, StatusCode::CREATED, "{}", registered.body);
}

/// A workflow with one remote task, which has these settings beside its type.
fn remote(name: &str, settings: &str) -> String {
    format!("name: {name}\ntasks: [{{name: x, type: echo, config: {{value: 1}}, {settings}}}]")
}

async fn lease(world: &World, mut body: Value) -> Value {
    body["worker"] = body.get("worker").cloned().unwrap_or_else(|| "w".into());
    body["queue"] = body.get("queue").cloned().unwrap_or_else(|| "remote".into());
    let answer = world.post("/execution/lease", body.to_string()).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    answer.body
}

/// The workflows of the tasks that a worker gets.
async fn leased(world: &World, body: Value) -> Vec<String> {
    let answer = lease(world, body).await;
    let items = answer["items"].as_array().unwrap().iter();
    items.map(|item| item["workflow"].as_str().unwrap().to_owned()).collect()
}

async fn start_many(world: &World, workflow: &str, count: usize) -> Vec<RunId> {
    let starts = futures::stream::iter((0..count).map(|_| world.start_of(workflow, json!({}))));
    starts.buffer_unordered(8).collect().await
}

/// Resolves once a worker of that name has looked for work.
async fn is_registered(world: &World, name: &str) -> Value {
    testkit::eventually("the worker is registered", async || {
        let workers = world.get("/workers").await.body;
        workers["items"].as_array().unwrap().iter().find(|worker| worker["name"] == name).cloned()
    })
    .await
}

#[tokio::test]
async fn runs_that_wait_for_others_hide_nothing() {
    let world = World::new().await;
    register(&world, &remote("far", "queue: remote-far")).await;
    register(&world, &remote("picky", "queue: remote, requires: {gpu: true}")).await;
    register(&world, &remote("near", "queue: remote")).await;
    start_many(&world, "far", 300).await;
    start_many(&world, "picky", 205).await;
    world.start_of("near", json!({})).await;
    assert_eq!(leased(&world, json!({"limit": 32})).await, ["near"]);
}

#[tokio::test]
async fn a_higher_priority_goes_first_until_a_lower_one_has_waited_long_enough() {
    let world = World::new().await;
    register(&world, &remote("low", "queue: remote")).await;
    register(&world, &remote("high", "queue: remote, priority: 1")).await;
    for (seconds_later, workflow) in [(0, "low"), (30, "high"), (1, "low"), (30, "high")] {
        world.advance(seconds_later);
        world.start_of(workflow, json!({})).await;
    }
    let mut order = Vec::new();
    for _ in 0..4 {
        order.extend(leased(&world, json!({})).await);
    }
    assert_eq!(order, ["high", "low", "high", "low"], "a step of priority is worth a minute");
}

#[tokio::test]
async fn a_worker_gets_what_its_labels_and_types_allow() {
    let world = World::new().await;
    register(&world, &remote("gpu", "queue: remote, requires: {gpu: true, zone: a}")).await;
    register(&world, &remote("any", "queue: remote")).await;
    let shell = "name: shell\ntasks: [{name: x, type: bash, queue: remote, config: {command: 'true'}}]";
    register(&world, shell).await;
    let start_all = async || {
        for workflow in ["gpu", "any", "shell"] {
            world.start_of(workflow, json!({})).await;
        }
    };
    let sorted = async |body| {
        let mut found = leased(&world, body).await;
        found.sort();
        found
    };
    start_all().await;
    assert_eq!(sorted(json!({"limit": 9, "types": ["http"]})).await, [""; 0]);
    assert_eq!(sorted(json!({"limit": 9, "types": ["bash", "http"]})).await, ["shell"]);
    assert_eq!(sorted(json!({"limit": 9, "labels": {"gpu": true}})).await, ["any"]);
    assert_eq!(sorted(json!({"limit": 9, "labels": {"gpu": "true", "zone": "a"}})).await, [""; 0]);
    assert_eq!(sorted(json!({"limit": 9, "labels": {"gpu": true, "zone": "a", "ssd": 2}})).await, ["gpu"]);
    start_all().await;
    assert_eq!(
        sorted(json!({"limit": 9, "labels": {"gpu": true, "zone": "a"}})).await,
        ["any", "gpu", "shell"]
    );
}

#[tokio::test]
async fn an_open_breaker_keeps_back_what_was_offered_before_and_hides_nothing_else() {
    let world = World::new().await;
    let breaker = "breaker: {failures: 1, window: 1m, pause: 1m}, priority: 9";
    register(&world, &remote("fragile", &format!("queue: remote, {breaker}"))).await;
    register(&world, &remote("near", "queue: remote")).await;
    let broken = start_many(&world, "fragile", 4).await;
    world.start_of("near", json!({})).await;
    world.report(broken[0], 0, Err(model::Failure::transient("the warehouse is closed"))).await;
    assert_eq!(leased(&world, json!({"limit": 2})).await, ["near"]);
    for run in &broken[1..] {
        let explained = world.get(&format!("/runs/{run}/explain")).await.body;
        assert_eq!(explained["tasks"][0]["state"], "queued");
        let because = explained["tasks"][0]["because"].as_str().unwrap();
        assert!(because.contains("the circuit breaker of `fragile/x` is open until"), "{because}");
    }
}

#[tokio::test]
async fn concurrent_leases_never_get_the_same_attempt() {
    let world = World::on_machine_time().await;
    let other = world.another_process().await;
    register(&world, &remote("far", "queue: remote")).await;
    let expected: BTreeSet<RunId> = start_many(&world, "far", 40).await.into_iter().collect();
    let worker = |number: usize| {
        let world = if number.is_multiple_of(2) { &world } else { &other };
        async move {
            let mut found = Vec::new();
            loop {
                let body = json!({"worker": format!("w{number}"), "limit": 3});
                let items = lease(world, body).await["items"].as_array().unwrap().clone();
                if items.is_empty() {
                    return found;
                }
                found
                    .extend(items.iter().map(|item| item["run"].as_str().unwrap().parse::<RunId>().unwrap()));
            }
        }
    };
    let found = join_all((0..6).map(worker)).await.concat();
    assert_eq!(found.len(), 40);
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
}

#[tokio::test]
async fn an_idle_worker_is_registered_until_it_says_goodbye() {
    let world = World::new().await;
    register(&world, &remote("far", "queue: remote")).await;
    let body = json!({
        "worker": "w", "limit": 2, "slots": 4, "labels": {"gpu": true}, "types": ["echo"], "host": "box", "version": "2",
        "usage": {"cpu": 0.25, "memory": 0.5},
    });
    assert_eq!(leased(&world, body.clone()).await, [""; 0]);
    let worker = is_registered(&world, "w").await;
    for (field, value) in [
        ("state", json!("idle")),
        ("slots", json!(4)),
        ("labels", json!({"gpu": true})),
        ("types", json!(["echo"])),
        ("host", json!("box")),
        ("version", json!("2")),
        ("usage", json!({"cpu": 0.25, "memory": 0.5, "disk": null})),
        ("tasks_done", json!(0)),
        ("queue", json!("remote")),
    ] {
        assert_eq!(worker[field], value, "{field}");
    }
    let run = world.start_of("far", json!({})).await;
    let stats = world.get("/workers/stats").await.body;
    assert_eq!(
        (&stats["items"][0]["slots"], &stats["items"][0]["offered"]),
        (&json!(4), &json!(1)),
        "{stats}"
    );
    assert_eq!(leased(&world, body).await, ["far"]);
    assert_eq!(is_registered(&world, "w").await["state"], "busy");
    let goodbye = async || world.post("/execution/goodbye", r#"{"worker": "w"}"#).await;
    let refused = goodbye().await;
    assert_eq!((refused.status, &refused.body["error_code"]), (StatusCode::CONFLICT, &json!("still_holds")));
    let complete = world.post(&format!("/execution/{run}/x/1/complete"), r#"{"worker": "w"}"#).await;
    assert_eq!(complete.status, StatusCode::OK, "{}", complete.body);
    assert_eq!(is_registered(&world, "w").await["tasks_done"], 1);
    let usage = world.post("/execution/heartbeat", r#"{"worker": "w", "usage": {"disk": 0.75}}"#).await;
    assert_eq!(usage.status, StatusCode::OK, "{}", usage.body);
    assert_eq!(is_registered(&world, "w").await["usage"]["disk"], 0.75);
    for _ in 0..2 {
        assert_eq!(goodbye().await.status, StatusCode::OK);
        assert_eq!(world.get("/workers").await.body["items"], json!([]));
    }
}

#[tokio::test]
async fn attempts_that_are_leased_and_end_together_are_all_counted() {
    let world = World::on_machine_time().await;
    register(&world, &remote("far", "queue: remote")).await;
    start_many(&world, "far", 20).await;
    let leased = lease(&world, json!({"limit": 20})).await;
    let complete = async |item: &Value| {
        let run = item["run"].as_str().unwrap();
        world.post(&format!("/execution/{run}/x/1/complete"), r#"{"worker": "w"}"#).await.status
    };
    let statuses = join_all(leased["items"].as_array().unwrap().iter().map(complete)).await;
    assert_eq!(statuses, [StatusCode::OK; 20]);
    testkit::eventually("all are counted", async || {
        (is_registered(&world, "w").await["tasks_done"] == 20).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_report_that_is_sent_again_gets_the_same_response() {
    let world = World::new().await;
    let retries = "queue: remote, retry_policy: {max_retries: 5, initial_delay_seconds: 0, jitter: 0}";
    register(&world, &remote("far", retries)).await;
    let run = world.start_of("far", json!({})).await;
    let report = async |attempt: u32, what: &str, body: Value| {
        let answer = world.post(&format!("/execution/{run}/x/{attempt}/{what}"), body.to_string()).await;
        (answer.status, answer.body["error_code"].clone())
    };
    let checkpoint = json!({"worker": "w", "checkpoint": {"phase": "a"}});
    let failure =
        json!({"worker": "w", "message": "boom", "class": "killed", "signal": 9, "detail": {"line": 3}});
    let reports = [
        (1, "release", json!({"worker": "w", "reason": "moving"})),
        (2, "fail", failure),
        (3, "complete", json!({"worker": "w", "output": 7})),
    ];
    for (attempt, what, body) in &reports {
        assert_eq!(lease(&world, json!({})).await["items"][0]["attempt"], *attempt);
        for _ in 0..3 {
            let said = report(*attempt, "checkpoint", checkpoint.clone()).await;
            assert_eq!(said, (StatusCode::OK, Value::Null), "attempt {attempt}");
            let said = report(*attempt, what, body.clone()).await;
            assert_eq!(said, (StatusCode::OK, Value::Null), "{what} of attempt {attempt}");
        }
    }
    for (attempt, what, mut body) in reports {
        assert_eq!(report(attempt, what, body.clone()).await.0, StatusCode::OK, "{what}, much later");
        body["worker"] = "other".into();
        assert_eq!(report(attempt, what, body).await.1, "attempt_lost", "{what} of somebody else");
    }
    assert_eq!(report(2, "complete", json!({"worker": "w"})).await.1, "attempt_lost", "it failed");
    let attempts = world.get(&format!("/runs/{run}/tasks/x/attempts")).await.body;
    assert_eq!(attempts["items"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn an_attempt_that_was_taken_away_is_lost() {
    let world = World::new().await;
    register(&world, &remote("far", "queue: remote")).await;
    let run = world.start_of("far", json!({})).await;
    lease(&world, json!({})).await;
    assert_eq!(world.post(&format!("/runs/{run}/cancel"), "{}").await.status, StatusCode::OK);
    for (what, body) in [
        ("complete", json!({"worker": "w"})),
        ("fail", json!({"worker": "w", "message": "x"})),
        ("release", json!({"worker": "w"})),
        ("checkpoint", json!({"worker": "w", "checkpoint": 1})),
    ] {
        let answer = world.post(&format!("/execution/{run}/x/1/{what}"), body.to_string()).await;
        assert_eq!(
            (answer.status, &answer.body["error_code"]),
            (StatusCode::CONFLICT, &json!("attempt_lost")),
            "{what}"
        );
    }
}

#[tokio::test]
async fn what_is_no_longer_dispatched_is_not_offered() {
    let world = World::new().await;
    register(&world, &remote("far", "queue: remote")).await;
    let run = world.start_of("far", json!({})).await;
    assert_eq!(world.post(&format!("/runs/{run}/cancel"), "{}").await.status, StatusCode::OK);
    assert_eq!(leased(&world, json!({"limit": 9})).await, [""; 0]);
    let stats = world.get("/workers/stats").await.body;
    assert!(stats["items"].as_array().unwrap().iter().all(|queue| queue["offered"] == 0), "{stats}");
}

#[tokio::test]
async fn an_attempt_that_never_reached_its_worker_is_handed_back_even_if_it_must_not_be_repeated() {
    for (begun, state) in [(false, "dispatched"), (true, "failed")] {
        let world = World::new().await;
        register(&world, &remote("once", "queue: remote, idempotent: false")).await;
        let run = world.start_of("once", json!({})).await;
        assert_eq!(leased(&world, json!({})).await, ["once"]);
        let release = json!({"worker": "w", "begun": begun}).to_string();
        for _ in 0..2 {
            let answer = world.post(&format!("/execution/{run}/x/1/release"), release.clone()).await;
            assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        }
        assert_eq!(world.get(&format!("/runs/{run}/tasks/x")).await.body["state"], state);
    }
}

#[tokio::test]
async fn the_failure_of_a_task_that_must_not_be_repeated_may_be_reported_again() {
    let world = World::new().await;
    register(&world, &remote("once", "queue: remote, idempotent: false")).await;
    let run = world.start_of("once", json!({})).await;
    assert_eq!(leased(&world, json!({})).await, ["once"]);
    let failure =
        json!({"worker": "w", "message": "out of memory", "class": "killed", "signal": 9}).to_string();
    for _ in 0..2 {
        let answer = world.post(&format!("/execution/{run}/x/1/fail"), failure.clone()).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    }
    let task = world.get(&format!("/runs/{run}/tasks/x")).await.body;
    assert_eq!((&task["state"], &task["error"]["class"]), (&json!("failed"), &json!("outcome_unknown")));
}

#[tokio::test]
async fn a_release_is_repeated_by_what_was_recorded_and_not_by_its_sentence() {
    let sentence = "handed back without a checkpoint: the machine stops";
    for (first, body, repeated) in [
        ("release", json!({"worker": "w", "reason": "eh"}), StatusCode::OK),
        ("fail", json!({"worker": "w", "message": sentence, "class": "killed"}), StatusCode::CONFLICT),
    ] {
        let world = World::new().await;
        register(&world, &remote("once", "queue: remote, idempotent: false")).await;
        let run = world.start_of("once", json!({})).await;
        assert_eq!(leased(&world, json!({})).await, ["once"]);
        let answer = world.post(&format!("/execution/{run}/x/1/{first}"), body.to_string()).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        let again = json!({"worker": "w", "reason": "other words"}).to_string();
        let answer = world.post(&format!("/execution/{run}/x/1/release"), again).await;
        assert_eq!(answer.status, repeated, "after {first}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_lease_of_large_attempts_ends_early_and_the_next_one_goes_on() {
    let world = World::new().await;
    let program = "{name: x, type: bash, queue: remote, config: {command: 'true'}}";
    register(&world, &format!("name: far\ninputs: {{text: {{type: string}}}}\ntasks: [{program}]")).await;
    let text = "x".repeat(1_000_000);
    for _ in 0..9 {
        world.start_of("far", json!({ "text": text })).await;
    }
    let mut runs = BTreeSet::new();
    for count in [4, 4, 1, 0] {
        let answer = lease(&world, json!({"limit": 32})).await;
        assert!(answer.to_string().len() < 5_000_000);
        let items = answer["items"].as_array().unwrap();
        assert_eq!(items.len(), count, "what did not fit is offered again at once");
        runs.extend(items.iter().map(|item| item["run"].as_str().unwrap().to_owned()));
    }
    assert_eq!(runs.len(), 9, "each attempt is leased once");
}
