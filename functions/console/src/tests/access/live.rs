//! The event stream of open pages.

use axum::body::BodyDataStream;
use futures::StreamExt;

use super::*;

/// Reads on until a text arrives, or to the end without one. Returns everything that was read.
async fn read_until(stream: &mut BodyDataStream, text: Option<&str>) -> String {
    let mut read = String::new();
    let reading = async {
        while text.is_none_or(|text| !read.contains(text)) {
            let Some(chunk) = stream.next().await else { return assert_eq!(text, None, "the stream ended") };
            read.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
    };
    testkit::within_deadline("the stream sends what it should, or ends", reading).await;
    read
}

#[tokio::test]
async fn a_live_page_carries_what_its_visitor_may_read_and_ends_with_the_permission() {
    let office = Office::open().await;
    let made =
        office.admin("/api/v1/tokens", r#"{"name": "wall", "role": "viewer", "workflows": "orders"}"#).await;
    let made: Value = serde_json::from_str(&made.2).unwrap();
    for token in [token(&["viewer:acme/orders"]), made["token"].as_str().unwrap().to_owned()] {
        let live = office.request(Method::GET, "/live?workflow=orders", "", &token, Some("acme")).await;
        assert_eq!(live.status(), StatusCode::OK);
        let mut live = live.into_body().into_data_stream();
        read_until(&mut live, Some("listening")).await;
        assert_eq!(office.admin("/api/v1/workflows/billing/runs", "{}").await.0, StatusCode::CREATED);
        let (_, _, run) = office.admin("/api/v1/workflows/orders/runs", "{}").await;
        let run: Value = serde_json::from_str(&run).unwrap();
        let read = read_until(&mut live, run["id"].as_str()).await;
        assert!(!read.contains("billing"), "{read}");
        if token == made["token"] {
            let path = format!("/api/v1/tokens/{}", made["id"].as_str().unwrap());
            let (status, ..) = office.send(Method::DELETE, &path, "", &["admin:acme"], Some("acme")).await;
            assert!(status.is_success());
            read_until(&mut live, None).await;
        }
    }
}
