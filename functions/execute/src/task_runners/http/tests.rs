//! Real requests to a server in the test.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Redirect, Response};
use axum::routing::{any, get};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use host::EgressPolicy;
use model::{ErrorClass, Failure};

use crate::task_runners::TaskRunners;
use crate::task_runners::tests::Bench;

/// Starts the server. Returns its address, and a notification of requests to `/silent`.
async fn server() -> (String, Arc<Notify>) {
    let requested = Arc::new(Notify::new());
    let routes = Router::new()
        .route("/mirror", any(mirror))
        .route("/text", get(|| async { "42" }))
        .route("/nothing", get(|| async { StatusCode::NO_CONTENT }))
        .route("/status/{status}", get(refusal))
        .route("/large", get(|| async { "x".repeat(1024 * 1024 + 1) }))
        .route("/hops/{left}", get(hop))
        .route("/to/{*target}", get(lead))
        .route("/silent", get(silence))
        .with_state(requested.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (address, requested)
}

/// Answers with the request.
async fn mirror(request: Request) -> Json<Value> {
    let (parts, body) = request.into_parts();
    let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let [content_type, authorization, extra] = ["content-type", "authorization", "x-extra"].map(header);
    let body = axum::body::to_bytes(body, 1024).await.unwrap();
    Json(json!({
        "method": parts.method.as_str(),
        "content_type": content_type,
        // Secrets that were sent are masked in the answer, so it is reversed.
        "authorization": authorization.map(|text: String| text.chars().rev().collect::<String>()),
        "extra": extra,
        "body": String::from_utf8_lossy(&body),
    }))
}

async fn refusal(Path(status): Path<u16>) -> Response {
    let body = format!("refused because {}", "of this ".repeat(100));
    (StatusCode::from_u16(status).unwrap(), [("retry-after", "30")], body).into_response()
}

async fn hop(Path(left): Path<u32>) -> Response {
    match left {
        0 => "arrived".into_response(),
        _ => Redirect::temporary(&format!("/hops/{}", left - 1)).into_response(),
    }
}

async fn lead(Path(target): Path<String>) -> Redirect {
    Redirect::temporary(&format!("http://{target}"))
}

async fn silence(State(requested): State<Arc<Notify>>) {
    requested.notify_one();
    std::future::pending().await
}

async fn ask(path: &str, config: Value) -> Result<Value, Failure> {
    let (address, _) = server().await;
    ask_at(&format!("{address}{path}"), config).await
}

async fn ask_at(url: &str, mut config: Value) -> Result<Value, Failure> {
    config["url"] = json!(url);
    Bench::new("http", config).run().await
}

#[tokio::test]
async fn the_answer_is_the_output_as_json_where_it_is_json() {
    let output = ask("/mirror", json!({"headers": {"X-Extra": 7}})).await.unwrap();
    assert_eq!(output["status"], 200);
    assert_eq!(output["headers"], json!({"content-type": "application/json"}));
    assert_eq!((&output["body"]["method"], &output["body"]["extra"]), (&json!("GET"), &json!("7")));
    assert_eq!(ask("/text", json!({})).await.unwrap()["body"], "42");
    let nothing = json!({"status": 204, "headers": {}, "body": null});
    assert_eq!(ask("/nothing", json!({})).await.unwrap(), nothing);
}

#[tokio::test]
async fn a_body_is_posted_as_json_or_as_text() {
    let sent = ask("/mirror", json!({"body": {"a": 1}})).await.unwrap()["body"].clone();
    assert_eq!((&sent["method"], &sent["body"]), (&json!("POST"), &json!(r#"{"a":1}"#)));
    assert_eq!(sent["content_type"], "application/json");
    let sent = ask("/mirror", json!({"body": "a,b", "method": "PUT"})).await.unwrap()["body"].clone();
    assert_eq!((&sent["method"], &sent["body"]), (&json!("PUT"), &json!("a,b")));
    assert_eq!(sent["content_type"], "text/plain; charset=utf-8");
    let own = json!({"body": "a,b", "headers": {"content-type": "text/csv"}});
    assert_eq!(ask("/mirror", own).await.unwrap()["body"]["content_type"], "text/csv");
}

#[tokio::test]
async fn requests_are_authenticated_by_token_or_password() {
    let check = async |auth: Value, expected: &str| {
        let output = ask("/mirror", json!({ "auth": auth })).await.unwrap();
        let sent: String = output["body"]["authorization"].as_str().unwrap().chars().rev().collect();
        assert_eq!(sent, expected);
    };
    check(json!({"bearer": "t0ken"}), "Bearer t0ken").await;
    check(json!({"basic": {"username": "ebb", "password": "flow"}}), "Basic ZWJiOmZsb3c=").await;
}

#[tokio::test]
async fn statuses_are_transient_or_permanent_errors() {
    for status in [429, 500, 502, 503, 504] {
        let failure = ask(&format!("/status/{status}"), json!({})).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Transient, "{status}");
    }
    for status in [300, 400, 401, 403, 404, 409, 422, 501] {
        let failure = ask(&format!("/status/{status}"), json!({})).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Permanent, "{status}");
    }
}

#[tokio::test]
async fn an_error_names_the_request_without_its_secrets_and_quotes_the_answer() {
    let (address, _) = server().await;
    let host = address.trim_start_matches("http://");
    let url = format!("http://user:hunter2@{host}/status/503?key=hunter2#x");
    let failure = ask_at(&url, json!({})).await.unwrap_err();
    let asked = format!("GET {address}/status/503?… returned 503 Service Unavailable (Retry-After: 30 s): ");
    let quote = failure.message.strip_prefix(&asked).unwrap_or_else(|| panic!("{}", failure.message));
    assert!(quote.starts_with("refused because of this"), "{quote}");
    assert_eq!(quote.chars().count(), 200);
}

#[tokio::test]
async fn only_an_expected_status_is_a_success() {
    let output = ask("/status/404", json!({"expected_status": [200, 404]})).await.unwrap();
    assert_eq!(output["status"], 404);
    let failure = ask("/text", json!({"expected_status": [201]})).await.unwrap_err();
    assert!(failure.message.ends_with("returned 200 OK: 42"), "{}", failure.message);
}

#[tokio::test]
async fn an_unreachable_server_is_a_transient_error() {
    let port = testkit::Port::reserve();
    let failure = ask_at(&format!("{}/x?key=hunter2", port.url()), json!({})).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Transient);
    assert!(failure.message.contains("Connection refused"), "{}", failure.message);
    assert!(!failure.message.contains("hunter2"), "{}", failure.message);
}

#[tokio::test]
async fn at_most_five_redirects_are_followed() {
    assert_eq!(ask("/hops/5", json!({})).await.unwrap()["body"], "arrived");
    let failure = ask("/hops/6", json!({})).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Permanent);
    assert!(failure.message.contains("too many redirects"), "{}", failure.message);
}

#[tokio::test]
async fn an_answer_of_more_than_a_mebibyte_is_an_error() {
    let failure = ask("/large", json!({})).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Permanent);
    assert!(failure.message.contains("returned more than 1048576 bytes"), "{}", failure.message);
}

#[tokio::test]
async fn a_header_that_http_does_not_allow_is_named_without_its_value() {
    let failure = ask("/text", json!({"headers": {"X-Key": "hunter2\n"}})).await.unwrap_err();
    assert_eq!(failure.message, "the value of header `X-Key` contains characters that HTTP does not allow");
}

#[tokio::test]
async fn a_server_that_never_answers_runs_into_the_timeout() {
    let (address, requested) = server().await;
    let bench = Bench::new("http", json!({"url": format!("{address}/silent")}));
    let attempt = bench.begin();
    requested.notified().await;
    bench.clock.advance(chrono::Duration::seconds(60));
    assert_eq!(attempt.await.unwrap().unwrap_err().class, ErrorClass::Timeout);
}

/// Performs a request under an egress policy.
async fn ask_limited(egress: EgressPolicy, url: &str) -> Result<Value, Failure> {
    let bench = Bench::new("http", json!({ "url": url }));
    Ok(TaskRunners::standard().with_egress_policy(egress).run(&bench.job, &bench.context).await?)
}

#[tokio::test]
async fn internal_addresses_are_refused_by_address_and_by_name_unless_allowed() {
    let (address, _) = server().await;
    let named = address.replace("127.0.0.1", "localhost");
    for address in [&address, &named] {
        let failure = ask_limited(EgressPolicy::default(), &format!("{address}/text")).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Permanent, "{}", failure.message);
        assert!(failure.message.contains("EBB_EGRESS_ALLOW="), "{}", failure.message);
    }
    let allowed = |list: &str| EgressPolicy::read(None, Some(list)).unwrap();
    let by_name = ask_limited(allowed("localhost"), &format!("{named}/text")).await.unwrap();
    let by_range = ask_limited(allowed("127.0.0.0/8"), &format!("{address}/text")).await.unwrap();
    assert_eq!((&by_name["body"], &by_range["body"]), (&json!("42"), &json!("42")));
}

#[tokio::test]
async fn metadata_servers_are_always_refused_even_after_a_redirect() {
    let (address, _) = server().await;
    for url in [
        "http://169.254.169.254/computeMetadata/v1/".to_owned(),
        "http://[fd00:ec2::254]/latest/meta-data/".to_owned(),
        "http://metadata.google.internal/computeMetadata/v1/".to_owned(),
        format!("{address}/to/169.254.169.254/computeMetadata/v1/"),
        format!("{address}/to/metadata.google.internal/computeMetadata/v1/"),
        format!("{address}/to/[::ffff:169.254.169.254]/"),
    ] {
        let failure = ask_limited(EgressPolicy::allow_internal(), &url).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Permanent, "{}", failure.message);
        assert!(failure.message.contains("never allowed"), "{}", failure.message);
    }
}

#[tokio::test]
async fn a_redirect_is_followed_only_to_an_allowed_address() {
    let (address, _) = server().await;
    let only = EgressPolicy::read(None, Some("127.0.0.1")).unwrap();
    let (_, port) = address.rsplit_once(':').unwrap();
    for place in [format!("127.0.0.2:{port}/text"), "10.0.0.1/".to_owned()] {
        let failure = ask_limited(only.clone(), &format!("{address}/to/{place}")).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Permanent, "{}", failure.message);
        assert!(failure.message.contains("an internal address"), "{}", failure.message);
    }
    let there = ask_limited(only, &format!("{address}/to/127.0.0.1:{port}/text")).await.unwrap();
    assert_eq!(there["body"], "42");
}

#[tokio::test]
async fn a_redirect_to_another_host_does_not_carry_custom_headers() {
    let ((address, _), (elsewhere, _)) = (server().await, server().await);
    let there = elsewhere.strip_prefix("http://").unwrap();
    let ask = async |place: &str, headers: Value| {
        let config = json!({"url": format!("{address}/to/{place}/text"), "headers": headers});
        Bench::new("http", config).run().await
    };
    let failure = ask(there, json!({"X-Key": "hunter2"})).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Permanent);
    assert!(failure.message.contains("its headers are for the original host"), "{}", failure.message);
    let home = address.strip_prefix("http://").unwrap();
    assert_eq!(ask(home, json!({"X-Key": "hunter2"})).await.unwrap()["body"], "42");
    assert_eq!(ask(there, json!({"Accept": "text/plain"})).await.unwrap()["body"], "42");
}

#[tokio::test]
async fn a_secret_that_an_error_would_truncate_is_masked_as_a_whole() {
    let (address, _) = server().await;
    let bench = Bench::new("http", json!({ "url": format!("{address}/status/404") }));
    // The excerpt ends in the first of four.
    bench.context.log.redact(vec!["of this ".repeat(25)]);
    let failure = bench.run().await.unwrap_err();
    assert!(failure.message.ends_with("refused because ************"), "{}", failure.message);
}
