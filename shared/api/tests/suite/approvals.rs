//! Signals, approvals and refusals: who may, what fits, and what they do.

use axum::http::StatusCode;
use serde_json::json;

use crate::world::World;

const WAITING: &str = "
name: waiting
tasks:
  - {name: wait, type: wait_for_signal, config: {signal: go}}
  - name: ask
    type: approval
    depends_on: [wait]
    config: {fields: {amount: {type: number, required: true}}}
  - {name: closed, type: approval, depends_on: [wait], config: {approvers: [eve@example.com]}}
";

#[tokio::test]
async fn marking_an_approval_needs_an_approver_as_answering_it_does() {
    let (world, path) = waiting().await;
    for _ in 0..2 {
        for mark in ["succeed", "fail"] {
            let refused = world.post(&format!("{path}/tasks/closed/{mark}"), "{}").await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{mark}: {}", refused.body);
            assert!(
                refused.body["message"].as_str().unwrap().contains("not an approver"),
                "{}",
                refused.body
            );
        }
        // Neither before it waits nor while it does.
        world.post(&format!("{path}/signals/go"), "").await;
    }
    assert_eq!(state(&world, &path, "closed").await, "sleeping");
    assert_eq!(
        world.post(&format!("{path}/tasks/ask/succeed"), "{}").await.status,
        StatusCode::OK,
        "anyone may"
    );
}

/// A run that waits for the signal `go`, and the path of it.
async fn waiting() -> (World, String) {
    let world = World::new().await;
    assert_eq!(world.post("/workflows", WAITING).await.status, StatusCode::CREATED);
    let started = world.post("/workflows/waiting/runs", "").await;
    let path = format!("/runs/{}", started.body["id"].as_str().unwrap());
    (world, path)
}

async fn state(world: &World, path: &str, task: &str) -> String {
    let task = world.get(&format!("{path}/tasks/{task}")).await;
    task.body["state"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_signal_s_payload_becomes_the_output_of_who_waited_for_it() {
    let (world, path) = waiting().await;
    assert_eq!(world.post(&format!("{path}/signals/go"), r#"{"n": 1}"#).await.status, StatusCode::OK);
    let task = world.get(&format!("{path}/tasks/wait")).await;
    assert_eq!((&task.body["state"], &task.body["output"]), (&json!("succeeded"), &json!({"n": 1})));
}

#[tokio::test]
async fn an_approval_takes_what_was_asked_for_and_nothing_else() {
    let (world, path) = waiting().await;
    let approve = format!("{path}/tasks/ask/approve");
    assert_eq!(
        world.post(&approve, r#"{"fields": {"amount": 1}}"#).await.status,
        StatusCode::CONFLICT,
        "too early"
    );
    world.post(&format!("{path}/signals/go"), "").await;
    for (body, word) in [
        ("", "amount"),
        (r#"{"fields": {"amount": "x"}}"#, "amount"),
        (r#"{"fields": {"amuont": 1}}"#, "amuont"),
    ] {
        let refused = world.post(&approve, body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        assert!(refused.body["message"].as_str().unwrap().contains(word), "{}", refused.body);
    }
    assert_eq!(world.post(&approve, r#"{"fields": {"amount": 5}}"#).await.status, StatusCode::OK);
    assert_eq!(state(&world, &path, "ask").await, "succeeded");
    assert_eq!(
        world.post(&approve, r#"{"fields": {"amount": 5}}"#).await.status,
        StatusCode::CONFLICT,
        "once"
    );
}

#[tokio::test]
async fn only_those_named_may_answer_and_only_an_approval_can_be_answered() {
    let (world, path) = waiting().await;
    world.post(&format!("{path}/signals/go"), "").await;
    let closed = world.post(&format!("{path}/tasks/closed/approve"), "").await;
    assert_eq!(closed.status, StatusCode::FORBIDDEN, "{}", closed.body);
    let wrong = world.post(&format!("{path}/tasks/wait/reject"), "").await;
    assert_eq!(wrong.status, StatusCode::CONFLICT, "{}", wrong.body);
    assert_eq!(state(&world, &path, "closed").await, "sleeping");
}

#[tokio::test]
async fn a_rejection_fails_the_task_with_who_and_why() {
    let (world, path) = waiting().await;
    world.post(&format!("{path}/signals/go"), "").await;
    let rejected = world.post(&format!("{path}/tasks/ask/reject"), r#"{"reason": "too much"}"#).await;
    assert_eq!(rejected.status, StatusCode::OK);
    let task = world.get(&format!("{path}/tasks/ask")).await;
    assert_eq!(task.body["error"]["message"], "ada@example.com did not approve: too much");
}

#[tokio::test]
async fn a_signal_that_is_no_json_or_comes_too_late_is_refused() {
    let (world, path) = waiting().await;
    assert_eq!(world.post(&format!("{path}/signals/go"), "{").await.status, StatusCode::BAD_REQUEST);
    world.post(&format!("{path}/cancel"), "").await;
    assert_eq!(world.post(&format!("{path}/signals/go"), "").await.status, StatusCode::CONFLICT);
}
