//! Whatever is sent to a real process, it stays up, never answers with an internal error, and does not grow.
//! `EBB_FUZZ_SECONDS=600` sends for longer, `EBB_SEED=N` sends other requests.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use auth::Issuer;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bus::SystemClock;
use model::Clock;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use testkit::{Fuzzing, peak_memory};

use crate::project::{Dev, Project};

/// The maximum growth of the process, in bytes, while it answers thousands of requests, eight at a time.
const MAX_GROWTH: u64 = 192 << 20;

/// The paths that messages are pushed to.
const PUSHED: [&str; 5] =
    ["trigger/push", "evaluate/push", "execute/push", "sweep/push", "evaluate/dead-letters"];

/// Words of messages and events, so that bad input comes close to good input.
const WORDS: [&str; 24] = [
    "message",
    "data",
    "attributes",
    "messageId",
    "subscription",
    "deliveryAttempt",
    "publishTime",
    "specversion",
    "1.0",
    "id",
    "source",
    "type",
    "dev.ebbflow.run.requested.v1",
    "dev.ebbflow.task.dispatched.v1",
    "tenant",
    "dev.ebbflow.task.reported.v1",
    "google.cloud.pubsub.topic.v1.messagePublished",
    "workflow",
    "inputs",
    "key",
    "time",
    "2026-01-01T00:00:00Z",
    "018f0000-0000-7000-8000-000000000001",
    "datacontenttype",
];

/// The headers of a request.
type Headers = Vec<(HeaderName, HeaderValue)>;

fn word() -> impl Strategy<Value = String> {
    prop_oneof![4 => proptest::sample::select(&WORDS[..]).prop_map(str::to_owned), 1 => any::<String>()]
}

/// JSON that is almost a message.
fn near_message() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        word().prop_map(Value::from),
        vec(any::<u8>(), 0..60).prop_map(|bytes| Value::from(BASE64_STANDARD.encode(bytes))),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((word(), inner), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A body: a wrapped push, an event, something like either, or noise.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let wrapped = near_message().prop_map(|data| {
        let data = BASE64_STANDARD.encode(data.to_string());
        json!({"message": {"data": data, "messageId": "1", "attributes": {"ce-specversion": "1.0", "ce-id": "1",
            "ce-source": "/x", "ce-type": "dev.ebbflow.run.requested.v1", "content-type": "application/json"}},
            "subscription": "s"})
    });
    let structured = (word(), near_message()).prop_map(
        |(kind, data)| json!({"specversion": "1.0", "id": "1", "source": "/x", "type": kind, "data": data}),
    );
    let shaped =
        prop_oneof![near_message(), wrapped, structured].prop_map(|value| value.to_string().into_bytes());
    let torn =
        (shaped.clone(), any::<proptest::sample::Index>(), any::<u8>()).prop_map(|(mut bytes, at, byte)| {
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes
        });
    prop_oneof![4 => shaped, 2 => torn, 1 => vec(any::<u8>(), 0..300)]
}

/// Headers that describe a body, and values for them.
const NAMES: [&str; 7] =
    ["ce-specversion", "ce-id", "ce-type", "ce-source", "ce-time", "content-type", "traceparent"];
const KINDS: [&str; 6] =
    ["application/cloudevents+json", "application/json", "1.0", "text/plain; charset=x", "", "-"];

fn headers() -> impl Strategy<Value = Headers> {
    let value = prop_oneof![proptest::sample::select(&KINDS[..]).prop_map(str::to_owned), word()];
    vec((proptest::sample::select(&NAMES[..]), value), 0..6).prop_map(|pairs| {
        let pair = |(name, value): (&'static str, String)| {
            Some((HeaderName::from_static(name), HeaderValue::try_from(value).ok()?))
        };
        pairs.into_iter().filter_map(pair).collect()
    })
}

/// Bodies that grow when they are read: nested, repeated, or a little larger than allowed.
fn bombs() -> Vec<Vec<u8>> {
    let laughs: String =
        (1..40).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}, *a{0}]\n", n - 1)).collect();
    let many: serde_json::Map<String, Value> = (0..40_000).map(|n| (format!("k{n}"), json!(n))).collect();
    let texts = [
        format!("name: x\na0: &a0 [lol, lol]\n{laughs}tasks: []\n"),
        format!("{}{}", "[".repeat(500_000), "]".repeat(500_000)),
        format!("{}1{}", "{\"a\":".repeat(150_000), "}".repeat(150_000)),
        "- ".repeat(500_000),
        json!({"message": {"data": BASE64_STANDARD.encode("x".repeat(700_000)), "attributes": many}})
            .to_string(),
        json!({"message": {"data": BASE64_STANDARD.encode("[".repeat(700_000))}}).to_string(),
        "x".repeat(1024 * 1024 + 1),
        "x".repeat(3 * 1024 * 1024),
        "\\u0000".repeat(100_000),
    ];
    // The beginning of a compressed body of ten mebibytes, which is never decompressed.
    let zipped = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3][..], &[0; 1000]].concat();
    texts.into_iter().map(String::into_bytes).chain([zipped]).collect()
}

struct Attack {
    dev: Dev,
    client: Client,
    push_token: String,
    runner: TestRunner,
    /// How many requests were sent, and how long the slowest took.
    sent: Mutex<(usize, Duration)>,
}

impl Attack {
    fn new(project: &Project, seed: Option<u64>) -> Self {
        let dev = project.dev_with(&[], &[("RUST_LOG", "warn")]);
        let issuer = Issuer::load_or_create(&project.path().join(".ebb/issuer.pem"), &dev.url).unwrap();
        let push_token = issuer.push_token("pusher@ebbflow.local", "ebbflow-push", SystemClock.now());
        // The same requests each time, unless another seed is chosen.
        let rng = match seed {
            None => TestRng::deterministic_rng(RngAlgorithm::ChaCha),
            Some(seed) => TestRng::from_seed(RngAlgorithm::ChaCha, &[seed.to_le_bytes(); 4].concat()),
        };
        let runner = TestRunner::new_with_rng(Config::default(), rng);
        let client = Client::builder().no_proxy().build().unwrap();
        Self { dev, client, push_token, runner, sent: Mutex::default() }
    }

    fn draw<T>(&mut self, strategy: &impl Strategy<Value = T>) -> T {
        strategy.new_tree(&mut self.runner).unwrap().current()
    }

    fn push(&self, function: &str, headers: Headers, body: Vec<u8>) -> RequestBuilder {
        let request = self.client.post(format!("{}/functions/{function}", self.dev.url));
        request.bearer_auth(&self.push_token).headers(headers.into_iter().collect()).body(body)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}/api/v1{path}", self.dev.url))
    }

    /// Sends requests, eight at a time. None may be answered with an internal error.
    async fn send(&self, requests: Vec<RequestBuilder>) {
        let gate = Arc::new(tokio::sync::Semaphore::new(8));
        let answers = requests.into_iter().map(|request| {
            let gate = gate.clone();
            async move {
                let _permit = gate.acquire().await.unwrap();
                let (what, began) = (format!("{request:?}"), Instant::now());
                match request.send().await {
                    Ok(answer) => {
                        let status = answer.status().as_u16();
                        let body = answer.text().await.unwrap_or_default();
                        assert!(status < 500 || status == 503, "{what} was answered {status}: {body}");
                    }
                    Err(error) => assert!(error.is_request() || error.is_body(), "{what}: {error:?}"),
                }
                let mut sent = self.sent.lock().unwrap();
                *sent = (sent.0 + 1, sent.1.max(began.elapsed()));
            }
        });
        futures::future::join_all(answers).await;
    }

    /// Pushes, tokens and definitions that almost make sense.
    fn near_misses(&mut self) -> Vec<RequestBuilder> {
        let mut requests = Vec::new();
        for number in 0..1_500 {
            let (headers, body) = (self.draw(&headers()), self.draw(&body()));
            requests.push(self.push(PUSHED[number % PUSHED.len()], headers, body));
        }
        let token = self.dev.token.clone();
        for number in 0..300 {
            let (at, letter) = (self.draw(&any::<proptest::sample::Index>()), self.draw(&"[!-~]{1,40}"));
            let mut torn = if number % 3 == 0 { String::new() } else { token.clone() };
            torn.insert_str(at.index(torn.len() + 1), &letter);
            let request = self.request(Method::GET, "/runs");
            requests.push(request.header("authorization", format!("Bearer {torn}")));
        }
        for _ in 0..300 {
            let (text, near) = (self.draw(&any::<String>()), self.draw(&near_message()));
            for body in [text, near.to_string()] {
                for path in ["/workflows/validate", "/workflows/hello/runs"] {
                    requests.push(self.request(Method::POST, path).bearer_auth(&token).body(body.clone()));
                }
            }
        }
        requests
    }

    /// What grows when it is read, sent everywhere.
    fn bombs(&self) -> Vec<RequestBuilder> {
        let everywhere = |bomb: Vec<u8>| {
            let packed = |request: RequestBuilder| request.header("content-encoding", "gzip");
            let mut requests: Vec<_> =
                PUSHED.iter().map(|path| packed(self.push(path, Vec::new(), bomb.clone()))).collect();
            for path in ["/workflows/validate", "/workflows", "/workflows/hello/runs", "/hooks/hello/x"] {
                let request = self.request(Method::POST, path);
                requests.push(request.bearer_auth(&self.dev.token).body(bomb.clone()));
            }
            requests
        };
        bombs().into_iter().flat_map(everywhere).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_push_event_token_or_definition_brings_a_process_down_or_makes_it_grow() {
    let project = Project::new().with("hello", "{name: hello, tasks: [{name: a, type: noop}]}");
    let fuzzing = Fuzzing::from_env();
    println!("again: {fuzzing}");
    let mut attack = Attack::new(&project, fuzzing.seed);
    // Memory that the first requests allocate does not count.
    let warm: Vec<_> = PUSHED.iter().map(|path| attack.push(path, Vec::new(), b"{}".to_vec())).collect();
    attack.send(warm).await;
    let before = peak_memory(attack.dev.pid());

    loop {
        let requests = attack.near_misses();
        attack.send(requests).await;
        for _ in 0..4 {
            attack.send(attack.bombs()).await;
        }
        if !fuzzing.goes_on() {
            break;
        }
    }

    let (sent, slowest) = *attack.sent.lock().unwrap();
    println!("{sent} requests, the slowest took {slowest:?}");
    let grown = peak_memory(attack.dev.pid()).saturating_sub(before);
    println!("at its peak the process was {} MiB larger than before", grown >> 20);
    assert!(grown < MAX_GROWTH, "it grew by {} MiB", grown >> 20);
    assert_eq!(attack.dev.get("/workflows/hello").await["name"], "hello", "it serves on");
    let log = std::fs::read_to_string(project.log()).unwrap();
    assert!(!log.contains("panicked"), "{log}");
}
