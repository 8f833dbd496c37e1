//! Events and webhooks reach the triggers of their own tenant and of no other.

use auth::PushAuth;
use aws_lc_rs::hmac;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use host::Secrets;
use language::FileKind;
use model::{Clock, TenantId};
use serde_json::{Value, json};
use store::RunFilter;
use tower::ServiceExt;

use crate::world::{TENANT, World};

const LISTENER: &str = "
name: listener
triggers:
  - {name: thing, event: thing}
  - {name: partner, webhook: {secret: '{{ secrets.PARTNER }}'}}
tasks: [{name: a, type: noop}]
";

struct TwoTenants {
    world: World,
    acme: TenantId,
    secrets: tempfile::TempDir,
}

impl TwoTenants {
    /// The default tenant and another one, with the same workflow.
    async fn new() -> Self {
        let world = World::at("2027-01-15T08:00:00Z");
        let acme = world.store().tenant("acme", world.now()).await.unwrap();
        for tenant in [TENANT, acme] {
            world.register_all(tenant, testkit::compile(&[(FileKind::Workflow, LISTENER)])).await;
        }
        let secrets = tempfile::tempdir().unwrap();
        let tenants = Self { world, acme, secrets };
        tenants.write_secret("default", "s3cret");
        tenants
    }

    /// Gives a tenant the secret that its webhook is signed with.
    fn write_secret(&self, tenant: &str, value: &str) {
        let folder = self.secrets.path().join(tenant);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("PARTNER"), value).unwrap();
    }

    async fn send(&self, request: Request<Body>) -> StatusCode {
        let app = self.world.app(PushAuth::None);
        let secrets = Secrets::default().with_folder(self.secrets.path().to_owned());
        trigger::router_with(app, None, secrets).oneshot(request).await.unwrap().status()
    }

    async fn push(&self, path: &str, event: &Value) -> StatusCode {
        let request = Request::post(path).header("content-type", "application/cloudevents+json");
        self.send(request.body(Body::from(event.to_string())).unwrap()).await
    }

    /// Calls a webhook, signed with this secret.
    async fn call(&self, path: &str, secret: &str) -> StatusCode {
        let at = self.world.clock.now().timestamp().to_string();
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let tag = hmac::sign(&key, format!("{at}.{path}").as_bytes());
        let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let request = Request::post(path).header("x-ebb-timestamp", at);
        let request = request.header("x-ebb-signature", format!("v1={hex}"));
        self.send(request.body(Body::from(path.to_owned())).unwrap()).await
    }

    /// The number of runs of the default tenant, and of the other one.
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
async fn an_event_belongs_to_the_default_tenant_unless_it_or_the_push_url_names_another() {
    let tenants = TwoTenants::new().await;
    assert_eq!(tenants.push("/push", &thing("1")).await, StatusCode::NO_CONTENT);
    assert_eq!(tenants.runs().await, (1, 0));
    let mut named = thing("2");
    named["ebbtenant"] = json!("acme");
    for _ in 0..2 {
        assert_eq!(tenants.push("/push", &named).await, StatusCode::NO_CONTENT);
    }
    assert_eq!(tenants.runs().await, (1, 1));
    assert_eq!(tenants.push("/push?tenant=acme", &thing("3")).await, StatusCode::NO_CONTENT);
    assert_eq!(tenants.runs().await, (1, 2));
    // The operator sets the push URL, so it takes precedence over the sender of the event.
    assert_eq!(tenants.push("/push?tenant=default", &named).await, StatusCode::NO_CONTENT);
    assert_eq!(tenants.runs().await, (2, 2));
}

#[tokio::test]
async fn an_event_of_an_unknown_tenant_is_dead_lettered() {
    let tenants = TwoTenants::new().await;
    assert_eq!(tenants.push("/push?tenant=acne", &thing("1")).await, StatusCode::NO_CONTENT);
    assert_eq!(tenants.runs().await, (0, 0));
    let letters = tenants.world.dead_letters().await;
    assert_eq!(letters[0].reason, "there is no tenant `acne`");
}

const OWN: &str = "/api/v1/hooks/listener/partner";
const OF_ACME: &str = "/api/v1/tenants/acme/hooks/listener/partner";

#[tokio::test]
async fn a_webhook_belongs_to_the_tenant_in_its_path() {
    let tenants = TwoTenants::new().await;
    tenants.write_secret("acme", "s3cret-of-acme");
    assert_eq!(tenants.call(OWN, "s3cret").await, StatusCode::CREATED);
    assert_eq!(tenants.runs().await, (1, 0));
    assert_eq!(tenants.call(OF_ACME, "s3cret-of-acme").await, StatusCode::CREATED);
    assert_eq!(tenants.runs().await, (1, 1));
    let unknown = tenants.call("/api/v1/tenants/acne/hooks/listener/partner", "s3cret").await;
    assert_eq!(unknown, StatusCode::UNAUTHORIZED, "an unauthenticated caller learns nothing");
    assert_eq!(tenants.runs().await, (1, 1));
}

#[tokio::test]
async fn a_webhook_is_signed_with_a_secret_of_its_own_tenant() {
    let tenants = TwoTenants::new().await;
    assert_eq!(tenants.call(OF_ACME, "s3cret").await, StatusCode::UNAUTHORIZED, "acme has no such secret");
    tenants.write_secret("acme", "s3cret-of-acme");
    assert_eq!(tenants.call(OF_ACME, "s3cret").await, StatusCode::UNAUTHORIZED);
    assert_eq!(tenants.call(OWN, "s3cret-of-acme").await, StatusCode::UNAUTHORIZED);
    assert_eq!(tenants.runs().await, (0, 0));
    assert_eq!(tenants.call(OF_ACME, "s3cret-of-acme").await, StatusCode::CREATED);
}
