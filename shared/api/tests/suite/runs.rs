use axum::http::{Method, StatusCode, header};
use model::Failure;
use serde_json::{Value, json};

use crate::world::World;

#[tokio::test]
async fn starting_a_run_returns_the_run_and_its_location() {
    let world = World::with_hello().await;
    let body =
        json!({"inputs": {"who": "Ada"}, "labels": {"team": "x"}, "logical_date": "2026-01-31T00:00:00Z"});
    let answer = world.post("/workflows/hello/runs", body.to_string()).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let id = answer.body["id"].as_str().unwrap();
    assert_eq!(answer.headers[header::LOCATION], format!("/api/v1/runs/{id}"));
    assert_eq!(answer.body["links"]["console"], format!("http://localhost:8480/runs/{id}"));
    assert_eq!(world.get(&format!("/runs/{id}")).await.body, answer.body);
    insta::assert_json_snapshot!(answer.body, { ".id" => "[id]", ".links" => "[links]" });
}

#[tokio::test]
async fn the_same_idempotency_key_gives_the_same_run() {
    let world = World::with_hello().await;
    let start = async |key: &str, body: &'static str| {
        world.send(Method::POST, "/workflows/hello/runs", &[("idempotency-key", key)], body).await
    };
    let (first, again) = (start("k", "").await, start("k", "").await);
    assert_eq!((first.status, again.status), (StatusCode::CREATED, StatusCode::OK));
    assert_eq!(first.body, again.body);
    assert_ne!(start("other", "").await.body["id"], first.body["id"]);
    let changed = start("k", r#"{"inputs": {"who": "Bob"}}"#).await;
    assert_eq!(changed.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(changed.body["error_code"], "idempotency_key_reused");
    assert_eq!(start("", "").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_logical_date_has_one_run() {
    let world = World::with_hello().await;
    let body = r#"{"logical_date": "2026-01-31T00:00:00Z"}"#;
    let first = world.post("/workflows/hello/runs", body).await;
    let second = world.post("/workflows/hello/runs", body).await;
    assert_eq!(second.status, StatusCode::CONFLICT);
    assert_eq!(second.body["error_code"], "logical_date_taken");
    assert_eq!(second.body["details"], first.body);
}

#[tokio::test]
async fn a_run_makes_room_for_another_of_its_date_if_it_shall() {
    let world = World::with_hello().await;
    let replace = r#"{"logical_date": "2026-01-31T00:00:00Z", "replace_existing": true}"#;
    let first = world.post("/workflows/hello/runs", replace).await;
    let second = world.post("/workflows/hello/runs", replace).await;
    assert_eq!((first.status, second.status), (StatusCode::CREATED, StatusCode::CREATED));
    assert_ne!(second.body["id"], first.body["id"]);
    let path = format!("/runs/{}", first.body["id"].as_str().unwrap());
    let replaced = world.get(&path).await.body;
    assert_eq!(
        (&replaced["state"], &replaced["logical_date"]),
        (&json!("cancelled"), &first.body["logical_date"])
    );
    let events = world.get(&format!("{path}/events")).await.body.to_string();
    assert!(
        events.contains(&format!("run {} takes its date", second.body["id"].as_str().unwrap())),
        "{events}"
    );
    let third = world.post("/workflows/hello/runs", r#"{"logical_date": "2026-01-31T00:00:00Z"}"#).await;
    assert_eq!((third.status, &third.body["details"]["id"]), (StatusCode::CONFLICT, &second.body["id"]));
}

#[tokio::test]
async fn every_bad_input_is_reported() {
    let world = World::with_hello().await;
    let body = r#"{"inputs": {"whom": "x", "times": "many"}}"#;
    let answer = world.post("/workflows/hello/runs", body).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(answer.body["error_code"], "invalid_inputs");
    let names: Vec<&Value> =
        answer.body["details"].as_array().unwrap().iter().map(|it| &it["input"]).collect();
    assert!(names.contains(&&json!("whom")) && names.contains(&&json!("times")), "{}", answer.body);
}

#[tokio::test]
async fn a_run_of_a_workflow_that_is_not_there_is_not_started() {
    let world = World::with_hello().await;
    let answer = world.post("/workflows/helo/runs", "").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.body["message"], "there is no workflow `helo` (did you mean `hello`?)");
}

#[tokio::test]
async fn settings_that_cannot_be_honoured_are_refused() {
    let world = World::with_hello().await;
    let answer = world.post("/workflows/hello/runs", r#"{"priority": 101}"#).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    let message = "`priority` is 101, and must be a whole number from -100 to 100";
    assert_eq!(answer.body["message"], message);
    let answer = world.post("/workflows/hello/runs", r#"{"priority": -100}"#).await;
    assert_eq!(answer.status, StatusCode::CREATED);
}

#[tokio::test]
async fn runs_are_listed_newest_first_by_workflow_and_state_in_pages() {
    let world = World::with_hello().await;
    for _ in 0..3 {
        world.start().await;
    }
    let mut seen = Vec::new();
    let mut path = "/runs?limit=2&workflow=hello&state=running".to_owned();
    loop {
        let page = world.get(&path).await.body;
        seen.extend(
            page["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/runs?limit=2&workflow=hello&state=running&cursor={cursor}");
    }
    let mut sorted = seen.clone();
    sorted.sort_by(|one, other| other.cmp(one));
    sorted.dedup();
    assert_eq!((seen.len(), &seen), (3, &sorted));
    assert_eq!(world.get("/runs?state=failed").await.body["items"], json!([]));
    assert_eq!(world.get("/runs?workflow=other").await.body["items"], json!([]));
}

#[tokio::test]
async fn events_come_in_order() {
    let world = World::with_hello().await;
    let run = world.start().await;
    world.report(run, 0, Err(Failure::transient("no luck"))).await;
    let page = world.get(&format!("/runs/{run}/events?limit=100")).await.body;
    insta::assert_json_snapshot!(page, { ".items[].data.until" => "[time]" });
    let first = world.get(&format!("/runs/{run}/events?limit=1")).await.body;
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = world.get(&format!("/runs/{run}/events?limit=1&cursor={cursor}")).await.body;
    assert_eq!((&first["items"][0]["seq"], &second["items"][0]["seq"]), (&json!(0), &json!(1)));
}

#[tokio::test]
async fn a_run_is_cancelled_once_and_says_by_whom_and_why() {
    let world = World::with_hello().await;
    let run = world.start().await;
    let path = format!("/runs/{run}/cancel");
    let answer = world.post(&path, r#"{"reason": "a mistake"}"#).await;
    assert_eq!((answer.status, &answer.body["state"]), (StatusCode::OK, &json!("cancelled")));
    assert_eq!(answer.body["counts"], json!({"cancelled": 3}));
    assert_eq!(world.post(&path, "").await.status, StatusCode::OK);
    let events = world.get(&format!("/runs/{run}/events?limit=100")).await.body;
    let cancelled =
        events["items"].as_array().unwrap().iter().find(|it| it["type"] == "task.cancelled").unwrap().clone();
    assert_eq!(
        (&cancelled["actor"], &cancelled["data"]["reason"]),
        (&json!("ada@example.com"), &json!("a mistake"))
    );
}

#[tokio::test]
async fn a_run_that_has_failed_cannot_be_cancelled() {
    let world = World::with_hello().await;
    let run = world.start().await;
    world.report(run, 0, Err(Failure::permanent("no such table"))).await;
    let answer = world.post(&format!("/runs/{run}/cancel"), "").await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert_eq!(answer.body["message"], format!("run {run} has already failed"));
    assert_eq!(answer.body["details"]["state"], "failed");
}

#[tokio::test]
async fn the_graph_of_a_run_tells_the_state_of_each_task_and_whom_it_waits_for() {
    let world = World::with_hello().await;
    let run = world.start().await;
    world.report(run, 0, Ok(json!("hello"))).await;
    let graph = world.get(&format!("/runs/{run}/graph")).await.body;
    let nodes = graph["nodes"].as_array().unwrap();
    let described = |node: &Value| format!("{} {}", node["name"], node["state"]).replace('"', "");
    let described: Vec<String> = nodes.iter().map(described).collect();
    assert_eq!(described, ["greet succeeded", "rest sleeping", "leave pending"]);
    assert_eq!(nodes[1]["depends_on"], json!(["greet"]));
    assert_eq!(graph["state"], "running");
}
