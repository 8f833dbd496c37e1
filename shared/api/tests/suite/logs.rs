use axum::http::StatusCode;
use model::{RunId, TaskIndex, TaskKey};
use serde_json::{Value, json};
use store::{LogChunk, LogLine};

use crate::world::{World, now};

/// A run whose first task has written three lines.
async fn world_with_log() -> (World, RunId) {
    let world = World::with_hello().await;
    let run = world.start().await;
    let line =
        |text: &str| LogLine { at: now(), stream: "stdout".into(), level: "info".into(), line: text.into() };
    let key = TaskKey { run, task: TaskIndex(0) };
    let chunk = LogChunk { key, attempt: 1, first: 0, lines: ["one", "two", "three"].map(line).into() };
    world.runtime.store().append_log(&chunk).await.unwrap();
    (world, run)
}

fn lines(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|line| line["line"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_log_is_that_of_the_current_attempt_unless_another_is_named() {
    let (world, run) = world_with_log().await;
    let page = world.get(&format!("/runs/{run}/tasks/greet/logs")).await.body;
    let line =
        |text| json!({"at": "2027-01-15T08:00:00Z", "stream": "stdout", "level": "info", "line": text});
    assert_eq!(page, json!({"items": [line("one"), line("two"), line("three")], "next_cursor": null}));
    assert_eq!(world.get(&format!("/runs/{run}/tasks/greet/logs?attempt=1")).await.body, page);
}

#[tokio::test]
async fn a_log_comes_in_pages() {
    let (world, run) = world_with_log().await;
    let path = format!("/runs/{run}/tasks/greet/logs?limit=2");
    let first = world.get(&path).await.body;
    assert_eq!(lines(&first), ["one", "two"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    assert_eq!(lines(&world.get(&format!("{path}&cursor={cursor}")).await.body), ["three"]);
}

#[tokio::test]
async fn a_task_that_has_not_begun_has_an_empty_log() {
    let (world, run) = world_with_log().await;
    let page = world.get(&format!("/runs/{run}/tasks/leave/logs")).await;
    assert_eq!((page.status, page.body), (StatusCode::OK, json!({"items": [], "next_cursor": null})));
}

#[tokio::test]
async fn an_attempt_that_never_was_is_not_found() {
    let (world, run) = world_with_log().await;
    for attempt in [0, 2] {
        let answer = world.get(&format!("/runs/{run}/tasks/greet/logs?attempt={attempt}")).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{attempt}");
    }
}
