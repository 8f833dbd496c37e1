//! All functions on a Postgres and a local broker, as `ebb dev` mounts them, without the folder and the port.

use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use api::{Access, Api, Links};
use auth::{Authenticator, Issuer, Policy, PushAuth};
use bus::local::{Broker, Faults};
use bus::{Endpoint, Subscription, SystemClock};
use execute::{Executor, Runner, Worker};
use host::{App, Connected, Secrets};
use model::{Clock, RunId, RunState, Topic};
use runtime::Settings;
use serde_json::json;
use store::RunRecord;
use tempfile::TempDir;

pub(crate) const PUSHER: &str = "pusher@example.com";
pub(crate) const AUDIENCE: &str = "push";

/// Generating a key is slow, so all tests share one.
pub(crate) static ISSUER: LazyLock<Arc<Issuer>> =
    LazyLock::new(|| Arc::new(Issuer::generate("https://issuer.example")));

/// The token of an admin of every tenant, for the API.
pub(crate) fn token() -> String {
    let expires = SystemClock.now().timestamp() + 3600;
    ISSUER.sign(&json!({
        "iss": ISSUER.url(), "sub": "1", "aud": "api", "email": "ada@example.com", "email_verified": true, "exp": expires,
    }))
}

pub(crate) struct World {
    base: testkit::World<Broker, SystemClock>,
    pub(crate) app: App,
    /// The folder of the workers' secrets, with a folder for each tenant.
    pub(crate) secrets: TempDir,
}

impl Deref for World {
    type Target = testkit::World<Broker, SystemClock>;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        let broker = Broker::new(Arc::new(SystemClock), ISSUER.clone(), PUSHER, Faults::default());
        let base = testkit::World::on_postgres(broker, SystemClock).await.with(settings);
        let verifier = ISSUER.verifier(AUDIENCE);
        let app = base.app(PushAuth::Oidc { verifier, service_account: PUSHER.into() });
        let secrets = tempfile::tempdir().unwrap();
        // The servers that workflows of tests call are on this machine.
        let runner = Runner::new(base.runtime.clock().clone(), ".")
            .with_secrets_in(secrets.path())
            .with_egress_policy(host::EgressPolicy::allow_internal());
        let executor = Executor::new(base.runtime.clone(), Worker::new(base.runtime.clone()), runner);
        for (topic, router) in [
            (Topic::Triggers, trigger::router(app.clone(), None)),
            (Topic::Evaluations, evaluate::router(app.clone())),
            (Topic::Work("light".into()), execute::router_with(app.clone(), executor)),
            (Topic::Management, sweep::router(app.clone())),
        ] {
            let endpoint = Endpoint::Router(router, "/push".into());
            base.bus.subscribe(&topic, Subscription::new(topic.id(), endpoint, AUDIENCE));
        }
        Self { base, app, secrets }
    }

    /// Serves the API, which knows the same secrets as the workers. Returns its address.
    pub(crate) async fn serve_api(&self) -> String {
        let policy = Policy::read("@example.com=admin:*").unwrap();
        let access = Access::new(Authenticator::new([ISSUER.verifier("api").into()]), policy);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let connected = Connected { app: self.app.clone(), ..self.connected(PushAuth::None) };
        let secrets = Secrets::default().with_folder(self.secrets.path().to_owned());
        let api = Api { secrets, ..Api::new(connected, access, Links::local(&url)) };
        let router = trigger::router(self.app.clone(), Some(api));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        url
    }

    /// Gives a tenant a secret.
    pub(crate) fn write_secret(&self, tenant: &str, name: &str, value: &str) {
        let folder = self.secrets.path().join(tenant);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), value).unwrap();
    }

    /// The run once no message is in flight.
    pub(crate) async fn finished(&self, run: RunId) -> RunRecord {
        self.bus.idle().await;
        self.run(run).await
    }

    /// The state of a run once no message is in flight.
    pub(crate) async fn state(&self, run: RunId) -> RunState {
        self.finished(run).await.run.state
    }
}
