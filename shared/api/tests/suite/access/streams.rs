//! Event streams: whose events they carry, and how soon they end when a permission does.

use std::time::Duration;

use axum::body::BodyDataStream;
use axum::http::{Method, StatusCode};
use futures::StreamExt;
use serde_json::{Value, json};

use super::people::{Office, ROLES};
use crate::world::{World, sign};

/// What does not happen within this never happens. A stream lasts for a quarter of an hour otherwise.
const DEADLINE: Duration = Duration::from_secs(60);

async fn open(world: &World, path: &str, token: &str) -> BodyDataStream {
    let bearer = format!("Bearer {token}");
    let response = world.open(path, &[("authorization", &bearer), ("x-ebb-tenant", "acme")]).await;
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    response.into_body().into_data_stream()
}

/// Reads on until a text arrives. Returns everything that was read.
async fn read_until(stream: &mut BodyDataStream, text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        let chunk = tokio::time::timeout(DEADLINE, stream.next()).await.expect("something is sent");
        read.push_str(std::str::from_utf8(&chunk.expect("it goes on").unwrap()).unwrap());
    }
    read
}

async fn read_to_end(mut stream: BodyDataStream) {
    let end = async { while stream.next().await.is_some() {} };
    tokio::time::timeout(DEADLINE, end).await.expect("the stream ends with the permission");
}

#[tokio::test]
async fn a_stream_ends_soon_after_its_token_or_grant_is_revoked() {
    let office = Office::open().await;
    let world = office.world();
    let paths = ["/events".to_owned(), format!("/runs/{}/tasks/a/logs/follow", office.run())];
    for path in &paths {
        let made = office.post("/tokens", r#"{"name": "ci", "role": "viewer"}"#).await;
        let mut stream = open(world, path, made["token"].as_str().unwrap()).await;
        read_until(&mut stream, "listening").await;
        office.delete(&format!("/tokens/{}", made["id"].as_str().unwrap())).await;
        read_to_end(stream).await;
        let grant = office.post("/grants", r#"{"who": "bob@example.com", "role": "viewer"}"#).await;
        let bob = json!({"email": "bob@example.com", "email_verified": true});
        let mut stream = open(world, path, &office.token_with(&bob)).await;
        read_until(&mut stream, "listening").await;
        office.delete(&format!("/grants/{}", grant["id"].as_str().unwrap())).await;
        read_to_end(stream).await;
    }
}

#[tokio::test]
async fn a_stream_ends_soon_after_its_token_expires() {
    let world = World::on_machine_time().await;
    let expires = world.runtime.clock().now().timestamp() + 3;
    let claims = json!({
        "iss": crate::world::ISSUER.url(), "sub": "1", "aud": "api", "email": "ada@example.com",
        "email_verified": true, "exp": expires,
    });
    let bearer = format!("Bearer {}", sign(&claims));
    let response = world.open("/events", &[("authorization", &bearer)]).await;
    assert_eq!(response.status(), StatusCode::OK);
    read_to_end(response.into_body().into_data_stream()).await;
}

#[tokio::test]
async fn a_stream_carries_what_its_listener_may_read_and_nothing_else() {
    let office = Office::open().await;
    let world = office.world();
    office
        .post("/workflows", "{name: billing, tasks: [{name: a, type: sleep, config: {duration: 1h}}]}")
        .await;
    let start = async |workflow: &str| -> String {
        let run: Value = office.post(&format!("/workflows/{workflow}/runs"), "{}").await;
        run["id"].as_str().unwrap().to_owned()
    };
    for role in ROLES {
        let reads = ["viewer", "operator", "author", "admin"].contains(&role);
        let of_other = office.token(&[&format!("{role}:other")]);
        let of_orders = office.token(&[&format!("{role}:acme/orders")]);
        let of_acme = office.token(&[&format!("{role}:acme")]);
        let status = async |path: &str, token: &str, tenant: &str| {
            office.request(&Method::GET, path, Some(token), Some(tenant), "").await.0
        };
        assert_eq!(status("/events", &of_other, "acme").await, StatusCode::FORBIDDEN, "{role}");
        if !reads {
            assert_eq!(status("/events", &of_acme, "acme").await, StatusCode::FORBIDDEN, "{role}");
            continue;
        }
        let hidden = status(&format!("/events?run={}", office.run()), &of_other, "other").await;
        assert_eq!(hidden, StatusCode::NOT_FOUND, "{role}");
        let mut all = open(world, "/events", &of_acme).await;
        let mut some = open(world, "/events?workflow=orders", &of_orders).await;
        let (billing, orders) = (start("billing").await, start("orders").await);
        read_until(&mut all, &billing).await;
        let read = read_until(&mut some, &orders).await;
        assert!(!read.contains(&billing) && !read.contains("billing"), "{role}: {read}");
    }
}
