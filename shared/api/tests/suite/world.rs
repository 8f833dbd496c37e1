//! An API on a database of its own, at a time that stands still, with a bus that nobody listens to.

use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use auth::{Authenticator, Issuer, Policy, PushAuth};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bus::SystemClock;
use chrono::TimeDelta;
use ebbflow_api::{Access, Api, Links, router};
use host::{App, Connected};
use model::message::TaskResult;
use model::{Clock, Failure, InstalledQueue, Instant, Queues, RunId};
use runtime::Settings;
use serde_json::{Value, json};
use testkit::{ManualClock, RecordingBus};
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

/// Making a key takes a while: all tests share one.
pub(crate) static ISSUER: LazyLock<Issuer> = LazyLock::new(|| Issuer::generate("https://issuer.test"));

/// The pauses between two tries are shorter.
const LONG_WAIT: TimeDelta = TimeDelta::seconds(10);

/// The time of a world: the machine's, or one that only the test moves. Long waits end when it does; the pauses after which
/// conflicts are tried again are over at once.
#[derive(Clone)]
pub(crate) enum Time {
    Machine,
    Manual(ManualClock),
}

#[async_trait]
impl Clock for Time {
    fn now(&self) -> Instant {
        match self {
            Self::Machine => SystemClock.now(),
            Self::Manual(clock) => clock.now(),
        }
    }

    async fn wait_until(&self, instant: Instant) {
        match self {
            Self::Machine => SystemClock.wait_until(instant).await,
            Self::Manual(clock) if instant - clock.now() < LONG_WAIT => {}
            Self::Manual(clock) => clock.wait_until(instant).await,
        }
    }
}

pub(crate) fn now() -> Instant {
    Instant::from_timestamp(1_800_000_000, 0).unwrap()
}

pub(crate) struct World {
    base: Arc<testkit::World<RecordingBus, Time>>,
    router: Router,
}

impl Deref for World {
    type Target = testkit::World<RecordingBus, Time>;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
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
        Self::build(all_are_admins(), Time::Machine, Settings::default()).await
    }

    /// An empty world with these people.
    pub(crate) async fn with_access(access: Access) -> Self {
        Self::build(access.with_queues(usual_queues()), still(), Settings::default()).await
    }

    /// An empty world with a quota of unfinished runs.
    pub(crate) async fn with_run_quota(run_quota: u32) -> Self {
        Self::with_settings(Settings { run_quota: Some(run_quota), ..Settings::default() }).await
    }

    /// An empty world of an installation with these settings.
    pub(crate) async fn with_settings(settings: Settings) -> Self {
        Self::build(all_are_admins(), still(), settings).await
    }

    /// An empty world of an installation that lists these queues.
    pub(crate) async fn with_queues(queues: &[(&str, InstalledQueue)]) -> Self {
        let access = all_are_admins().with_queues(listed(queues));
        Self::build(access, still(), Settings::default()).await
    }

    async fn build(access: Access, time: Time, settings: Settings) -> Self {
        let base = testkit::World::on_postgres(RecordingBus::default(), time).await.with(settings);
        let app = base.app(PushAuth::None);
        Self::serve(Arc::new(base), app, access)
    }

    /// Another process on the same database.
    pub(crate) async fn another_process(&self) -> Self {
        let app = App::new(self.base.process(SystemClock).await, PushAuth::None);
        Self::serve(self.base.clone(), app, all_are_admins())
    }

    fn serve(base: Arc<testkit::World<RecordingBus, Time>>, app: App, access: Access) -> Self {
        let connected = Connected { app, ..base.connected(PushAuth::None) };
        let api = Api::new(connected, access, Links::local("http://localhost:8480"));
        Self { router: router(api), base }
    }

    /// Moves the time of a world that does not follow the machine's.
    pub(crate) fn advance(&self, seconds: i64) {
        match &self.clock {
            Time::Manual(clock) => clock.advance(TimeDelta::seconds(seconds)),
            Time::Machine => panic!("nobody moves the time of the machine"),
        }
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
        self.base.report(run, task, 1, result.map_or_else(TaskResult::Failed, TaskResult::Succeeded)).await;
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

fn still() -> Time {
    Time::Manual(ManualClock::at("2027-01-15T08:00:00Z"))
}

fn listed(queues: &[(&str, InstalledQueue)]) -> Queues {
    Queues::listed(queues.iter().map(|(name, queue)| ((*name).to_owned(), *queue)).collect())
}

/// The queues of an installation of which services execute some and workers others.
fn usual_queues() -> Queues {
    let services = ["light", "heavy"].map(|name| (name, InstalledQueue::Service(None)));
    let pools = ["remote", "remote-far", "remote-gpu"].map(|name| (name, InstalledQueue::Pool));
    listed(&[&services[..], &pools].concat())
}

pub(crate) fn all_are_admins() -> Access {
    let verifier = ISSUER.verifier("api");
    let policy = Policy::read("@example.com=admin:*").unwrap();
    Access::new(Authenticator::new([verifier.into()]), policy).with_queues(usual_queues())
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
