//! What every change has in common: it is done once for a key, and the audit log tells of it.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use host::RequestDeadline;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt;

use crate::world::{Answer, World, token};

async fn post(world: &World, path: &str, key: &str, body: &str) -> Answer {
    world.send(Method::POST, path, &[("idempotency-key", key)], body.to_owned()).await
}

async fn events(world: &World, run: &model::RunId) -> usize {
    let events = world.get(&format!("/runs/{run}/events?limit=100")).await;
    events.body["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn the_same_request_with_the_same_key_is_done_once_and_answered_alike() {
    let world = World::with_hello().await;
    let run = world.start().await;
    let path = format!("/runs/{run}/pause");
    let first = post(&world, &path, "pause-1", "{\"reason\": \"lunch\"}").await;
    assert_eq!((first.status, &first.body["state"]), (StatusCode::OK, &json!("paused")));
    assert!(!first.headers.contains_key("idempotency-replayed"));
    world.post(&format!("/runs/{run}/resume"), "").await;
    let before = events(&world, &run).await;
    let again = post(&world, &path, "pause-1", "{\"reason\": \"lunch\"}").await;
    assert_eq!((again.status, &again.body), (first.status, &first.body));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(again.headers["content-type"], first.headers["content-type"]);
    assert_eq!(events(&world, &run).await, before, "nothing was done again");
}

#[tokio::test]
async fn a_refusal_is_kept_like_any_other_answer() {
    let world = World::with_hello().await;
    let run = world.start().await;
    let path = format!("/runs/{run}/resume");
    let refused = post(&world, &path, "k", "").await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    world.post(&format!("/runs/{run}/pause"), "").await;
    assert_eq!(post(&world, &path, "k", "").await.body, refused.body);
}

#[tokio::test]
async fn a_key_is_for_one_request_only() {
    let world = World::with_hello().await;
    let run = world.start().await;
    post(&world, &format!("/runs/{run}/pause"), "k", "").await;
    for (path, body) in
        [(format!("/runs/{run}/pause"), "{\"reason\": \"x\"}"), (format!("/runs/{run}/resume"), "")]
    {
        let refused = post(&world, &path, "k", body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(refused.body["error_code"], "idempotency_key_reused");
    }
    let long = "x".repeat(256);
    for bad in ["", &long] {
        assert_eq!(
            post(&world, &format!("/runs/{run}/pause"), bad, "").await.status,
            StatusCode::BAD_REQUEST
        );
    }
}

#[tokio::test]
async fn of_many_that_ask_at_once_with_one_key_one_is_served() {
    let world = World::with_hello().await;
    let run = world.start().await;
    let before = events(&world, &run).await;
    let path = format!("/runs/{run}/pause");
    let all = futures::future::join_all((0..8).map(|_| post(&world, &path, "k", ""))).await;
    assert!(all.iter().all(|answer| [StatusCode::OK, StatusCode::CONFLICT].contains(&answer.status)));
    assert!(all.iter().any(|answer| answer.status == StatusCode::OK));
    assert_eq!(events(&world, &run).await, before + 1, "it was paused once");
}

async fn audit(world: &World, query: &str) -> Vec<Value> {
    let answer = world.get(&format!("/audit{query}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    answer.body["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn every_change_is_in_the_audit_log_with_who_what_and_how_it_stood() {
    let world = World::with_hello().await;
    let run = world.start().await;
    let headers = [("user-agent", "test"), ("x-forwarded-for", "203.0.113.7"), ("idempotency-key", "k")];
    world.send(Method::POST, &format!("/runs/{run}/cancel"), &headers, "").await;
    let all = audit(&world, "").await;
    let actions: Vec<_> = all.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["runs_post_cancel", "runs_post_start", "workflows_post_register"], "newest first");
    let entry = &all[0];
    assert_eq!((&entry["actor"], &entry["status"]), (&json!("ada@example.com"), &json!(200)));
    assert_eq!(entry["target"], json!(format!("/api/v1/runs/{run}/cancel")));
    assert_eq!(
        (&entry["agent"], &entry["forwarded"], &entry["key"]),
        (&json!("test"), &json!("203.0.113.7"), &json!("k"))
    );
    assert_eq!(entry["before"], json!({"state": "running"}));
    assert_eq!(entry["after"]["state"], "cancelled");
}

#[tokio::test]
async fn what_was_refused_is_noted_and_what_only_reads_is_not() {
    let world = World::with_hello().await;
    let run = world.start().await;
    world.get("/runs").await;
    world.post("/workflows/validate", crate::world::HELLO).await;
    world.post(&format!("/runs/{run}/resume"), "").await;
    let all = audit(&world, "?limit=1").await;
    assert_eq!((&all[0]["action"], &all[0]["status"]), (&json!("operate_post_resume"), &json!(409)));
    assert!(all[0]["after"]["error_code"].as_str().is_some());
    let stranger = format!("Bearer {}", token("push", 60));
    world.send(Method::POST, &format!("/runs/{run}/cancel"), &[("authorization", &stranger)], "").await;
    assert_eq!(audit(&world, "").await.len(), 3, "nobody is noted whom nobody knows");
}

#[tokio::test]
async fn the_audit_log_is_searched_paged_and_exported() {
    let world = World::with_hello().await;
    for _ in 0..3 {
        world.start().await;
    }
    assert_eq!(audit(&world, "?action=runs_post_start").await.len(), 3);
    assert_eq!(audit(&world, "?text=hello/runs").await.len(), 3);
    assert_eq!(audit(&world, "?actor=bob").await.len(), 0);
    assert_eq!(audit(&world, "?from=2030-01-01T00:00:00Z").await.len(), 0);
    assert_eq!(audit(&world, "?to=2030-01-01T00:00:00Z").await.len(), 4);
    let first = world.get("/audit?limit=3").await;
    let rest = audit(&world, &format!("?cursor={}", first.body["next_cursor"].as_str().unwrap())).await;
    assert_eq!(rest.len(), 1);
    let export = world.open("/audit/export", &[]).await;
    assert_eq!(export.headers()["content-type"], "application/x-ndjson");
    let text = axum::body::to_bytes(export.into_body(), usize::MAX).await.unwrap();
    let lines: Vec<Value> =
        std::str::from_utf8(&text).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, audit(&world, "").await);
}

#[tokio::test]
async fn a_change_that_is_given_up_is_recorded_and_keeps_its_key_for_a_while() {
    let world = World::with_hello().await;
    let run = world.start().await;
    let before = events(&world, &run).await;
    let mut request = Request::post(format!("/api/v1/runs/{run}/pause"))
        .header("authorization", format!("Bearer {}", token("api", 3600)))
        .header("idempotency-key", "late")
        .body(Body::empty())
        .unwrap();
    // The time is long up: what waits for the database gets no more of it.
    let long_ago = Instant::now().checked_sub(Duration::from_secs(60)).unwrap();
    request.extensions_mut().insert(RequestDeadline::at(long_ago));
    let answer = world.router().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(events(&world, &run).await, before, "it was not paused");
    let entry = &audit(&world, "?limit=1").await[0];
    assert_eq!(
        (&entry["action"], &entry["status"], &entry["after"]["error_code"]),
        (&json!("operate_post_pause"), &json!(503), &json!("outcome_unknown"))
    );
    let again = post(&world, &format!("/runs/{run}/pause"), "late", "").await;
    assert_eq!(again.body["error_code"], "request_in_progress", "it may have been made: {}", again.body);
}
