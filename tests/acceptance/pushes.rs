//! Pushes are accepted in every shape that Pub/Sub and CloudEvents allow, and only from the push account.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use bus::envelope;
use model::{Message, RunId, TenantId};
use serde_json::json;
use tower::ServiceExt;

use crate::world::{AUDIENCE, ISSUER, PUSHER, World};

/// A message that requests a run, and the run.
fn request() -> (Message, RunId) {
    let request = testkit::run_requested("example", &json!({}));
    let run = request.run;
    (Message::RunRequested(request), run)
}

fn wrapped(message: &Message) -> Request<Body> {
    let (headers, body) = envelope::wrap(message, "17", model::Instant::UNIX_EPOCH, "trigger", Some(1));
    let mut request = Request::post("/push").body(Body::from(body)).unwrap();
    *request.headers_mut() = headers;
    request
}

fn binary(message: &Message) -> Request<Body> {
    Request::post("/push")
        .header("ce-specversion", "1.0")
        .header("ce-id", "18")
        .header("ce-source", "/test")
        .header("ce-type", message.kind())
        .header("content-type", "application/json")
        .body(Body::from(message.data().to_string()))
        .unwrap()
}

fn structured(message: &Message) -> Request<Body> {
    let event = json!({
        "specversion": "1.0", "id": "19", "source": "/test", "type": message.kind(),
        "datacontenttype": "application/json", "data": message.data(),
    });
    let content = "application/cloudevents+json";
    Request::post("/push").header("content-type", content).body(Body::from(event.to_string())).unwrap()
}

impl World {
    /// Pushes with a token, or without one.
    async fn push(&self, mut request: Request<Body>, token: Option<String>) -> StatusCode {
        if let Some(token) = token {
            request.headers_mut().insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        }
        trigger::router(self.app.clone(), None).oneshot(request).await.unwrap().status()
    }

    fn token(&self, account: &str, audience: &str) -> Option<String> {
        Some(ISSUER.push_token(account, audience, self.app.now()))
    }

    async fn has(&self, run: RunId) -> bool {
        self.store().run(TenantId::DEFAULT, run).await.unwrap().is_some()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_shape_of_a_push_is_accepted_and_creates_one_run() {
    let world = World::new().await;
    world.register(testkit::workflow("a -> b")).await;
    for shape in [wrapped, binary, structured] {
        let (message, run) = request();
        for _ in 0..2 {
            let status = world.push(shape(&message), world.token(PUSHER, AUDIENCE)).await;
            assert_eq!(status, StatusCode::NO_CONTENT);
        }
        assert!(world.has(run).await);
        world.bus.idle().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_push_account_may_push() {
    let world = World::new().await;
    world.register(testkit::workflow("a")).await;
    for (who, token, status) in [
        ("no token", None, StatusCode::UNAUTHORIZED),
        ("no JWT", Some("x.y.z".to_owned()), StatusCode::UNAUTHORIZED),
        ("another audience", world.token(PUSHER, "api"), StatusCode::UNAUTHORIZED),
        ("another account", world.token("someone@example.com", AUDIENCE), StatusCode::FORBIDDEN),
    ] {
        let (message, run) = request();
        assert_eq!(world.push(wrapped(&message), token).await, status, "{who}");
        assert!(!world.has(run).await, "{who}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_can_never_succeed_is_acknowledged_and_dead_lettered_with_the_reason() {
    let world = World::new().await;
    let (unknown_workflow, _) = request();
    let nonsense = Request::post("/push").body(Body::from("no message")).unwrap();
    for (request, reason) in
        [(nonsense, "CloudEvent"), (wrapped(&unknown_workflow), "there is no workflow `example`")]
    {
        let status = world.push(request, world.token(PUSHER, AUDIENCE)).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
        let letters = world.dead_letters().await;
        assert!(letters[0].reason.contains(reason), "{letters:?}");
    }
}
