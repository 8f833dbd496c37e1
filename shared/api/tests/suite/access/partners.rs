//! What callers may do to each other's runs.

use axum::http::{Method, StatusCode};
use model::{Failure, RunId};
use serde_json::{Value, json};

use super::people::Office;

const PATH: &str = "/workflows/orders/runs";

#[tokio::test]
async fn a_partner_replaces_runs_of_their_own_only() {
    let office = Office::open().await;
    let start = async |who: &str, grant: &str, day: u32, replace: bool| {
        let date = format!("2026-02-{day:02}T03:00:00Z");
        let body = json!({"logical_date": date, "replace_existing": replace}).to_string();
        let token = office.token_of(who, &[grant]);
        let (status, body) = office.request(&Method::POST, PATH, Some(&token), Some("acme"), &body).await;
        (status, serde_json::from_str::<Value>(&body).unwrap()["id"].as_str().unwrap_or_default().to_owned())
    };
    let (_, run) = start("olga", "operator:acme", 1, false).await;
    assert_eq!(start("pat", "partner:acme", 1, true).await.0, StatusCode::FORBIDDEN);
    assert_eq!(office.state_of(&run).await, "running", "it was not cancelled");
    assert_eq!(start("otto", "operator:acme", 1, true).await.0, StatusCode::CREATED);
    assert_eq!(office.state_of(&run).await, "cancelled", "an operator may cancel it anyway");
    let (_, own) = start("pat", "partner:acme", 2, false).await;
    assert_eq!(start("paul", "partner:acme", 2, true).await.0, StatusCode::FORBIDDEN);
    assert_eq!(office.state_of(&own).await, "running");
    assert_eq!(start("pat", "partner:acme", 2, true).await.0, StatusCode::CREATED);
    assert_eq!(office.state_of(&own).await, "cancelled");
}

#[tokio::test]
async fn a_partner_sees_that_a_run_failed_and_not_what_its_task_wrote() {
    let office = Office::open().await;
    office.post("/workflows", "{name: orders-2, tasks: [{name: x, type: noop}]}").await;
    let run = office.post("/workflows/orders-2/runs", "{}").await["id"].as_str().unwrap().to_owned();
    let id: RunId = run.parse().unwrap();
    let failure = Failure::permanent("exit code 1: password is hunter2");
    office.world().report(id, 0, Err(failure)).await;
    for path in [format!("/runs/{run}"), "/runs".into(), "/runs?text=hunter2".into()] {
        for (role, sees) in [("viewer", true), ("operator", true), ("partner", false)] {
            let token = office.token(&[&format!("{role}:acme")]);
            let (status, body) = office.request(&Method::GET, &path, Some(&token), Some("acme"), "").await;
            assert_eq!(status, StatusCode::OK, "{path}");
            assert_eq!(body.contains("hunter2"), sees, "{role} {path}: {body}");
            let found = path.contains("text=") && !sees;
            assert_eq!(body.contains(&run), !found, "nor do they find it by what it wrote: {role} {path}");
        }
    }
    let token = office.token(&["partner:acme"]);
    let (_, body) =
        office.request(&Method::GET, &format!("/runs/{run}"), Some(&token), Some("acme"), "").await;
    assert!(body.contains("\"state\":\"failed\"") && body.contains("the run failed"), "{body}");
}

#[tokio::test]
async fn an_idempotency_key_belongs_to_its_caller() {
    let office = Office::open().await;
    let start = async |who: &str| {
        let token = format!("Bearer {}", office.token_of(who, &["partner:acme"]));
        let headers =
            [("authorization", token.as_str()), ("x-ebb-tenant", "acme"), ("idempotency-key", "order-1")];
        let answer = office.world().send(Method::POST, PATH, &headers, "{}").await;
        let replayed = answer.headers.get("idempotency-replayed").is_some_and(|value| value == "true");
        (answer.status, answer.body["id"].as_str().unwrap().to_owned(), replayed)
    };
    let (created, first, replayed) = start("pat").await;
    assert_eq!((created, replayed), (StatusCode::CREATED, false));
    assert_eq!(start("pat").await, (StatusCode::OK, first.clone(), true));
    let (created, second, replayed) = start("paul").await;
    assert_eq!((created, replayed), (StatusCode::CREATED, false), "another caller's key is another key");
    assert_ne!(first, second);
}

#[tokio::test]
async fn two_tokens_of_one_name_are_two_callers() {
    let office = Office::open().await;
    let workflow = "{name: far, tasks: [{name: x, type: echo, queue: remote, config: {value: 1}}]}";
    office.post("/workflows", workflow).await;
    let run = office.post("/workflows/far/runs", "{}").await["id"].as_str().unwrap().to_owned();
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let made = office.post("/tokens", r#"{"name": "gpu", "role": "worker"}"#).await;
        tokens.push(made["token"].as_str().unwrap().to_owned());
    }
    let call = async |token: &str, path: &str, body: &str| {
        office.request(&Method::POST, path, Some(token), Some("acme"), body).await
    };
    let lease = r#"{"worker": "w", "queue": "remote"}"#;
    let (status, leased) = call(&tokens[0], "/execution/lease", lease).await;
    assert!(status == StatusCode::OK && leased.contains(&run), "{leased}");
    let complete = format!("/execution/{run}/x/1/complete");
    let (status, body) = call(&tokens[1], &complete, r#"{"worker": "w", "output": 7}"#).await;
    assert_eq!(status, StatusCode::CONFLICT, "it reports on what the other one leased: {body}");
    let (status, body) = call(&tokens[0], &complete, r#"{"worker": "w", "output": 7}"#).await;
    assert_eq!(status, StatusCode::OK, "{body}");
}

#[tokio::test]
async fn a_tenant_sees_and_stops_its_own_workers_and_no_others() {
    let office = Office::open().await;
    let call = async |method: Method, grant: &str, path: &str, body: &str| {
        let tenant = grant.split_once(':').unwrap().1;
        office.request(&method, path, Some(&office.token(&[grant])), Some(tenant), body).await
    };
    for tenant in ["acme", "other"] {
        let lease = format!(r#"{{"worker": "of-{tenant}", "queue": "remote"}}"#);
        let leased = call(Method::POST, &format!("worker:{tenant}"), "/execution/lease", &lease).await;
        assert_eq!(leased.0, StatusCode::OK, "{}", leased.1);
    }
    let (_, listed) = call(Method::GET, "viewer:acme", "/workers", "").await;
    assert!(listed.contains("of-acme") && !listed.contains("of-other"), "{listed}");
    let (_, counted) = call(Method::GET, "viewer:acme", "/workers/stats", "").await;
    assert!(counted.contains(r#""workers":1"#), "{counted}");
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let drain = format!("/workers/{}/drain", listed["items"][0]["id"].as_str().unwrap());
    let (status, body) = call(Method::POST, "operator:other", &drain, "{}").await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{body}");
    let (status, body) = call(Method::POST, "operator:acme", &drain, "{}").await;
    assert_eq!(status, StatusCode::OK, "{body}");
}

#[tokio::test]
async fn a_worker_gets_nothing_of_another_tenant_or_workflow() {
    let office = Office::open().await;
    let workflow = "{name: billing, tasks: [{name: x, type: echo, queue: remote, config: {value: 1}}]}";
    office.post("/workflows", workflow).await;
    let run = office.post("/workflows/billing/runs", "{}").await["id"].as_str().unwrap().to_owned();
    let call = async |grant: &str, tenant: &str, path: &str, body: &str| {
        office.request(&Method::POST, path, Some(&office.token(&[grant])), Some(tenant), body).await
    };
    let lease = r#"{"worker": "w", "queue": "remote", "limit": 9}"#;
    for (grant, tenant) in [("worker:other", "other"), ("worker:acme/orders", "acme")] {
        let (status, leased) = call(grant, tenant, "/execution/lease", lease).await;
        assert!(status == StatusCode::OK && leased.contains(r#""items":[]"#), "{grant}: {status} {leased}");
    }
    let (status, leased) = call("worker:acme/billing", "acme", "/execution/lease", lease).await;
    assert!(status == StatusCode::OK && leased.contains(&run), "{leased}");
    for (grant, tenant) in [("worker:other", "other"), ("worker:acme/orders", "acme")] {
        for (report, body) in [
            ("complete", r#"{"worker": "w"}"#),
            ("fail", r#"{"worker": "w", "message": "x"}"#),
            ("release", r#"{"worker": "w"}"#),
            ("checkpoint", r#"{"worker": "w", "checkpoint": 1}"#),
        ] {
            let (status, body) = call(grant, tenant, &format!("/execution/{run}/x/1/{report}"), body).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{report} by {grant}: {body}");
        }
    }
    let heartbeat = r#"{"worker": "w"}"#;
    let (status, body) = call("worker:other", "other", "/execution/heartbeat", heartbeat).await;
    assert!(status == StatusCode::OK && body.contains(r#""held":[]"#), "{status} {body}");
}
