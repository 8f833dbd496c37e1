//! Service tokens and grants over the API.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::people::Office;

struct Answer {
    status: StatusCode,
    body: Value,
    text: String,
}

async fn send(
    office: &Office,
    method: Method,
    path: &str,
    token: &str,
    tenant: &str,
    body: &Value,
) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, text) = office.request(&method, path, Some(token), Some(tenant), &body).await;
    Answer { status, body: serde_json::from_str(&text).unwrap(), text }
}

async fn made(office: &Office, body: Value) -> (String, String) {
    let admin = office.token(&["admin:*"]);
    let answer = send(office, Method::POST, "/tokens", &admin, "acme", &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    let field = |name: &str| answer.body[name].as_str().unwrap().to_owned();
    (field("token"), field("id"))
}

#[tokio::test]
async fn a_service_token_is_shown_once_and_works_until_it_is_revoked() {
    let office = Office::open().await;
    let admin = office.token(&["admin:acme"]);
    let (token, id) = made(&office, json!({"name": "ci", "role": "viewer"})).await;
    assert!(token.starts_with("ebb_"));
    let list = send(&office, Method::GET, "/tokens", &admin, "acme", &Value::Null).await;
    assert!(!list.text.contains(&token) && list.text.contains("\"ci\""), "{}", list.text);
    let read = async || send(&office, Method::GET, "/workflows", &token, "acme", &Value::Null).await.status;
    assert_eq!(read().await, StatusCode::OK);
    let write = send(&office, Method::POST, "/workflows", &token, "acme", &json!({})).await;
    assert_eq!(write.status, StatusCode::FORBIDDEN);
    let path = format!("/tokens/{id}");
    let others = office.token(&["admin:other"]);
    let refused = send(&office, Method::DELETE, &path, &others, "other", &Value::Null).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND, "another tenant's token is not there");
    assert_eq!(read().await, StatusCode::OK);
    let revoked = send(&office, Method::DELETE, &path, &admin, "acme", &Value::Null).await;
    assert_eq!((revoked.status, &revoked.body["state"]), (StatusCode::OK, &json!("revoked")));
    assert_eq!(read().await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_service_token_reaches_no_further_than_its_scope() {
    let office = Office::open().await;
    let (token, _) = made(&office, json!({"name": "ci", "role": "operator", "workflows": "bill*"})).await;
    let list = send(&office, Method::GET, "/runs", &token, "acme", &Value::Null).await;
    assert_eq!(list.body["items"], json!([]));
    let run = format!("/runs/{}/cancel", office.run());
    let cancel = send(&office, Method::POST, &run, &token, "acme", &json!({})).await;
    assert_eq!(cancel.status, StatusCode::NOT_FOUND);
    let other = send(&office, Method::GET, "/runs", &token, "default", &Value::Null).await;
    assert_eq!(other.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn nobody_gives_more_than_they_have() {
    let office = Office::open().await;
    let admin = office.token(&["admin:acme"]);
    for path in ["/tokens", "/grants"] {
        for tenant in ["*", "other", "new"] {
            let body = match path {
                "/tokens" => json!({"name": "x", "role": "viewer", "tenant": tenant}),
                _ => json!({"who": "@x.org", "role": "viewer", "tenant": tenant}),
            };
            let answer = send(&office, Method::POST, path, &admin, "acme", &body).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path} {tenant}: {}", answer.text);
        }
    }
    let (everywhere, id) = made(&office, json!({"name": "all", "role": "admin", "tenant": "*"})).await;
    let refused = send(&office, Method::DELETE, &format!("/tokens/{id}"), &admin, "acme", &Value::Null).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    let read = send(&office, Method::GET, "/dead-letters", &everywhere, "acme", &Value::Null).await;
    assert_eq!(read.status, StatusCode::OK);
}

#[tokio::test]
async fn what_makes_no_sense_in_a_token_or_grant_is_refused() {
    let office = Office::open().await;
    let admin = office.token(&["admin:*"]);
    for (path, body) in [
        ("/tokens", json!({"name": "", "role": "viewer"})),
        ("/tokens", json!({"name": "x", "role": "king"})),
        ("/tokens", json!({"name": "x", "role": "viewer", "days": 0})),
        ("/tokens", json!({"name": "x", "role": "viewer", "days": 9999})),
        ("/tokens", json!({"name": "x", "role": "viewer", "workflows": "a b"})),
        ("/tokens", json!({"name": "x", "role": "viewer", "tenant": "a/b"})),
        ("/grants", json!({"who": "bob", "role": "viewer"})),
    ] {
        let answer = send(&office, Method::POST, path, &admin, "acme", &body).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_grant_lets_somebody_in_until_it_is_taken_back() {
    let office = Office::open().await;
    let admin = office.token(&["admin:acme"]);
    let bob = office.token(&["night-shift"]);
    let read = async || send(&office, Method::GET, "/workflows", &bob, "acme", &Value::Null).await.status;
    assert_eq!(read().await, StatusCode::FORBIDDEN);
    let body = json!({"who": "group:night-shift", "role": "viewer"});
    let given = send(&office, Method::POST, "/grants", &admin, "acme", &body).await;
    assert_eq!(given.status, StatusCode::CREATED, "{}", given.text);
    let again = send(&office, Method::POST, "/grants", &admin, "acme", &body).await;
    assert_eq!((again.status, &again.body["id"]), (StatusCode::OK, &given.body["id"]));
    assert_eq!(read().await, StatusCode::OK);
    let path = format!("/grants/{}", given.body["id"].as_str().unwrap());
    let gone = send(&office, Method::DELETE, &path, &admin, "acme", &Value::Null).await;
    assert_eq!(gone.status, StatusCode::OK);
    assert_eq!(read().await, StatusCode::FORBIDDEN);
}
