//! Events and webhooks of tenants: each reaches the triggers of the one whose it is, and of nobody else.

use auth::PushAuth;
use aws_lc_rs::hmac;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use host::{App, Secrets};
use language::{FileKind, SourceFile};
use model::{Clock, TenantId};
use serde_json::{Value, json};
use store::{DeadLetterFilter, RunFilter};
use tower::ServiceExt;

use crate::world::{TENANT, World};

const HEARD: &str = "
name: heard
triggers:
  - {name: told, event: thing}
  - {name: partner, webhook: {secret: '{{ secrets.PARTNER }}'}}
tasks: [{name: a, type: noop}]
";

struct Company {
    world: World,
    acme: TenantId,
    secrets: tempfile::TempDir,
}

impl Company {
    /// The default tenant and another one, with the same workflow.
    async fn new() -> Self {
        let world = World::at("2027-01-15T08:00:00Z");
        world.write(HEARD).await;
        let acme = world.store().tenant("acme", world.now()).await.unwrap();
        let file = SourceFile { path: "heard".into(), kind: FileKind::Workflow, text: HEARD.into() };
        let compiled = language::compile(&[file]);
        world.runtime.register(acme, compiled.definitions, "test").await.unwrap();
        let secrets = tempfile::tempdir().unwrap();
        std::fs::write(secrets.path().join("PARTNER"), "s3cret").unwrap();
        Self { world, acme, secrets }
    }

    async fn ask(&self, request: Request<Body>) -> StatusCode {
        let app = App::new(self.world.runtime.clone(), PushAuth::None);
        let secrets = Secrets::default().with_folder(self.secrets.path().to_owned());
        trigger::router_with(app, None, secrets).oneshot(request).await.unwrap().status()
    }

    async fn push(&self, path: &str, event: &Value) -> StatusCode {
        let request = Request::post(path).header("content-type", "application/cloudevents+json");
        self.ask(request.body(Body::from(event.to_string())).unwrap()).await
    }

    async fn call(&self, path: &str) -> StatusCode {
        let at = self.world.clock.now().timestamp().to_string();
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"s3cret");
        let tag = hmac::sign(&key, format!("{at}.{path}").as_bytes());
        let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let request = Request::post(path).header("x-ebb-timestamp", at);
        let request = request.header("x-ebb-signature", format!("v1={hex}"));
        self.ask(request.body(Body::from(path.to_owned())).unwrap()).await
    }

    /// How many runs the default tenant has, and the other one.
    async fn runs(&self) -> (usize, usize) {
        let filter = RunFilter { limit: 100, ..RunFilter::default() };
        let count = async |tenant| self.world.store().runs(tenant, &filter).await.unwrap().len();
        (count(TENANT).await, count(self.acme).await)
    }
}

fn thing(id: &str) -> Value {
    json!({"specversion": "1.0", "id": id, "source": "/somewhere", "type": "thing"})
}

#[tokio::test]
async fn an_event_is_the_default_tenants_unless_it_or_its_address_names_another() {
    let company = Company::new().await;
    assert_eq!(company.push("/push", &thing("1")).await, StatusCode::NO_CONTENT);
    assert_eq!(company.runs().await, (1, 0));
    let mut named = thing("2");
    named["ebbtenant"] = json!("acme");
    for _ in 0..2 {
        assert_eq!(company.push("/push", &named).await, StatusCode::NO_CONTENT);
    }
    assert_eq!(company.runs().await, (1, 1));
    assert_eq!(company.push("/push?tenant=acme", &thing("3")).await, StatusCode::NO_CONTENT);
    assert_eq!(company.runs().await, (1, 2));
    // Whoever set the address up is believed, and not whoever sends the event.
    assert_eq!(company.push("/push?tenant=default", &named).await, StatusCode::NO_CONTENT);
    assert_eq!(company.runs().await, (2, 2));
}

#[tokio::test]
async fn an_event_of_nobody_is_a_dead_letter() {
    let company = Company::new().await;
    assert_eq!(company.push("/push?tenant=acne", &thing("1")).await, StatusCode::NO_CONTENT);
    assert_eq!(company.runs().await, (0, 0));
    let letters = company.world.store().dead_letters(&DeadLetterFilter::newest(9)).await.unwrap();
    assert_eq!(letters[0].reason, "there is no tenant `acne`");
}

#[tokio::test]
async fn a_webhook_is_of_the_tenant_in_its_path() {
    let company = Company::new().await;
    assert_eq!(company.call("/api/v1/hooks/heard/partner").await, StatusCode::CREATED);
    assert_eq!(company.runs().await, (1, 0));
    assert_eq!(company.call("/api/v1/tenants/acme/hooks/heard/partner").await, StatusCode::CREATED);
    assert_eq!(company.runs().await, (1, 1));
    let unknown = company.call("/api/v1/tenants/acne/hooks/heard/partner").await;
    assert_eq!(unknown, StatusCode::UNAUTHORIZED, "who does not know is told nothing");
    assert_eq!(company.runs().await, (1, 1));
}
