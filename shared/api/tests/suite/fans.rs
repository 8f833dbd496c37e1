//! Fan-outs and their children, however many there are.

use axum::http::StatusCode;
use model::{Failure, RunId, TaskIndex, TaskKey};
use serde_json::{Value, json};
use store::{LogChunk, LogLine};

use crate::world::{World, now};

const SPLIT: &str = "
name: small
tasks:
  - {name: split, type: fan_out, for_each: range(COUNT), max_parallel: 2, tolerated_failures: 1, task: {type: noop}}
  - {name: join, type: fan_in, depends_on: [split]}
";

/// A run that fanned out to this number of children, whose indices begin at 2.
async fn split(count: u32) -> (World, RunId) {
    let world = World::new().await;
    let run = world.play(&SPLIT.replace("COUNT", &count.to_string()), json!({})).await;
    (world, run)
}

async fn get(world: &World, run: RunId, path: &str) -> Value {
    let answer = world.get(&format!("/runs/{run}{path}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.body);
    answer.body
}

fn names(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|task| task["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_fan_out_counts_its_children_and_they_are_listed_apart() {
    let (world, run) = split(5).await;
    world.report(run, 2, Ok(json!(null))).await;
    world.report(run, 3, Err(Failure::permanent("no"))).await;
    let tasks = get(&world, run, "/tasks").await;
    assert_eq!(names(&tasks), ["split", "join"]);
    let split = &tasks["items"][0];
    let counted = json!({"count": 5, "begun": 4, "ended": 2, "succeeded": 1, "failed": 1, "skipped": 0});
    assert_eq!((&split["children"], &split["waiting"]["reason"]), (&counted, &json!("children")));
    let first = get(&world, run, "/tasks?parent=split&limit=3").await;
    assert_eq!(names(&first), ["split__0", "split__1", "split__2"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = get(&world, run, &format!("/tasks?parent=split&limit=3&cursor={cursor}")).await;
    assert_eq!((names(&rest), &rest["next_cursor"]), (vec!["split__3", "split__4"], &json!(null)));
    assert_eq!(rest["items"][1]["waiting"]["reason"], "turn");
}

#[tokio::test]
async fn a_child_is_a_task_with_attempts_and_a_log() {
    let (world, run) = split(3).await;
    let line = LogLine { at: now(), stream: "stdout".into(), level: "info".into(), line: "hi".into() };
    let key = TaskKey { run, task: TaskIndex(3) };
    let chunk = LogChunk { key, attempt: 1, first: 0, lines: vec![line] };
    world.runtime.store().append_log(&chunk).await.unwrap();
    world.report(run, 3, Ok(json!({"rows": 3}))).await;
    let child = get(&world, run, "/tasks/split__1").await;
    assert_eq!(
        (&child["parent"], &child["index"], &child["type"]),
        (&json!("split"), &json!(1), &json!("noop"))
    );
    assert_eq!((&child["state"], &child["output"]), (&json!("succeeded"), &json!({"rows": 3})));
    assert_eq!(child["links"]["self"], format!("/api/v1/runs/{run}/tasks/split__1"));
    assert_eq!(get(&world, run, "/tasks/split__1/attempts").await["items"][0]["attempt"], 1);
    assert_eq!(get(&world, run, "/tasks/split__1/logs").await["items"][0]["line"], "hi");
}

#[tokio::test]
async fn a_child_that_does_not_exist_is_not_found_and_a_plain_task_has_none() {
    let (world, run) = split(3).await;
    for name in ["split__3", "split__", "split__x", "join__0", "other__0"] {
        let answer = world.get(&format!("/runs/{run}/tasks/{name}")).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{name}");
    }
    let answer = world.get(&format!("/runs/{run}/tasks?parent=join")).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(answer.body["message"], "`join` is not a fan-out, so it has no children");
}

#[tokio::test]
async fn answers_about_a_run_stay_small_however_many_children_it_has() {
    let (world, run) = split(10_000).await;
    let size = |body: Value| body.to_string().len();
    assert!(size(get(&world, run, "").await) < 2_000);
    assert!(size(get(&world, run, "/tasks").await) < 3_000);
    assert!(size(get(&world, run, "/explain").await) < 3_000);
    assert!(size(get(&world, run, "/explain?task=split__9999").await) < 3_000);
    let page = get(&world, run, "/tasks?parent=split&limit=100").await;
    assert_eq!((names(&page).len(), names(&page)[99]), (100, "split__99"));
    assert!(page["next_cursor"].is_string() && size(page) < 100_000);
    assert_eq!(world.get(&format!("/runs/{run}/tasks?parent=split&limit=101")).await.status, 400);
    assert_eq!(get(&world, run, "/tasks/split__9999").await["index"], 9_999);
}
