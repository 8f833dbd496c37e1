//! An API on a database of its own, at a time that stands still, with a bus that nobody listens to.

use std::sync::{Arc, LazyLock, Mutex};

use accounts::Accounts;
use async_trait::async_trait;
use auth::{Authenticator, Issuer, Keys, Policy, PushAuth, Verifier};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bus::{Bus, SystemClock};
use ebbflow_api::{Access, Api, Feed, Links, router};
use engine::Command;
use host::App;
use model::message::TaskResult;
use model::{Clock, Failure, Instant, Message, RunId, TaskIndex};
use runtime::{Runtime, Settled};
use serde_json::{Value, json};
use store::Postgres;
use tower::ServiceExt;

use crate::contract;

pub(crate) const HELLO: &str = "
name: hello
description: Greets.
inputs:
  who: {type: string, default: world}
  times: {type: integer, default: 1}
tasks:
  - name: greet
    type: echo
    config: {value: \"hello {{ inputs.who }}\"}
    retry_policy: {max_retries: 2, initial_delay_seconds: 10, jitter: 0}
  - name: rest
    type: sleep
    depends_on: [greet]
    config: {duration: 1h}
  - name: leave
    type: noop
    depends_on: [rest]
";

/// Several tests run at the same time, on one server.
const CONNECTIONS: u32 = 5;

/// Making a key takes a while: all tests share one.
pub(crate) static ISSUER: LazyLock<Issuer> = LazyLock::new(|| Issuer::generate("https://issuer.test"));

struct Still;

#[async_trait]
impl Clock for Still {
    fn now(&self) -> Instant {
        now()
    }

    async fn wait_until(&self, _: Instant) {}
}

/// Nobody listens; what was published is kept.
#[derive(Default)]
struct Mute(Mutex<Vec<Message>>);

#[async_trait]
impl Bus for Mute {
    async fn publish(&self, messages: &[Message]) -> Result<(), bus::Error> {
        self.0.lock().unwrap().extend_from_slice(messages);
        Ok(())
    }

    async fn ping(&self) -> Result<(), bus::Error> {
        Ok(())
    }
}

pub(crate) fn now() -> Instant {
    Instant::from_timestamp(1_800_000_000, 0).unwrap()
}

pub(crate) struct World {
    pub(crate) runtime: Arc<Runtime>,
    bus: Arc<Mute>,
    router: Router,
    _database: testkit::Database,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl World {
    /// With nothing in it, where everyone of example.com is admin.
    pub(crate) async fn new() -> Self {
        Self::with_access(all_are_admins()).await
    }

    /// The same on the machine's clock, which the database's agrees with.
    pub(crate) async fn on_machine_time() -> Self {
        Self::with_clock(all_are_admins(), Arc::new(SystemClock)).await
    }

    /// An empty world with these people.
    pub(crate) async fn with_access(access: Access) -> Self {
        Self::with_clock(access, Arc::new(Still)).await
    }

    /// An empty world with a maximum duration of attempts on these queues, in seconds.
    pub(crate) async fn with_attempt_seconds(seconds: std::collections::BTreeMap<String, u32>) -> Self {
        Self::with_access(all_are_admins().with_attempt_seconds(seconds)).await
    }

    async fn with_clock(access: Access, clock: Arc<dyn Clock>) -> Self {
        let database = testkit::migrated(Postgres::migrate).await;
        let store = Postgres::connect(&database.url, CONNECTIONS).await.unwrap();
        let (reads, accounts) = (read::Database::new(&store), Accounts::new(&store));
        let bus = Arc::<Mute>::default();
        let runtime = Arc::new(Runtime::new(Arc::new(store), bus.clone(), clock));
        let app = App::new(runtime.clone(), PushAuth::None);
        let links = Links::local("http://localhost:8480");
        let feed = Feed::default();
        let api = Api { app, database: reads, accounts, access, links, pages_open: false, feed };
        Self { runtime, bus, router: router(api), _database: database }
    }

    /// What was published so far.
    pub(crate) fn published(&self) -> Vec<Message> {
        self.bus.0.lock().unwrap().clone()
    }

    /// With the workflow `hello`.
    pub(crate) async fn with_hello() -> Self {
        let world = Self::new().await;
        assert_eq!(world.post("/workflows", HELLO).await.status, StatusCode::CREATED);
        world
    }

    /// Registers a workflow and starts a run of it.
    pub(crate) async fn play(&self, text: &str, inputs: Value) -> RunId {
        let registered = self.post("/workflows", text.to_owned()).await;
        assert_eq!(registered.status, StatusCode::CREATED, "{}", registered.body);
        self.start_of(registered.body["registered"][0]["name"].as_str().unwrap(), inputs).await
    }

    /// Starts a run of `hello`.
    pub(crate) async fn start(&self) -> RunId {
        self.start_of("hello", json!({})).await
    }

    /// Starts a run of a workflow.
    pub(crate) async fn start_of(&self, workflow: &str, inputs: Value) -> RunId {
        let body = json!({"inputs": inputs}).to_string();
        let answer = self.post(&format!("/workflows/{workflow}/runs"), body).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
        answer.body["id"].as_str().unwrap().parse().unwrap()
    }

    /// Reports what came of the first attempt at a task, as an executor would.
    pub(crate) async fn report(&self, run: RunId, task: u32, result: Result<Value, Failure>) {
        let result = result.map_or_else(TaskResult::Failed, TaskResult::Succeeded);
        let command =
            Command::Report { task: TaskIndex(task), attempt: 1, worker: None, started_at: now(), result };
        assert_eq!(self.runtime.settle(run, command).await.unwrap(), Settled::Applied);
    }

    pub(crate) fn router(&self) -> Router {
        self.router.clone()
    }

    /// Sends a request and leaves what it is answered with to be read.
    pub(crate) async fn open(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        self.request(Method::GET, path, headers, "").await
    }

    /// Sends a request with a good token, unless the headers bring another one, and leaves the answer to be read.
    pub(crate) async fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Response {
        let mut request = Request::builder().method(method).uri(format!("/api/v1{path}"));
        if headers.iter().all(|(name, _)| *name != "authorization") {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", token("api", 3600)));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.router.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Body>) -> Answer {
        self.send(Method::POST, path, &[], body).await
    }

    /// Sends a request with a good token, unless the headers bring another one.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let response = self.request(method.clone(), path, headers, body).await;
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let json = parts.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
        if body.is_empty() || !json {
            return Answer { status: parts.status, headers: parts.headers, body: Value::Null };
        }
        let body = serde_json::from_slice(&body).unwrap_or_else(|_| panic!("no JSON: {body:?}"));
        contract::check(&method, path, parts.status, &body);
        Answer { status: parts.status, headers: parts.headers, body }
    }
}

fn all_are_admins() -> Access {
    let verifier = Verifier::new([ISSUER.url()], "api", Keys::fixed(&ISSUER.jwks()));
    let policy = Policy::read("@example.com=admin:*").unwrap();
    Access::new(Authenticator::new([verifier.into()]), policy)
}

/// A token of Ada for that audience, valid for this number of seconds.
pub(crate) fn token(audience: &str, seconds: i64) -> String {
    sign(&ada(ISSUER.url(), audience, seconds))
}

/// A token that says this.
pub(crate) fn sign(claims: &Value) -> String {
    ISSUER.sign(claims)
}

fn ada(issuer: &str, audience: &str, seconds: i64) -> Value {
    json!({
        "iss": issuer,
        "sub": "1234",
        "aud": audience,
        "email": "ada@example.com",
        "email_verified": true,
        "exp": now().timestamp() + seconds,
    })
}

/// Tokens of Ada, who may everything, each with one thing wrong; none for no token at all.
pub(crate) fn bad_tokens() -> Vec<(&'static str, Option<String>)> {
    static OTHER: LazyLock<Issuer> = LazyLock::new(|| Issuer::generate("https://issuer.test"));
    let right = ada(ISSUER.url(), "api", 3600);
    let (ours, theirs) = (sign(&right), OTHER.sign(&right));
    let (header, _) = ours.split_once('.').unwrap();
    let (_, foreign) = theirs.split_once('.').unwrap();
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let kid: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
    let unsigned = json!({"alg": "none", "typ": "JWT", "kid": kid["kid"]});
    vec![
        ("no token", None),
        ("no JWT", Some("nonsense".into())),
        ("expired", Some(sign(&ada(ISSUER.url(), "api", -60)))),
        ("wrong audience", Some(sign(&ada(ISSUER.url(), "push", 3600)))),
        ("wrong issuer", Some(sign(&ada("https://else.test", "api", 3600)))),
        ("alg none", Some(format!("{}.{}.", part(&unsigned), part(&right)))),
        ("wrong key", Some(format!("{header}.{foreign}"))),
        ("unknown kid", Some(theirs.clone())),
        ("unknown service token", Some(auth::service_token::generate().0)),
    ]
}
