//! Pending timers.

use axum::http::StatusCode;
use serde_json::json;

use crate::world::{World, now};

const SLEEPY: &str = "
name: sleepy
deadline_seconds: 30
tasks:
  - name: rest
    type: sleep
    config: {duration: 1h}
";

#[tokio::test]
async fn pending_timers_are_listed_with_when_and_why() {
    let world = World::with_hello().await;
    let sleepy = world.play(SLEEPY, json!({})).await;
    let hello = world.start().await;
    world.report(hello, 0, Ok(json!("hello"))).await;
    let all = world.get("/timers").await;
    assert_eq!(all.status, StatusCode::OK, "{}", all.body);
    let items = all.body["items"].as_array().unwrap();
    assert_eq!(items.len(), 3);
    let deadline = json!({
        "run": sleepy, "workflow": "sleepy", "task": null, "attempt": 0, "kind": "deadline",
        "wake_at": now() + chrono::TimeDelta::seconds(30), "overdue": false,
        "why": "the run's deadline passes", "link": format!("/api/v1/runs/{sleepy}"),
    });
    assert_eq!(items[0], deadline);
    assert!(items[1..].iter().all(|item| item["why"] == "`rest` wakes up"), "{items:?}");

    let of_hello = world.get("/timers?workflow=hello").await.body;
    assert_eq!(of_hello["items"][0]["task"], "rest");
    assert_eq!(of_hello["items"].as_array().unwrap().len(), 1);
    let of_run = world.get(&format!("/runs/{sleepy}/timers?limit=1")).await.body;
    assert_eq!(of_run["items"], json!([deadline]));
    let cursor = of_run["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("/timers?run={sleepy}&cursor={cursor}")).await.body;
    assert_eq!((&rest["items"][0]["kind"], &rest["next_cursor"]), (&json!("sleep"), &json!(null)));
}

#[tokio::test]
async fn timers_of_a_run_that_does_not_exist_are_not_found() {
    let world = World::new().await;
    let path = format!("/runs/{}/timers", uuid::Uuid::nil());
    assert_eq!(world.get(&path).await.status, StatusCode::NOT_FOUND);
}
