//! Grants for some workflows only.

use axum::http::StatusCode;

use super::people::Office;
use super::rows::{ENDPOINTS, Who};

#[tokio::test]
async fn what_is_allowed_for_another_workflow_is_not_there() {
    let office = Office::open().await;
    for row in ENDPOINTS.iter().filter(|row| row.names_something) {
        let (status, body) = office.tell(row, &["author:acme/billing"], Some("acme")).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{} {}: {body}", row.method, row.template);
    }
    assert_eq!(office.changed().await, "");
}

#[tokio::test]
async fn lists_show_only_what_a_grant_is_for() {
    let office = Office::open().await;
    for path in ["/workflows", "/runs", "/timers", "/schedules", "/backfills", "/triggers"] {
        let row = ENDPOINTS.iter().find(|row| row.method == "GET" && row.template == path).unwrap();
        let (_, none) = office.tell(row, &["viewer:acme/billing"], Some("acme")).await;
        assert!(none.contains("\"items\":[]"), "{path}: {none}");
        let (_, some) = office.tell(row, &["viewer:acme/ord*"], Some("acme")).await;
        assert!(some.contains("orders"), "{path}: {some}");
    }
}

#[tokio::test]
async fn what_a_grant_for_some_workflows_allows_it_allows_for_these() {
    let office = Office::open().await;
    for row in ENDPOINTS.iter().filter(|row| row.names_something && row.who != Who::Admins) {
        let status = office.ask(row, &["author:acme/orders"], Some("acme")).await;
        let refused = matches!(status, StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED);
        assert!(!refused, "{} {}: {status}", row.method, row.template);
    }
}

#[tokio::test]
async fn what_may_be_seen_and_not_done_is_forbidden_and_not_hidden() {
    let office = Office::open().await;
    let operating = |row: &&super::rows::Row| row.who == Who::Operators && row.names_something;
    for row in ENDPOINTS.iter().filter(operating) {
        let status = office.ask(row, &["viewer:acme/orders"], Some("acme")).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{} {}", row.method, row.template);
    }
}

#[tokio::test]
async fn who_may_see_some_workflows_listens_to_these_only() {
    let office = Office::open().await;
    let token = office.token(&["viewer:acme/orders"]);
    let listen = async |path: &str| {
        office.request(&axum::http::Method::GET, path, Some(&token), Some("acme"), "").await.0
    };
    assert_eq!(listen("/events").await, StatusCode::FORBIDDEN, "a listener must name a workflow");
    assert_eq!(listen("/events?workflow=orders").await, StatusCode::OK);
    assert_eq!(listen("/events?workflow=billing").await, StatusCode::NOT_FOUND);
    assert_eq!(listen(&format!("/events?run={}", office.run())).await, StatusCode::OK);
}

#[tokio::test]
async fn bodies_that_name_a_workflow_are_held_to_the_grant() {
    let office = Office::open().await;
    for template in ["/workflows", "/backfills", "/runs/bulk"] {
        let row = ENDPOINTS.iter().find(|row| row.method == "POST" && row.template == template).unwrap();
        let status = office.ask(row, &["author:acme/billing"], Some("acme")).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{template}");
    }
    assert_eq!(office.changed().await, "");
}

#[tokio::test]
async fn custom_types_are_listed_with_the_workflows_that_a_grant_is_for() {
    let office = Office::open().await;
    let workflow =
        |name: &str| format!("name: {name}\ntasks: [{{name: a, type: secret-team.check, queue: remote}}]\n");
    let files = serde_json::json!({"files": [
        {"path": "graphs/orders-check.yaml", "text": workflow("orders-check")},
        {"path": "graphs/taxes.yaml", "text": workflow("taxes")},
        {"path": "types/secret-team.check.yaml", "kind": "type", "text": "name: secret-team.check\n"},
    ]});
    office.post("/workflows", &files.to_string()).await;
    let row = ENDPOINTS.iter().find(|row| row.template == "/task-types").unwrap();
    let (_, all) = office.tell(row, &["viewer:acme"], Some("acme")).await;
    assert!(all.contains("orders-check") && all.contains("taxes"), "{all}");
    let (_, some) = office.tell(row, &["viewer:acme/ord*"], Some("acme")).await;
    assert!(some.contains("orders-check") && !some.contains("taxes"), "{some}");
    for (grant, tenant) in [("viewer:acme/billing", "acme"), ("admin:other", "other")] {
        let (status, none) = office.tell(row, &[grant], Some(tenant)).await;
        assert!(
            status == StatusCode::OK && none.contains("\"http\"") && !none.contains("secret-team"),
            "{grant}: {none}"
        );
    }
}
