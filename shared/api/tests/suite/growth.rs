//! No request takes time that is the square of its size, or is answered at length: for each field of each body in the OpenAPI
//! document, each parameter of a path, each parameter of a query, and for definitions.

mod bodies;
mod expansion;

use std::time::{Duration, Instant};

use axum::http::{Method, StatusCode};
use ebbflow_api::endpoints::{self, Endpoint};
use ebbflow_api::openapi;
use serde_json::{Value, json};
use testkit::{Fuzzing, Threads, eventually};

use crate::hostile::Dice;
use crate::world::{Answer, HELLO, World};

const ASK: &str = "{name: ask, tasks: [
    {name: greet, type: approval, config: {fields: {n: {type: number}, s: {type: string}}}},
    {name: wait, type: wait_for_signal, config: {signal: go}}]}";
const FAR: &str = "{name: far, tasks: [{name: greet, type: echo, queue: remote-gpu, config: {value: 1}}]}";

/// No answer to a refused request is longer, in bytes. What is accepted may be repeated once.
const MAX_ANSWER: usize = 256 * 1024;

/// The sizes of bodies that are compared, in bytes: the larger one is almost the limit.
const BODIES: [usize; 2] = [250_000, 1_000_000];

/// The sizes of paths and queries that are compared, in bytes: the larger one is almost the limit.
const ADDRESSES: [usize; 2] = [15_000, 60_000];

/// A world with a workflow of each kind, in which each request finds something to work on.
struct Growing {
    world: World,
}

impl Growing {
    async fn new() -> Self {
        let world = World::new().await;
        for text in [HELLO, ASK, FAR] {
            assert_eq!(world.post("/workflows", text).await.status, StatusCode::CREATED);
        }
        Self { world }
    }

    /// The address of an endpoint, of something that is new, since requests may end it.
    async fn address(&self, endpoint: &Endpoint) -> String {
        let mut path = endpoint.path.to_owned();
        if path.starts_with("/runs/{id}") {
            path = path.replace("{id}", &self.world.start_of("ask", json!({})).await.to_string());
        }
        if path.starts_with("/execution/{id}") {
            let run = self.world.start_of("far", json!({})).await.to_string();
            // Attempts that were released come again.
            let lease = json!({"worker": "w1", "queue": "remote-gpu", "limit": 32}).to_string();
            let leased = self.world.post("/execution/lease", lease).await;
            let items = leased.body["items"].as_array().unwrap();
            assert!(items.iter().any(|item| item["run"] == json!(run)), "{}", leased.body);
            path = path.replace("{id}", &run);
        }
        if path.contains("/signals/") {
            path = path.replace("{name}", "go");
        }
        for (name, value) in [
            ("{id}", "018f0000-0000-7000-8000-000000000001"),
            ("{task}", "greet"),
            ("{name}", "hello"),
            ("{workflow}", "hello"),
            ("{trigger}", "hook"),
            ("{tenant}", "default"),
            ("{kind}", "pool"),
            ("{number}", "1"),
            ("{other}", "1"),
            ("{attempt}", "1"),
            ("{function}", "trigger"),
        ] {
            path = path.replace(name, value);
        }
        assert!(!path.contains('{'), "{path}: a parameter has no value here");
        path
    }

    /// Sends a request whose answer must be one of ours, and not too long. On a busy machine, a debug build may take longer
    /// than a request may: it is then sent again.
    async fn send(&self, method: &Method, path: &str, body: String, what: &str) -> Answer {
        let size = body.len() + path.len();
        let answer = eventually("the request is answered in time", async || {
            let answer = self.world.send(method.clone(), path, &[], body.clone()).await;
            (answer.status != StatusCode::SERVICE_UNAVAILABLE).then_some(answer)
        })
        .await;
        let case = format!("{method} {path:.80} with {size} bytes of {what}: {}", answer.status);
        assert!(!answer.status.is_server_error(), "{case}");
        let most = if answer.status.is_success() { 2 * size + MAX_ANSWER } else { MAX_ANSWER };
        let length = answer.body.to_string().len();
        assert!(length <= most, "{case}, answered with {length} bytes");
        answer
    }
}

/// Endpoints whose responses end by themselves.
fn answering() -> impl Iterator<Item = Endpoint> {
    endpoints::list().into_iter().filter(|endpoint| !endpoint.is_stream())
}

fn takes_definitions(endpoint: &Endpoint) -> bool {
    endpoint.method == Method::POST && ["/workflows", "/workflows/validate"].contains(&endpoint.path)
}

#[test]
fn no_field_of_a_body_takes_time_that_is_the_square_of_its_size() {
    Threads::block_on(async |threads| {
        let growing = Growing::new().await;
        let mut tried = 0;
        for endpoint in answering() {
            let Some(schema) = bodies::schema(endpoint.method.as_str(), endpoint.path) else { continue };
            for large in bodies::large(schema) {
                let what = format!("{} {} with {}", endpoint.method, endpoint.path, large.what);
                let address = async || growing.address(&endpoint).await;
                let send = async |size: usize, path: String| {
                    growing.send(&endpoint.method, &path, large.body(size), &large.what).await;
                };
                threads.check(&what, BODIES, address, send).await;
                tried += 1;
            }
        }
        assert!(tried > 150, "only {tried} bodies were tried");
    });
}

#[test]
fn bodies_reach_the_work_that_endpoints_do() {
    Threads::block_on(async |_| {
        let growing = Growing::new().await;
        let mut refused = Vec::new();
        for endpoint in answering().filter(|endpoint| !takes_definitions(endpoint)) {
            let Some(schema) = bodies::schema(endpoint.method.as_str(), endpoint.path) else { continue };
            let path = growing.address(&endpoint).await;
            let body = bodies::valid(schema, "").to_string();
            let answer = growing.send(&endpoint.method, &path, body.clone(), "a valid body").await;
            // What is refused as malformed never gets to the work.
            if answer.status == StatusCode::BAD_REQUEST && answer.body["error_code"] == "bad_request" {
                refused.push(format!("{} {body}: {}", endpoint.path, answer.body["message"]));
            }
        }
        assert!(refused.len() <= 6, "{refused:#?}");
    });
}

#[test]
fn no_definition_takes_time_that_is_the_square_of_its_size() {
    Threads::block_on(async |threads| {
        let growing = Growing::new().await;
        for path in ["/workflows", "/workflows/validate"] {
            for (number, (what, _)) in definitions(0).into_iter().enumerate() {
                let send = async |size: usize, ()| {
                    let (_, body) = definitions(size).swap_remove(number);
                    growing.send(&Method::POST, path, body, what).await;
                };
                threads.check(&format!("{path} with {what}"), [50_000, 200_000], async || (), send).await;
            }
        }
    });
}

#[test]
fn no_path_or_query_takes_time_that_is_the_square_of_its_length() {
    Threads::block_on(async |threads| {
        let growing = Growing::new().await;
        for endpoint in answering() {
            let named: Vec<&str> = endpoint.path.split('/').filter(|part| part.starts_with('{')).collect();
            for name in named {
                let send = async |size: usize, address: String| {
                    // What stands for the parameter in the address of something that is there.
                    let at = endpoint.path.split('/').position(|part| part == name).unwrap();
                    let long = "n".repeat(size);
                    let parts = address.split('/').enumerate();
                    let path: Vec<&str> =
                        parts.map(|(part, is)| if part == at { long.as_str() } else { is }).collect();
                    growing.send(&endpoint.method, &path.join("/"), "{}".into(), name).await;
                };
                let address = async || growing.address(&endpoint).await;
                let what = format!("{} {} with a long {name}", endpoint.method, endpoint.path);
                threads.check(&what, ADDRESSES, address, send).await;
            }
            for name in query_of(&endpoint).into_iter().chain(["unknown".to_owned()]) {
                let send = async |size: usize, address: String| {
                    let path = format!("{address}?{name}={}", "n".repeat(size));
                    growing.send(&endpoint.method, &path, "{}".into(), &name).await;
                    let path = format!("{address}?{}", format!("{name}=1&").repeat(size / (name.len() + 3)));
                    growing.send(&endpoint.method, &path, "{}".into(), &name).await;
                };
                let address = async || growing.address(&endpoint).await;
                let what = format!("{} {} with a long `{name}`", endpoint.method, endpoint.path);
                threads.check(&what, ADDRESSES, address, send).await;
            }
        }
    });
}

/// Random requests, with several large things each, as long as one likes: `EBB_FUZZ_SECONDS=600`.
#[test]
fn no_random_request_breaks_an_endpoint() {
    let fuzzing = Fuzzing::from_env();
    println!("again: {fuzzing}");
    Threads::block_on(async |_| {
        let (growing, mut dice) = (Growing::new().await, Dice(fuzzing.seed.unwrap_or(0x5EED).max(1)));
        let with_bodies: Vec<(Endpoint, &Value)> = answering()
            .filter_map(|it| bodies::schema(it.method.as_str(), it.path).map(|schema| (it, schema)))
            .collect();
        let (mut sent, mut slowest) = (0, (Duration::ZERO, String::new()));
        while sent < 20 || fuzzing.goes_on() {
            let (endpoint, schema) = &with_bodies[dice.roll(with_bodies.len())];
            let mut all = bodies::large(schema);
            let (one, other) = (all.swap_remove(dice.roll(all.len())), all.pop());
            let size = 1 << dice.roll(19);
            let mut body = serde_json::from_str(&one.body(size)).unwrap_or(Value::Null);
            let more = other.and_then(|other| serde_json::from_str::<Value>(&other.body(size / 2)).ok());
            if let (Value::Object(body), Some(Value::Object(more))) = (&mut body, more) {
                for (key, value) in more {
                    body.entry(key).or_insert(value);
                }
            }
            let path = growing.address(endpoint).await;
            let began = Instant::now();
            growing.send(&endpoint.method, &path, body.to_string(), &one.what).await;
            slowest = slowest.max((began.elapsed(), format!("{} {}", endpoint.method, endpoint.path)));
            sent += 1;
        }
        println!("{sent} requests, the slowest took {:?}: {}", slowest.0, slowest.1);
    });
}

/// The documented query parameters of an endpoint.
fn query_of(endpoint: &Endpoint) -> Vec<String> {
    let path = format!("/api/v1{}", endpoint.path);
    let operation = &openapi::document()["paths"][path][endpoint.method.as_str().to_lowercase()];
    let all = operation["parameters"].as_array().into_iter().flatten().filter(|one| one["in"] == "query");
    all.filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
}

/// Definitions of about a size, each of which once took long or was answered at length.
fn definitions(size: usize) -> Vec<(&'static str, String)> {
    let repeat = |part: &dyn Fn(usize) -> String| {
        let mut text = String::with_capacity(size + 64);
        for number in 0.. {
            if text.len() >= size {
                break;
            }
            text.push_str(&part(number));
        }
        text
    };
    let files = repeat(&|number| format!("{{\"path\":\"{number}.yaml\",\"text\":\"x: 1\"}},"));
    let nested = repeat(&|number| format!("u{number}: 1, "));
    let task = |fields: &str| format!("{{name: x, tasks: [{{name: a, type: noop, {fields}}}]}}");
    let command = |text: String| {
        format!(
            "{{\"name\": \"x\", \"tasks\": [{{\"name\": \"a\", \"type\": \"bash\", \"config\": {{\"command\": {}}}}}]}}",
            json!(text)
        )
    };
    vec![
        ("unknown YAML keys", format!("name: x\n{}", repeat(&|number| format!("k{number}: 1\n")))),
        ("unknown keys of a task", task(&nested)),
        (
            "tasks",
            format!(
                "{{name: x, tasks: [{}]}}",
                repeat(&|number| format!("{{name: t{number}, type: nop}}, "))
            ),
        ),
        ("a long key", task(&format!("config: {{{}: {{{nested}}}}}", "k".repeat(size / 4)))),
        ("files", format!("{{\"files\": [{}]}}", files.trim_end_matches(','))),
        ("brackets", "[".repeat(size)),
        (
            "groups in a command",
            command(format!("{}{}", "{ (".repeat(size / 6), "echo {{x}} ".repeat(size / 22))),
        ),
        ("pipes in a command", command("echo {{ inputs.x }} | sh | ".repeat(size / 27))),
        ("here-documents in a command", command(format!("cat {}\n", "<<a ".repeat(size / 4)))),
        (
            "interpreters in a command",
            command(format!("{}{}", "sh ".repeat(size / 6), "{{x}} ".repeat(size / 12))),
        ),
    ]
}
