use axum::http::{Method, StatusCode, header};
use ebbflow_api::BODY_LIMIT;

use crate::world::{Answer, HELLO, World, token};

const NOBODY: &str = "018f0000-0000-7000-8000-000000000001";

/// Every refusal has the same fields.
fn check(answer: &Answer, status: StatusCode, code: &str) {
    assert_eq!((answer.status, answer.body["error_code"].as_str()), (status, Some(code)), "{}", answer.body);
    let fields: Vec<&str> = answer.body.as_object().unwrap().keys().map(String::as_str).collect();
    for field in ["error_code", "message", "details", "request_id", "timestamp"] {
        assert!(fields.contains(&field), "{field} is missing in {}", answer.body);
    }
}

#[tokio::test]
async fn without_a_valid_token_nothing_is_shown_and_nothing_done() {
    let world = World::with_hello().await;
    let (foreign, stale) = (format!("Bearer {}", token("push", 60)), format!("Bearer {}", token("api", -60)));
    for bad in ["", "Basic YTpi", "Bearer", "Bearer nonsense", &foreign, &stale] {
        for (method, path) in [
            (Method::GET, "/workflows"),
            (Method::POST, "/workflows"),
            (Method::POST, "/workflows/validate"),
            (Method::GET, "/workflows/hello"),
            (Method::POST, "/workflows/hello/runs"),
            (Method::GET, "/runs"),
            (Method::GET, &format!("/runs/{NOBODY}")),
            (Method::POST, &format!("/runs/{NOBODY}/cancel")),
            (Method::GET, &format!("/runs/{NOBODY}/events")),
            (Method::GET, &format!("/runs/{NOBODY}/tasks")),
            (Method::GET, &format!("/runs/{NOBODY}/tasks/greet")),
            (Method::GET, &format!("/runs/{NOBODY}/tasks/greet/attempts")),
            (Method::GET, &format!("/runs/{NOBODY}/tasks/greet/logs")),
        ] {
            let answer = world.send(method.clone(), path, &[("authorization", bad)], HELLO).await;
            check(&answer, StatusCode::UNAUTHORIZED, "unauthorized");
            assert_eq!(answer.headers[header::WWW_AUTHENTICATE], "Bearer", "{method} {path}");
        }
    }
    assert_eq!(world.get("/runs").await.body["items"].as_array().unwrap().len(), 0);
}

#[tokio::test]
async fn a_list_is_not_taken_for_an_object() {
    let world = World::with_hello().await;
    let run = world.start().await;
    for (path, body) in [
        (format!("/runs/{run}/cancel"), "[]"),
        (format!("/runs/{run}/cancel"), r#"["because"]"#),
        ("/runs/bulk".to_owned(), r#"{"filter": [], "action": "cancel"}"#),
        ("/runs/bulk".to_owned(), r#"[{"workflow": "hello"}, "cancel"]"#),
    ] {
        let answer = world.post(&path, body).await;
        check(&answer, StatusCode::BAD_REQUEST, "bad_request");
        assert_eq!(answer.body["message"], "invalid body: a list where an object is expected");
    }
    assert_ne!(world.get(&format!("/runs/{run}")).await.body["state"], "cancelled");
}

#[tokio::test]
async fn a_run_that_is_not_there_is_not_found() {
    let world = World::new().await;
    for path in ["", "/events", "/tasks", "/tasks/greet", "/tasks/greet/attempts", "/tasks/greet/logs"] {
        check(&world.get(&format!("/runs/{NOBODY}{path}")).await, StatusCode::NOT_FOUND, "not_found");
    }
    check(&world.post(&format!("/runs/{NOBODY}/cancel"), "").await, StatusCode::NOT_FOUND, "not_found");
}

#[tokio::test]
async fn an_address_that_makes_no_sense_is_refused() {
    let world = World::new().await;
    for path in [
        "/runs?limit=0",
        "/runs?limit=101",
        "/runs?limit=many",
        "/runs?cursor=x",
        "/runs?state=odd",
        "/runs?sate=failed",
        "/workflows?x=1",
        "/workflows/a%00b",
    ] {
        check(&world.get(path).await, StatusCode::BAD_REQUEST, "bad_request");
    }
    check(&world.get("/runs/not-an-id").await, StatusCode::NOT_FOUND, "not_found");
}

#[tokio::test]
async fn a_body_that_does_not_fit_is_refused_with_its_place() {
    let world = World::with_hello().await;
    for (body, said) in [
        ("{\"inputs\": {},}", "line 1 column 15"),
        ("{\n\"input\": {}}", "unknown field `input`"),
        ("{\"inputs\": 7}", "line 1 column 12"),
        ("{\"logical_date\": \"tomorrow\"}", "line 1"),
    ] {
        let answer = world.post("/workflows/hello/runs", body).await;
        check(&answer, StatusCode::BAD_REQUEST, "bad_request");
        assert!(answer.body["message"].as_str().unwrap().contains(said), "{}", answer.body);
    }
    check(&world.post("/workflows", "").await, StatusCode::BAD_REQUEST, "bad_request");
    check(&world.post("/workflows", vec![0xff, 0xfe]).await, StatusCode::BAD_REQUEST, "bad_request");
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let world = World::with_hello().await;
    let body = "x".repeat(BODY_LIMIT + 1);
    for path in ["/workflows", "/workflows/validate", "/workflows/hello/runs"] {
        let answer = world.post(path, body.clone()).await;
        check(&answer, StatusCode::PAYLOAD_TOO_LARGE, "too_large");
        assert_eq!(
            answer.headers[header::CONNECTION],
            "close",
            "nobody sends the next request after half a body"
        );
    }
}

#[tokio::test]
async fn an_unknown_endpoint_and_a_wrong_method_differ() {
    let world = World::new().await;
    check(&world.get("/nothing").await, StatusCode::NOT_FOUND, "not_found");
    let answer = world.send(Method::DELETE, "/workflows", &[], "").await;
    check(&answer, StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed");
    assert_eq!(answer.headers[header::ALLOW], "GET,HEAD,POST");
}
