mod events;
mod quotas;
mod webhooks;

use auth::PushAuth;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use bus::SystemClock;
use bus::envelope::BusMessage;
use model::message::RunNudged;
use model::{Clock, RunId, TenantId};
use serde_json::{Value, json};
use testkit::{SilentBus, World};
use tower::ServiceExt;
use uuid::Uuid;

use super::*;

const HELLO: &str = "{name: hello, inputs: {who: {type: string}}, tasks: [{name: a, type: echo, config: {value: '{{ inputs.who }}'}}]}";

/// An app with the workflow `hello`. Pushes need no token.
async fn app() -> App {
    app_with(SystemClock, &[HELLO]).await
}

/// An app in memory with these workflows.
async fn app_with(clock: impl Clock + Clone + 'static, texts: &[&str]) -> App {
    app_of(&World::in_memory(SilentBus, clock), texts).await
}

/// The app of a world, with these workflows.
async fn app_of<C: Clock + Clone + 'static>(world: &World<SilentBus, C>, texts: &[&str]) -> App {
    world.write_all(texts).await;
    world.app(PushAuth::None)
}

fn request(workflow: &str, inputs: Value) -> RunRequested {
    RunRequested { run: RunId(Uuid::from_u128(7)), ..testkit::run_requested(workflow, &inputs) }
}

async fn push(app: &App, message: &Message) -> StatusCode {
    let body = BusMessage::new(message, "m-1", SystemClock.now()).push_body("triggers", Some(1));
    let request = Request::post("/push").body(Body::from(body)).unwrap();
    router(app.clone(), None).oneshot(request).await.unwrap().status()
}

async fn reasons(app: &App) -> Vec<String> {
    let letters = app.runtime.store().dead_letters(&store::DeadLetterFilter::newest(10)).await.unwrap();
    letters.into_iter().map(|letter| letter.reason).collect()
}

#[tokio::test]
async fn a_message_creates_the_requested_run_and_its_copy_creates_nothing() {
    let app = app().await;
    let message = Message::RunRequested(request("hello", json!({"who": "Ada"})));
    for _ in 0..2 {
        assert_eq!(push(&app, &message).await, StatusCode::NO_CONTENT);
    }
    let record =
        app.runtime.store().run(TenantId::DEFAULT, RunId(Uuid::from_u128(7))).await.unwrap().unwrap();
    assert_eq!((record.facts.trigger_kind.as_str(), &record.facts.inputs["who"]), ("message", &json!("Ada")));
    assert_eq!(reasons(&app).await, [""; 0]);
}

#[tokio::test]
async fn a_request_that_can_never_succeed_is_dead_lettered_with_its_reason() {
    for (message, reason) in [
        (Message::RunRequested(request("helo", json!({}))), "there is no workflow `helo`"),
        (Message::RunRequested(request("hello", json!({}))), "the inputs are invalid"),
        (
            Message::RunNudged(RunNudged { run: RunId(Uuid::nil()) }),
            "trigger does not handle `dev.ebbflow.run.nudged.v1`",
        ),
    ] {
        let app = app().await;
        assert_eq!(push(&app, &message).await, StatusCode::NO_CONTENT);
        let reasons = reasons(&app).await;
        assert!(reasons.len() == 1 && reasons[0].starts_with(reason), "{reasons:?}");
    }
}

#[tokio::test]
async fn without_an_audience_there_is_no_api() {
    let request = Request::get("/api/v1/runs").body(Body::empty()).unwrap();
    let response = router(app().await, None).oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}
