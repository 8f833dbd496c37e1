//! Bad input gets a clear error with the right exit code or status, and nothing is half-done.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::ebb::{Place, said};

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
        let output = Place::new().with("bad", text).run(&["validate"]);
        assert_eq!(output.status.code(), Some(1), "{text}");
        let told = said(&output);
        assert!(told.contains("bad.yaml:") && told.contains(expected), "`{expected}` is missing in:\n{told}");
    }
}

#[test]
fn nothing_answers_where_nothing_runs() {
    let output = Place::new().run(&["runs", "--url", "http://127.0.0.1:9", "--token", "x"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(said(&output).contains("ebb dev"), "{}", said(&output));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_refuses_what_it_cannot_take_and_registers_nothing_of_it() {
    let place = Place::new().with("greet", "name: greet\ntasks: [{name: only, type: noop}]\n");
    let dev = place.dev();
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
