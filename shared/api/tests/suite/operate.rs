//! What people do to runs and tasks, one by one and many at once.

use axum::http::StatusCode;
use engine::Command;
use model::message::TaskResult;
use model::{Failure, RunId, TaskIndex};
use runtime::Settled;
use serde_json::{Value, json};

use crate::world::{Answer, World, now};

const CHAIN: &str = "
name: chain
tasks:
  - {name: first, type: noop}
  - {name: second, type: noop, depends_on: [first]}
  - {name: third, type: noop, depends_on: [second]}
";

const WAITS: &str = "
name: waits
tasks:
  - {name: nap, type: sleep, config: {duration: 1h}}
  - {name: listen, type: wait_for_signal, config: {signal: go}}
  - {name: ask, type: approval, config: {}}
";

async fn act(world: &World, run: RunId, what: &str, body: Value) -> Answer {
    world.post(&format!("/runs/{run}/{what}"), body.to_string()).await
}

async fn states(world: &World, run: RunId) -> Vec<String> {
    let tasks = world.get(&format!("/runs/{run}/tasks")).await;
    let state = |task: &Value| task["state"].as_str().unwrap().to_owned();
    tasks.body["items"].as_array().unwrap().iter().map(state).collect()
}

async fn report(world: &World, run: RunId, task: u32, attempt: u32, result: TaskResult) {
    let command = Command::Report { task: TaskIndex(task), attempt, worker: None, started_at: now(), result };
    assert_eq!(world.runtime.settle(run, command).await.unwrap(), Settled::Applied);
}

/// A run of `chain` whose second task failed.
async fn failed() -> (World, RunId) {
    let world = World::new().await;
    let run = world.play(CHAIN, json!({})).await;
    world.report(run, 0, Ok(json!({"n": 1}))).await;
    world.report(run, 1, Err(Failure::permanent("no luck"))).await;
    (world, run)
}

fn refused(answer: &Answer, words: &str) {
    assert_eq!(answer.status, StatusCode::CONFLICT, "{}", answer.body);
    let message = answer.body["message"].as_str().unwrap();
    assert!(message.contains(words), "`{words}` is not in: {message}");
}

#[tokio::test]
async fn a_run_is_paused_and_resumed_with_who_and_why() {
    let world = World::new().await;
    let run = world.play(CHAIN, json!({})).await;
    let paused = act(&world, run, "pause", json!({"reason": "the source is down"})).await;
    assert_eq!((paused.status, &paused.body["state"]), (StatusCode::OK, &json!("paused")));
    world.report(run, 0, Ok(Value::Null)).await;
    assert_eq!(states(&world, run).await, ["succeeded", "pending", "pending"]);
    refused(&act(&world, run, "pause", json!({})).await, "is already paused");
    let explained = world.get(&format!("/runs/{run}/explain")).await;
    let summary = explained.body["summary"].as_str().unwrap();
    assert!(summary.contains("was paused by ada@example.com at"), "{summary}");
    assert!(
        summary.contains(": the source is down. It starts no more tasks until it is resumed"),
        "{summary}"
    );
    assert_eq!(explained.body["tasks"][0]["because"], "It could start, but the run is paused.");
    assert_eq!(act(&world, run, "resume", json!({})).await.body["state"], "running");
    assert_eq!(states(&world, run).await, ["succeeded", "dispatched", "pending"]);
    refused(&act(&world, run, "resume", json!({})).await, "is running; only a paused run can be resumed");
    let events = world.get(&format!("/runs/{run}/events?limit=100")).await;
    let listed: Vec<&Value> = events.body["items"].as_array().unwrap().iter().collect();
    let paused = listed.iter().find(|event| event["type"] == "run.paused").unwrap();
    let why = (&paused["actor"], &paused["data"]["reason"]);
    assert_eq!(why, (&json!("ada@example.com"), &json!("the source is down")));
}

#[tokio::test]
async fn a_failed_run_is_retried_from_where_it_failed() {
    let (world, run) = failed().await;
    let retried = act(&world, run, "retry", json!({"reason": "fixed"})).await;
    assert_eq!((retried.status, &retried.body["state"]), (StatusCode::OK, &json!("running")));
    assert_eq!((&retried.body["error"], &retried.body["finished_at"]), (&Value::Null, &Value::Null));
    assert_eq!(states(&world, run).await, ["succeeded", "dispatched", "pending"]);
    report(&world, run, 1, 2, TaskResult::Succeeded(Value::Null)).await;
    report(&world, run, 2, 1, TaskResult::Succeeded(Value::Null)).await;
    refused(&act(&world, run, "retry", json!({})).await, "is succeeded and has no failed tasks");
    refused(&act(&world, run, "pause", json!({})).await, "is succeeded and cannot be paused");
    refused(&act(&world, run, "evaluate", json!({})).await, "is succeeded; there is nothing to re-evaluate");
    let attempts = world.get(&format!("/runs/{run}/tasks/second/attempts")).await;
    let tried: Vec<&Value> =
        attempts.body["items"].as_array().unwrap().iter().map(|it| &it["state"]).collect();
    assert_eq!(tried, ["failed", "succeeded"]);
}

#[tokio::test]
async fn a_cleared_task_has_no_output_and_is_explained() {
    let (world, run) = failed().await;
    let cleared = act(&world, run, "tasks/first/clear", json!({"reason": "wrong day"})).await;
    assert_eq!(cleared.status, StatusCode::OK, "{}", cleared.body);
    assert_eq!(states(&world, run).await, ["dispatched", "pending", "pending"]);
    let first = world.get(&format!("/runs/{run}/tasks/first")).await;
    assert_eq!((&first.body["output"], &first.body["attempt"]), (&Value::Null, &json!(2)));
    let explained = world.get(&format!("/runs/{run}/explain?task=second")).await;
    let because = explained.body["tasks"][0]["because"].as_str().unwrap();
    assert!(because.contains("It was cleared by ada@example.com at"), "{because}");
    refused(&act(&world, run, "tasks/third/clear", json!({})).await, "there is nothing to clear");
    assert_eq!(act(&world, run, "tasks/fourth/clear", json!({})).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_task_is_marked_with_an_output_that_others_see() {
    let (world, run) = failed().await;
    let body = json!({"output": {"rows": 3}, "reason": "done by hand"});
    assert_eq!(act(&world, run, "tasks/second/succeed", body).await.status, StatusCode::OK);
    assert_eq!(states(&world, run).await, ["succeeded", "succeeded", "dispatched"]);
    let second = world.get(&format!("/runs/{run}/tasks/second")).await;
    assert_eq!(second.body["output"], json!({"rows": 3}));
    let explained = world.get(&format!("/runs/{run}/explain?task=second")).await;
    let because = explained.body["tasks"][0]["because"].as_str().unwrap();
    assert!(because.starts_with("It was marked as succeeded by ada@example.com at"), "{because}");
    assert!(because.ends_with(": done by hand."), "{because}");
    refused(&act(&world, run, "tasks/second/succeed", json!({})).await, "is succeeded already");
    assert_eq!(act(&world, run, "tasks/third/fail", json!({})).await.body["state"], "failed");
    let run = world.get(&format!("/runs/{run}")).await;
    assert_eq!(run.body["error"], "task `third` failed: ada@example.com marked it as failed");
}

#[tokio::test]
async fn a_sleep_is_ended_early_and_other_waits_say_what_to_do_instead() {
    let world = World::new().await;
    let run = world.play(WAITS, json!({})).await;
    assert_eq!(act(&world, run, "tasks/nap/wake", json!({})).await.status, StatusCode::OK);
    assert_eq!(states(&world, run).await, ["succeeded", "sleeping", "sleeping"]);
    for (task, words) in [
        ("nap", "is succeeded; only a sleep or a retry delay can be ended early"),
        ("listen", "is sleeping: it is waiting for a signal; send it"),
        ("ask", "is sleeping: it is waiting for approval; approve or reject it"),
    ] {
        refused(&act(&world, run, &format!("tasks/{task}/wake"), json!({})).await, words);
    }
    assert_eq!(act(&world, run, "evaluate", json!({})).await.status, StatusCode::OK);
}

async fn bulk(world: &World, body: Value) -> Answer {
    world.post("/runs/bulk", body.to_string()).await
}

#[tokio::test]
async fn many_runs_are_counted_first_and_then_acted_on_in_batches() {
    let world = World::new().await;
    world.play(CHAIN, json!({})).await;
    for _ in 1..120 {
        world.start_of("chain", json!({})).await;
    }
    let other = world.play(WAITS, json!({})).await;
    let pause = |dry_run: bool, cursor: &Value| {
        let filter = json!({"workflow": "chain", "state": "running"});
        json!({"filter": filter, "action": "pause", "dry_run": dry_run, "reason": "night", "cursor": cursor})
    };
    let counted = bulk(&world, pause(true, &Value::Null)).await.body;
    assert_eq!((&counted["count"], &counted["more"]), (&json!(120), &json!(false)));
    assert_eq!(counted["sample"].as_array().unwrap().len(), 100);
    let still = bulk(&world, pause(true, &Value::Null)).await.body;
    assert_eq!(still, counted, "a dry run touches nothing");
    let first = bulk(&world, pause(false, &Value::Null)).await.body;
    assert_eq!((&first["count"], &first["applied"], &first["stale"]), (&json!(100), &json!(100), &json!(0)));
    let second = bulk(&world, pause(false, &first["next_cursor"])).await.body;
    assert_eq!((&second["applied"], &second["next_cursor"]), (&json!(20), &Value::Null));
    assert_eq!(world.get(&format!("/runs/{other}")).await.body["state"], "running");
    let again = json!({"filter": {"workflow": "chain"}, "action": "pause"});
    let again = bulk(&world, again).await.body;
    assert_eq!((&again["applied"], &again["stale"], &again["failed"]), (&json!(0), &json!(100), &json!(0)));
}

#[tokio::test]
async fn many_runs_are_found_by_label_and_by_when_they_were_created() {
    let world = World::with_hello().await;
    for team in ["red", "red", "blue"] {
        let labels = json!({"labels": {"team": team}});
        world.post("/workflows/hello/runs", labels.to_string()).await;
    }
    let count = async |filter: Value| {
        bulk(&world, json!({"filter": filter, "action": "cancel", "dry_run": true})).await.body["count"]
            .clone()
    };
    assert_eq!(count(json!({"label": "team=red"})).await, 2);
    assert_eq!(count(json!({"label": "team=red", "state": "failed"})).await, 0);
    assert_eq!(count(json!({"created_after": crate::world::now()})).await, 3);
    assert_eq!(count(json!({"created_before": crate::world::now()})).await, 0);
}

#[tokio::test]
async fn a_bulk_action_that_makes_no_sense_is_refused_in_words() {
    let world = World::new().await;
    for (body, words) in [
        (
            json!({"filter": {"workflow": "a"}, "action": "stop"}),
            "one of cancel, pause, resume, retry, evaluate",
        ),
        (json!({"filter": {}, "action": "retry"}), "give at least one of workflow, state, parent"),
    ] {
        let answer = bulk(&world, body).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(answer.body["message"].as_str().unwrap().contains(words), "{}", answer.body);
    }
    let odd = bulk(&world, json!({"filter": {"label": "odd"}, "action": "retry"})).await;
    assert_eq!(odd.status, StatusCode::BAD_REQUEST);
    let odd = bulk(&world, json!({"filter": {"state": "odd"}, "action": "retry"})).await;
    assert_eq!(odd.status, StatusCode::BAD_REQUEST);
}
