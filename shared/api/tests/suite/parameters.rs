//! Parameters that make no sense: refused by name, in words, on every endpoint.

use axum::http::{Method, StatusCode};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ebbflow_api::{endpoints, openapi};
use serde_json::{Value, json};

use crate::world::{Answer, World};

/// Words of our programming language and its libraries, which mean nothing to callers.
const JARGON: [&str; 14] = [
    "struct ",
    "enum ",
    "variant",
    "tuple",
    "newtype",
    "eserialize",
    "UUID",
    "u32",
    "i32",
    "u64",
    "i64",
    "usize",
    "premature end",
    "chrono",
];

fn check_words(what: &str, answer: &Answer) {
    let message = answer.body["message"].as_str().unwrap_or_default();
    let found = JARGON.iter().find(|word| message.contains(**word));
    assert!(found.is_none(), "{what}: `{message}`");
}

/// Every guarded endpoint, with names that exist in the path where they are needed.
async fn addressed(world: &World) -> Vec<(endpoints::Endpoint, String)> {
    let run = world.start().await.to_string();
    let address = |endpoint: endpoints::Endpoint| {
        let path = endpoint.path.replace("/runs/{id}", &format!("/runs/{run}"));
        let path = path.replace("/execution/{id}", &format!("/execution/{run}"));
        let path = path.replace("{id}", "018f0000-0000-7000-8000-000000000001").replace("{task}", "greet");
        let path = path.replace("{name}", "hello").replace("{workflow}", "hello").replace("{kind}", "pool");
        let path = path.replace("{number}", "1").replace("{other}", "1").replace("{attempt}", "1");
        (endpoint, path)
    };
    endpoints::list().into_iter().filter(|endpoint| endpoint.needs.is_some()).map(address).collect()
}

/// The documented query parameters of an endpoint, with their schemas.
fn parameters(endpoint: &endpoints::Endpoint) -> Vec<(String, Value)> {
    let path = format!("/api/v1{}", endpoint.path);
    let operation = &openapi::document()["paths"][path][endpoint.method.as_str().to_lowercase()];
    let all = operation["parameters"].as_array().unwrap().iter().filter(|one| one["in"] == "query");
    all.map(|one| (one["name"].as_str().unwrap().to_owned(), one["schema"].clone())).collect()
}

#[tokio::test]
async fn an_unknown_query_parameter_is_refused_by_name_on_every_endpoint() {
    let world = World::with_hello().await;
    for (endpoint, path) in addressed(&world).await {
        let case = format!("{} {}", endpoint.method, endpoint.path);
        let answer = world.send(endpoint.method.clone(), &format!("{path}?dry-run=1"), &[], "").await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{case}: {}", answer.body);
        assert!(answer.body["message"].as_str().unwrap().contains("`dry-run`"), "{case}: {}", answer.body);
    }
    let run = world.start().await;
    assert_eq!(world.get(&format!("/runs/{run}")).await.body["state"], "running", "nothing was done");
}

#[tokio::test]
async fn a_timestamp_is_of_a_year_that_every_database_knows() {
    let world = World::with_hello().await;
    let mut tried = 0;
    for (endpoint, path) in addressed(&world).await {
        for (name, _) in parameters(&endpoint).iter().filter(|(_, schema)| is_time(schema)) {
            for (value, word) in [
                ("-262143-01-01T00:00:00Z", "0001 and 9999"),
                ("%2B12026-01-01T00:00:00Z", "0001 and 9999"),
                ("soon", "RFC 3339"),
            ] {
                let answer =
                    world.send(endpoint.method.clone(), &format!("{path}?{name}={value}"), &[], "").await;
                check_refused(&format!("{path}?{name}={value}"), &answer, word);
                tried += 1;
            }
        }
    }
    assert!(tried >= 12, "{tried}");
    let run = world.start().await;
    for (path, body) in [
        ("/workflows/hello/runs".to_owned(), json!({"logical_date": "AT"})),
        ("/runs/bulk".into(), json!({"action": "pause", "filter": {"created_after": "AT"}})),
        ("/runs/bulk".into(), json!({"action": "pause", "filter": {"created_before": "AT"}})),
        (
            format!("/execution/{run}/greet/1/log"),
            json!({"worker": "w", "first": 0, "lines": [{"at": "AT", "stream": "stdout", "level": "info", "line": "x"}]}),
        ),
    ] {
        for (value, word) in [("-262143-01-01T00:00:00Z", "0001 and 9999"), ("soon", "RFC 3339")] {
            let answer = world.post(&path, body.to_string().replace("AT", value)).await;
            check_refused(&format!("{path} {body}"), &answer, word);
        }
    }
}

#[tokio::test]
async fn a_backfill_is_of_dates_that_every_database_knows() {
    let world = World::with_hello().await;
    for field in ["from", "to"] {
        for value in ["-262143-01-01T00:00:00Z", "-262143-01-01", "10000-01-01", "soon"] {
            let mut body = json!({"workflow": "hello", "from": "2026-01-01", "to": "2026-01-02"});
            body[field] = json!(value);
            let answer = world.post("/backfills", body.to_string()).await;
            assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}: {}", answer.body);
            check_words(&body.to_string(), &answer);
        }
    }
}

fn is_time(schema: &Value) -> bool {
    schema.to_string().contains("date-time")
}

fn check_refused(what: &str, answer: &Answer, word: &str) {
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{what}: {}", answer.body);
    assert!(answer.body["message"].as_str().unwrap().contains(word), "{what}: {}", answer.body);
    check_words(what, answer);
}

#[tokio::test]
async fn a_forged_cursor_is_refused_by_every_list() {
    let world = World::with_hello().await;
    let (far, id) = ("-262143-01-01T00:00:00Z", "018f0000-0000-7000-8000-000000000001");
    let forged =
        [json!([far, id]), json!([far, "x"]), json!(["+99999-01-01T00:00:00Z", id, 1]), json!(["\0", "\0"])];
    for (endpoint, path) in addressed(&world).await {
        if !parameters(&endpoint).iter().any(|(name, _)| name == "cursor") {
            continue;
        }
        for place in &forged {
            let cursor = BASE64_URL_SAFE_NO_PAD.encode(place.to_string());
            let answer = world.get(&format!("{path}?cursor={cursor}")).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path} {place}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn no_refusal_speaks_of_types() {
    let world = World::with_hello().await;
    let run = world.start().await.to_string();
    for (endpoint, path) in addressed(&world).await {
        let case = format!("{} {}", endpoint.method, endpoint.path);
        // A stream that is not refused has no end.
        if endpoint.is_stream() {
            continue;
        }
        for (name, _) in parameters(&endpoint) {
            for value in ["x", "-1", "99999999999999999999", "%20"] {
                let answer =
                    world.send(endpoint.method.clone(), &format!("{path}?{name}={value}"), &[], "").await;
                check_words(&format!("{case} {name}={value}"), &answer);
                assert!(!answer.status.is_server_error(), "{case} {name}={value}: {}", answer.body);
            }
        }
        let wrong = path.replace(&run, "x").replace("018f0000-0000-7000-8000-000000000001", "x");
        for wrong in [wrong.clone(), wrong.replace("/1", "/x"), path.replace("/1", "/-1")] {
            if wrong == path {
                continue;
            }
            let answer = world.send(endpoint.method.clone(), &wrong, &[], "{}").await;
            check_words(&wrong, &answer);
            assert!(answer.status.is_client_error(), "{case} {wrong}: {}", answer.status);
        }
        if endpoint.method != Method::POST {
            continue;
        }
        for body in wrong_bodies(&endpoint) {
            let answer = world.post(&path, body.to_string()).await;
            check_words(&format!("{case} {body}"), &answer);
            assert!(!answer.status.is_server_error(), "{case} {body}: {}", answer.body);
        }
    }
}

/// Bodies of a wrong type, and bodies with each documented field of a wrong type.
fn wrong_bodies(endpoint: &endpoints::Endpoint) -> Vec<Value> {
    let path = format!("/api/v1{}", endpoint.path);
    let document = openapi::document();
    let content = &document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"];
    let name =
        content["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()).unwrap_or_default();
    let fields = document["components"]["schemas"][name]["properties"].as_object();
    let wrong =
        [json!(7), json!("x"), json!([]), json!({"x": 1}), json!([{"x": -1}]), json!(null), json!(-1.5)];
    let mut bodies: Vec<Value> = wrong.to_vec();
    for field in fields.into_iter().flat_map(|fields| fields.keys()) {
        bodies.extend(wrong.iter().map(|value| json!({ field.as_str(): value })));
    }
    bodies
}
