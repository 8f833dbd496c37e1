//! Who asks too often, and who has too much.

use auth::{Authenticator, Policy};
use axum::http::{Method, StatusCode, header};
use ebbflow_api::Access;
use ebbflow_api::access::Rates;
use serde_json::json;

use crate::world::{Answer, HELLO, ISSUER, World, all_are_admins, now, sign};

async fn world(rates: Rates) -> World {
    let verifier = ISSUER.verifier("api");
    let policy = Policy::read("ada@example.com=viewer, bob@example.com=viewer, cid@example.com=viewer:acme");
    World::with_access(Access::new(Authenticator::new([verifier.into()]), policy.unwrap()).with_rates(rates))
        .await
}

async fn ask(world: &World, who: &str) -> Answer {
    let token = sign(&json!({
        "iss": ISSUER.url(), "sub": who, "aud": "api", "email": format!("{who}@example.com"),
        "email_verified": true, "exp": now().timestamp() + 60,
    }));
    world.send(Method::GET, "/runs", &[("authorization", &format!("Bearer {token}"))], "").await
}

#[tokio::test]
async fn a_caller_beyond_the_rate_gets_a_time_to_retry_and_others_are_not_delayed() {
    let world = world(Rates { caller: Some(2), tenant: None }).await;
    for _ in 0..4 {
        assert_eq!(ask(&world, "ada").await.status, StatusCode::OK);
    }
    let refused = ask(&world, "ada").await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.body["error_code"], "too_many_requests");
    assert_eq!(refused.headers[header::RETRY_AFTER], "1");
    assert!(refused.body["message"].as_str().unwrap().contains("2 requests per second"), "{}", refused.body);
    assert_eq!(ask(&world, "bob").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_tenant_has_a_rate_as_a_whole() {
    let world = world(Rates { caller: None, tenant: Some(2) }).await;
    for who in ["ada", "bob", "ada", "bob"] {
        assert_eq!(ask(&world, who).await.status, StatusCode::OK);
    }
    assert_eq!(ask(&world, "ada").await.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(ask(&world, "bob").await.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(ask(&world, "cid").await.status, StatusCode::OK, "another tenant is not held up");
}

fn check_refused(answer: &Answer, quota: &str) {
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS, "{}", answer.body);
    assert_eq!(answer.headers[header::RETRY_AFTER], "10");
    assert!(answer.body["message"].as_str().unwrap().contains(quota), "{}", answer.body);
}

#[tokio::test]
async fn a_tenant_with_enough_unfinished_runs_starts_no_more_and_others_are_not_held_up() {
    let world = World::with_run_quota(2).await;
    world.runtime.store().tenant("acme", now()).await.unwrap();
    let acme = [("x-ebb-tenant", "acme")];
    assert_eq!(world.post("/workflows", HELLO).await.status, StatusCode::CREATED);
    assert_eq!(world.send(Method::POST, "/workflows", &acme, HELLO).await.status, StatusCode::CREATED);
    for _ in 0..2 {
        assert_eq!(world.post("/workflows/hello/runs", "{}").await.status, StatusCode::CREATED);
    }
    for _ in 0..2 {
        check_refused(&world.post("/workflows/hello/runs", "{}").await, "EBB_QUOTA_RUNS");
    }
    let other = world.send(Method::POST, "/workflows/hello/runs", &acme, "{}").await;
    assert_eq!(other.status, StatusCode::CREATED, "{}", other.body);
    assert_eq!(world.get("/runs").await.body["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_request_that_was_accepted_needs_no_room_the_second_time() {
    let world = World::with_run_quota(1).await;
    assert_eq!(world.post("/workflows", HELLO).await.status, StatusCode::CREATED);
    let key = [("idempotency-key", "once")];
    let start = async |headers: &[(&str, &str)]| {
        world.send(Method::POST, "/workflows/hello/runs", headers, "{}").await
    };
    let first = start(&key).await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.body);
    check_refused(&start(&[]).await, "EBB_QUOTA_RUNS");
    let again = start(&key).await;
    assert_eq!((again.status, &again.body["id"]), (StatusCode::OK, &first.body["id"]));
}

#[tokio::test]
async fn a_run_that_replaces_another_is_refused_before_that_one_is_cancelled_or_finds_room() {
    let body = json!({"logical_date": "2026-01-01T00:00:00Z", "replace_existing": true}).to_string();
    for (quota, replaced) in [(1, false), (2, true)] {
        let world = World::with_run_quota(quota).await;
        assert_eq!(world.post("/workflows", HELLO).await.status, StatusCode::CREATED);
        let first = world.post("/workflows/hello/runs", body.clone()).await;
        assert_eq!(first.status, StatusCode::CREATED, "{}", first.body);
        let second = world.post("/workflows/hello/runs", body.clone()).await;
        assert_eq!(second.status == StatusCode::CREATED, replaced, "{}", second.body);
        let first = world.get(&format!("/runs/{}", first.body["id"].as_str().unwrap())).await.body;
        assert_eq!(first["state"] == "cancelled", replaced, "{first}");
    }
}

#[tokio::test]
async fn a_finished_run_continues_only_if_its_tenant_has_room() {
    let world = World::with_run_quota(1).await;
    let run = world.play(HELLO, json!({})).await;
    let path = |action: &str| format!("/runs/{run}/{action}");
    let cancelled = world.post(&path("cancel"), "{}").await;
    assert_eq!(cancelled.body["state"], "cancelled", "{}", cancelled.body);
    world.advance(2);
    let other = world.post("/workflows/hello/runs", "{}").await;
    assert_eq!(other.status, StatusCode::CREATED, "{}", other.body);
    for action in ["retry", "tasks/greet/clear", "tasks/greet/succeed", "tasks/greet/fail"] {
        check_refused(&world.post(&path(action), "{}").await, "EBB_QUOTA_RUNS");
    }
    let all = json!({"filter": {"state": "cancelled"}, "action": "retry"}).to_string();
    let bulk = world.post("/runs/bulk", all.clone()).await.body;
    assert_eq!((&bulk["applied"], &bulk["failed"]), (&json!(0), &json!(1)), "{bulk}");
    let message = bulk["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("EBB_QUOTA_RUNS"), "{message}");
    assert_eq!(world.get(&format!("/runs/{run}")).await.body["state"], "cancelled");
    let other = other.body["id"].as_str().unwrap();
    let cleared = world.post(&format!("/runs/{other}/tasks/greet/clear"), "{}").await;
    assert_eq!(cleared.status, StatusCode::OK, "an unfinished run has its room: {}", cleared.body);
    world.post(&format!("/runs/{other}/cancel"), "{}").await;
    world.advance(2);
    assert_eq!(world.post("/runs/bulk", all).await.body["applied"], 1, "one of the two");
}

#[tokio::test]
async fn a_tenant_with_enough_workflows_registers_no_more_but_changes_those_it_has() {
    let world = World::with_access(all_are_admins().with_workflow_quota(Some(2))).await;
    let named = |name: &str| HELLO.replacen("hello", name, 1);
    for name in ["hello", "second"] {
        assert_eq!(world.post("/workflows", named(name)).await.status, StatusCode::CREATED);
    }
    check_refused(&world.post("/workflows", named("third")).await, "EBB_QUOTA_WORKFLOWS");
    let changed = named("second").replace("Greets.", "Greets again.");
    assert_eq!(world.post("/workflows", changed).await.status, StatusCode::CREATED);
    assert_eq!(world.get("/workflows").await.body["items"].as_array().unwrap().len(), 2);
}
