//! A message is taken in every shape it can come in, and only from those who may push.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use bus::envelope;
use model::message::RunRequested;
use model::{Message, RunId, TenantId};
use serde_json::{Map, json};
use tower::ServiceExt;
use uuid::Uuid;

use crate::world::{AUDIENCE, PUSHER, World};

/// A request for a run, and the run.
fn asked() -> (Message, RunId) {
    let run = RunId(Uuid::now_v7());
    let message = Message::RunRequested(RunRequested {
        run,
        tenant: TenantId::DEFAULT,
        workflow: "example".into(),
        inputs: Map::new(),
        logical_date: None,
        labels: Map::new(),
        trigger: "message".into(),
        parent: None,
        priority: 0,
    });
    (message, run)
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
    /// Pushes with this token, if any.
    async fn push(&self, mut request: Request<Body>, token: Option<String>) -> StatusCode {
        if let Some(token) = token {
            request.headers_mut().insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        }
        trigger::router(self.app.clone(), None).oneshot(request).await.unwrap().status()
    }

    fn token(&self, account: &str, audience: &str) -> Option<String> {
        Some(self.issuer.push_token(account, audience, self.app.now()))
    }

    async fn knows(&self, run: RunId) -> bool {
        self.runtime.store().run(TenantId::DEFAULT, run).await.unwrap().is_some()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_shape_of_a_push_is_taken_once() {
    let world = World::new().await;
    world.register(testkit::workflow("a -> b")).await;
    for shape in [wrapped, binary, structured] {
        let (message, run) = asked();
        for _ in 0..2 {
            let status = world.push(shape(&message), world.token(PUSHER, AUDIENCE)).await;
            assert_eq!(status, StatusCode::NO_CONTENT);
        }
        assert!(world.knows(run).await);
        world.broker.idle().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_else_may_push() {
    let world = World::new().await;
    world.register(testkit::workflow("a")).await;
    for (who, token, status) in [
        ("no token", None, StatusCode::UNAUTHORIZED),
        ("no JWT", Some("x.y.z".to_owned()), StatusCode::UNAUTHORIZED),
        ("another audience", world.token(PUSHER, "api"), StatusCode::UNAUTHORIZED),
        ("another account", world.token("someone@example.com", AUDIENCE), StatusCode::FORBIDDEN),
    ] {
        let (message, run) = asked();
        assert_eq!(world.push(wrapped(&message), token).await, status, "{who}");
        assert!(!world.knows(run).await, "{who}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_never_succeed_is_kept_with_its_reason_and_does_not_come_again() {
    let world = World::new().await;
    let (unknown_workflow, _) = asked();
    let nonsense = Request::post("/push").body(Body::from("no message")).unwrap();
    for (request, reason) in
        [(nonsense, "CloudEvent"), (wrapped(&unknown_workflow), "there is no workflow `example`")]
    {
        let status = world.push(request, world.token(PUSHER, AUDIENCE)).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
        let letters = world.runtime.store().dead_letters(&store::DeadLetterFilter::newest(1)).await.unwrap();
        assert!(letters[0].reason.contains(reason), "{letters:?}");
    }
}
