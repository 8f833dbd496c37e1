//! Event streams: whose events they carry, and how soon they end when a permission does.

use axum::body::BodyDataStream;
use axum::http::{Method, StatusCode};
use futures::StreamExt;
use model::{TaskIndex, TaskKey};
use serde_json::{Value, json};
use store::{LogChunk, LogLine};

use super::people::{Office, ROLES};
use crate::world::{World, now, sign};

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
        let chunk = testkit::within_deadline("something is sent", stream.next()).await;
        read.push_str(std::str::from_utf8(&chunk.expect("it goes on").unwrap()).unwrap());
    }
    read
}

async fn read_to_end(mut stream: BodyDataStream) {
    // A stream lasts for a quarter of an hour otherwise, longer than a test waits.
    let end = async { while stream.next().await.is_some() {} };
    testkit::within_deadline("the stream ends with the permission", end).await;
}

#[tokio::test]
async fn a_stream_ends_soon_after_its_token_or_grant_is_revoked() {
    let office = Office::open().await;
    let world = office.world();
    let run = office.run();
    let paths =
        ["/events".to_owned(), format!("/events?run={run}"), format!("/runs/{run}/tasks/a/logs/follow")];
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
    let world = World::new().await;
    let expires = world.now().timestamp() + 3600;
    let claims = json!({
        "iss": crate::world::ISSUER.url(), "sub": "1", "aud": "api", "email": "ada@example.com",
        "email_verified": true, "exp": expires,
    });
    let bearer = format!("Bearer {}", sign(&claims));
    let response = world.open("/events", &[("authorization", &bearer)]).await;
    assert_eq!(response.status(), StatusCode::OK);
    let mut stream = response.into_body().into_data_stream();
    read_until(&mut stream, "listening").await;
    world.advance(2 * 3600);
    read_to_end(stream).await;
}

#[tokio::test]
async fn a_followed_log_has_the_lines_of_its_task_for_those_who_may_read_them() {
    let office = Office::open().await;
    let world = office.world();
    let start = async || office.post("/workflows/orders/runs", "{}").await["id"].as_str().unwrap().to_owned();
    let (own, foreign) = (start().await, start().await);
    for (run, text) in [(&own, "line-of-this-task"), (&foreign, "line-of-another-run")] {
        let key = TaskKey { run: run.parse().unwrap(), task: TaskIndex(0) };
        let line = LogLine { at: now(), stream: "stdout".into(), level: "info".into(), line: text.into() };
        world.store().append_log(&LogChunk { key, attempt: 1, first: 0, lines: vec![line] }).await.unwrap();
    }
    let path = format!("/runs/{own}/tasks/a/logs/follow");
    for role in ROLES {
        let reads = ["viewer", "operator", "author", "admin"].contains(&role);
        let status = async |grant: &str, tenant: &str| {
            let token = office.token(&[&format!("{role}:{grant}")]);
            world
                .open(&path, &[("authorization", &format!("Bearer {token}")), ("x-ebb-tenant", tenant)])
                .await
                .status()
        };
        assert_eq!(status("other", "acme").await, StatusCode::FORBIDDEN, "{role}");
        assert!(status("other", "other").await.is_client_error(), "{role}");
        assert!(status("acme/billing", "acme").await.is_client_error(), "{role}");
        if !reads {
            assert_eq!(status("acme", "acme").await, StatusCode::FORBIDDEN, "{role}");
            continue;
        }
        let mut stream = open(world, &path, &office.token(&[&format!("{role}:acme/orders")])).await;
        let read = read_until(&mut stream, "line-of-this-task").await;
        assert!(!read.contains("line-of-another-run"), "{role}: {read}");
    }
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
