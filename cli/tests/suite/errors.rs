//! Bad input gets a clear error with the right exit code or status, and changes nothing.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::project::{Project, printed};

#[test]
fn bad_definitions_are_refused_with_file_line_and_reason() {
    for (text, expected) in [
        ("name: bad\ntasks: [\n", "bad.yaml:"),
        ("name: bad\ntasks:\n  - {name: a, type: basch}\n", "did you mean `bash`"),
        (
            "name: bad\ntasks:\n  - {name: a, type: noop, depends_on: [c]}\n  - {name: b, type: noop, depends_on: [a]}\n  \
             - {name: c, type: noop, depends_on: [b]}\n",
            "→",
        ),
        ("name: bad\ntasks:\n  - {name: a, type: noop, depends_on: [nobody]}\n", "nobody"),
    ] {
        let output = Project::new().with("bad", text).run(&["validate"]);
        assert_eq!(output.status.code(), Some(1), "{text}");
        let error = printed(&output);
        assert!(
            error.contains("bad.yaml:") && error.contains(expected),
            "`{expected}` is missing in:\n{error}"
        );
    }
}

#[test]
fn without_a_server_the_error_mentions_ebb_dev() {
    // The port is reserved, and no process listens on it.
    let port = testkit::Port::reserve();
    Project::new().assert_fails(&["runs", "--url", &port.url(), "--token", "x"], 3, "ebb dev");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_rejects_bad_requests_and_registers_nothing_of_them() {
    let project = Project::new().with("greet", "name: greet\ntasks: [{name: only, type: noop}]\n");
    let dev = project.dev();
    let post = |path: &str, body: String| dev.request(Method::POST, path).body(body);
    let bad = json!({"files": [
        {"path": "graphs/good.yaml", "kind": "workflow", "text": "name: good\ntasks: [{name: a, type: noop}]"},
        {"path": "graphs/bad.yaml", "kind": "workflow", "text": "name: bad\ntasks: [{name: a, type: nope}]"},
    ]});
    let json = |request: reqwest::RequestBuilder| request.header("content-type", "application/json");
    let forged =
        reqwest::Client::new().post(format!("{}/api/v1/workflows/greet/runs", dev.url)).bearer_auth("x.y.z");
    for (what, request, status) in [
        ("one bad file of two", json(post("/workflows", bad.to_string())), StatusCode::UNPROCESSABLE_ENTITY),
        ("a body of 2 MiB", json(post("/workflows", "x".repeat(2 << 20))), StatusCode::PAYLOAD_TOO_LARGE),
        ("no JSON", json(post("/workflows/greet/runs", "{".into())), StatusCode::BAD_REQUEST),
        ("an unknown workflow", json(post("/workflows/gret/runs", "{}".into())), StatusCode::NOT_FOUND),
        ("a bad token", forged, StatusCode::UNAUTHORIZED),
    ] {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), status, "{what}");
        let problem: Value = answer.json().await.unwrap();
        for field in ["error_code", "message", "request_id", "timestamp"] {
            assert!(problem[field].is_string(), "{what}: {problem}");
        }
    }
    let names: Vec<Value> =
        dev.get("/workflows").await["items"].as_array().unwrap().iter().map(|w| w["name"].clone()).collect();
    assert_eq!(names, [json!("greet")], "nothing of the bad request was registered");
}
