use axum::body::Body;
use axum::http::{Request, StatusCode, header::CONTENT_TYPE};
use axum::response::Response;
use ebbflow_bus::broker_http::router;
use ebbflow_bus::local::Faults;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::receiver::broker;

const PATH: &str = "/v1/projects/local/topics/ebbflow-evaluations:publish";

async fn post(path: &str, body: &Value) -> (StatusCode, Value) {
    let request = Request::post(path).header(CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(body.to_string())).unwrap();
    read(router(broker(Faults::default())).oneshot(request).await.unwrap()).await
}

async fn read(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 100_000).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

#[tokio::test]
async fn each_message_gets_an_id() {
    let body = json!({ "messages": [{ "data": "e30=" }, { "attributes": { "a": "b" } }] });
    let (status, answer) = post(PATH, &body).await;
    let ids: Vec<String> = serde_json::from_value(answer["messageIds"].clone()).unwrap();
    assert_eq!((status, ids.len()), (StatusCode::OK, 2));
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn an_invalid_request_is_rejected_as_a_whole() {
    let many = vec![json!({ "data": "e30=" }); 1001];
    for (messages, reason) in [
        (json!([]), "1 to 1000"),
        (json!(many), "1 to 1000"),
        (json!([{ "data": "%" }]), "base64"),
        (json!([{ "data": "e30=" }, {}]), "data or attributes"),
    ] {
        let (status, answer) = post(PATH, &json!({ "messages": messages })).await;
        assert_eq!(
            (status, answer["error"]["status"].as_str()),
            (StatusCode::BAD_REQUEST, Some("INVALID_ARGUMENT"))
        );
        assert!(answer["error"]["message"].as_str().unwrap().contains(reason), "{answer}");
    }
}

#[tokio::test]
async fn a_topic_can_only_be_published_to() {
    let (status, _) = post("/v1/projects/local/topics/x", &json!({ "messages": [{ "data": "e30=" }] })).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
