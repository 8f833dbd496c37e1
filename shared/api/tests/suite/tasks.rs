use axum::http::StatusCode;
use model::Failure;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn tasks_are_listed_with_their_state_and_what_they_wait_for() {
    let world = World::with_hello().await;
    let run = world.start().await;
    world.report(run, 0, Ok(json!("hello world"))).await;
    let page = world.get(&format!("/runs/{run}/tasks")).await.body;
    insta::assert_json_snapshot!(page, { ".items[].links" => "[links]" });
    let task = world.get(&format!("/runs/{run}/tasks/greet")).await.body;
    assert_eq!(task, page["items"][0]);
    let base = format!("http://localhost:8480/runs/{run}");
    assert_eq!(
        task["links"],
        json!({
            "self": format!("/api/v1/runs/{run}/tasks/greet"),
            "console": format!("{base}#greet"),
            "logs": format!("{base}/tasks/greet/log"),
            "trace": format!("{base}#greet"),
        })
    );
}

#[tokio::test]
async fn tasks_come_in_pages() {
    let world = World::with_hello().await;
    let run = world.start().await;
    let first = world.get(&format!("/runs/{run}/tasks?limit=2")).await.body;
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = world.get(&format!("/runs/{run}/tasks?limit=2&cursor={cursor}")).await.body;
    assert_eq!(second["items"][0]["name"], "leave");
    assert_eq!(second["next_cursor"], json!(null));
}

#[tokio::test]
async fn a_task_that_is_retried_waits_for_its_timer_and_keeps_its_attempts() {
    let world = World::with_hello().await;
    let run = world.start().await;
    world.report(run, 0, Err(Failure::transient("no luck"))).await;
    let task = world.get(&format!("/runs/{run}/tasks/greet")).await.body;
    assert_eq!((&task["state"], &task["max_attempts"]), (&json!("up_for_retry"), &json!(3)));
    assert_eq!(task["error"], json!({"class": "transient", "message": "no luck"}));
    assert_eq!(
        (&task["waiting"]["reason"], &task["waiting"]["until"]),
        (&json!("timer"), &json!("2027-01-15T08:00:10Z"))
    );
    let mut attempts = world.get(&format!("/runs/{run}/tasks/greet/attempts")).await.body;
    let links = attempts["items"][0].as_object_mut().unwrap().remove("links").unwrap();
    assert!(links["logs"].as_str().unwrap().ends_with("/tasks/greet/log?attempt=1"), "{links}");
    insta::assert_json_snapshot!(attempts);
}

#[tokio::test]
async fn the_attempt_in_hand_is_among_the_attempts() {
    let world = World::with_hello().await;
    let run = world.start().await;
    let attempts = world.get(&format!("/runs/{run}/tasks/greet/attempts")).await.body;
    assert_eq!(
        (&attempts["items"][0]["attempt"], &attempts["items"][0]["state"]),
        (&json!(1), &json!("dispatched"))
    );
    let none = world.get(&format!("/runs/{run}/tasks/leave/attempts")).await.body;
    assert_eq!(none["items"], json!([]));
}

#[tokio::test]
async fn a_task_that_nearly_exists_is_suggested() {
    let world = World::with_hello().await;
    let run = world.start().await;
    let answer = world.get(&format!("/runs/{run}/tasks/great")).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.body["message"], format!("run {run} has no task `great` (did you mean `greet`?)"));
}
