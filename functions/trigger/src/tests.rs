mod events;
mod webhooks;

use std::sync::Arc;

use async_trait::async_trait;
use auth::PushAuth;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use bus::envelope::BusMessage;
use bus::{Bus, SystemClock};
use language::{FileKind, SourceFile};
use model::message::RunNudged;
use model::{Clock, RunId, TenantId};
use runtime::Runtime;
use serde_json::{Map, Value, json};
use store::{Memory, NewVersion, Store};
use tower::ServiceExt;
use uuid::Uuid;

use super::*;

const HELLO: &str = "{name: hello, inputs: {who: {type: string}}, tasks: [{name: a, type: echo, config: {value: '{{ inputs.who }}'}}]}";

struct Mute;

#[async_trait]
impl Bus for Mute {
    async fn publish(&self, _: &[Message]) -> Result<(), bus::Error> {
        Ok(())
    }

    async fn ping(&self) -> Result<(), bus::Error> {
        Ok(())
    }
}

/// An app with the workflow `hello`, pushed to by anyone.
async fn app() -> App {
    app_with(Arc::new(SystemClock), &[HELLO]).await
}

/// An app with these workflows.
async fn app_with(clock: Arc<dyn Clock>, texts: &[&str]) -> App {
    app_on(Arc::new(Memory::default()), clock, texts).await
}

/// The same on that store.
async fn app_on(store: Arc<dyn Store>, clock: Arc<dyn Clock>, texts: &[&str]) -> App {
    let runtime = Runtime::new(store, Arc::new(Mute), clock);
    let app = App::new(Arc::new(runtime), PushAuth::None);
    register(&app, texts).await;
    app
}

/// Registers these workflows.
async fn register(app: &App, texts: &[&str]) {
    let file = |text: &&str| {
        let path = text.lines().find_map(|line| line.split("name: ").nth(1)).unwrap_or_default();
        let path = path.split([',', '}']).next().unwrap_or_default().trim().to_owned();
        SourceFile { path, kind: FileKind::Workflow, text: (*text).into() }
    };
    let compiled = language::compile(&texts.iter().map(file).collect::<Vec<_>>());
    assert!(compiled.diagnostics.is_empty(), "{:#?}", compiled.diagnostics);
    for definition in compiled.definitions {
        let (workflow, source, hash) = (definition.workflow, definition.source, definition.hash);
        let new = NewVersion {
            tenant: TenantId::DEFAULT,
            workflow,
            source,
            hash,
            by: "test".into(),
            at: app.now(),
        };
        app.runtime.store().register(&new).await.unwrap();
    }
}

fn request(workflow: &str, inputs: Value) -> RunRequested {
    let inputs = inputs.as_object().cloned().unwrap_or_default();
    let (run, tenant) = (RunId(Uuid::from_u128(7)), TenantId::DEFAULT);
    RunRequested {
        run,
        tenant,
        workflow: workflow.into(),
        inputs,
        logical_date: None,
        labels: Map::new(),
        trigger: "message".into(),
        parent: None,
        priority: 0,
    }
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
async fn a_message_creates_the_run_it_asks_for_and_its_copy_creates_nothing() {
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
        (Message::RunRequested(request("hello", json!({}))), "the inputs do not fit the workflow"),
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
