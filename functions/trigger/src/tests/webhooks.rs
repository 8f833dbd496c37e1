//! Signed webhooks: only valid signatures are accepted, and each once.

use std::sync::{Arc, Mutex};

use api::Links;
use api::access::{Access, Rates};
use auth::{Authenticator, Policy};
use aws_lc_rs::hmac;
use chrono::TimeDelta;
use host::Connected;
use runtime::Settings;
use testkit::ManualClock;

use super::events::clock;
use super::*;

const HOOKED: &str = "
name: hooked
inputs: {n: {type: integer}}
triggers:
  - {name: partner, webhook: {secret: '{{ secrets.PARTNER }}'}, filter: event.data.n != 0, inputs: {n: '{{ event.data.n }}'}}
tasks: [{name: a, type: noop}]
";

struct Partner {
    app: App,
    clock: ManualClock,
    secrets: tempfile::TempDir,
    api: Option<Api>,
    _world: Option<World>,
}

/// A request as a partner sends it.
struct Sent<'a> {
    secret: &'a str,
    at: TimeDelta,
    id: Option<&'a str>,
    body: &'a str,
    path: &'a str,
}

const SOUND: Sent<'_> =
    Sent { secret: "s3cret", at: TimeDelta::zero(), id: None, body: r#"{"n": 1}"#, path: "hooked/partner" };

impl Partner {
    async fn new() -> Self {
        let clock = clock();
        let app = app_with(clock.clone(), &[HOOKED, HELLO]).await;
        let secrets = tempfile::tempdir().unwrap();
        std::fs::create_dir(secrets.path().join("default")).unwrap();
        std::fs::write(secrets.path().join("default/PARTNER"), "s3cret\n").unwrap();
        Self { app, clock, secrets, api: None, _world: None }
    }

    /// The same with rate limits and quotas.
    async fn bounded(rates: Rates, run_quota: Option<u32>) -> Self {
        let partner = Self::new().await;
        let world = World::on_postgres(SilentBus, partner.clock.clone()).await;
        let world = world.with(Settings { run_quota, ..Settings::default() });
        let app = app_of(&world, &[HOOKED, HELLO]).await;
        let access = Access::new(Authenticator::new([]), Policy::read("").unwrap()).with_rates(rates);
        let connected = Connected { app: app.clone(), ..world.connected(PushAuth::None) };
        let api = Api::new(connected, access, Links::local("http://localhost"));
        Self { app, api: Some(api), _world: Some(world), ..partner }
    }

    async fn send(&self, sent: &Sent<'_>) -> (u16, Value) {
        let (timestamp, pairs) = self.sign(sent);
        self.post(sent, &timestamp, &format!("v1={}", pairs.concat())).await
    }

    /// The timestamp and the signature, as two digits for each byte.
    fn sign(&self, sent: &Sent<'_>) -> (String, Vec<String>) {
        let timestamp = (self.clock.now() + sent.at).timestamp().to_string();
        let key = hmac::Key::new(hmac::HMAC_SHA256, sent.secret.as_bytes());
        let tag = hmac::sign(&key, format!("{timestamp}.{}", sent.body).as_bytes());
        (timestamp, tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    async fn post(&self, sent: &Sent<'_>, timestamp: &str, signature: &str) -> (u16, Value) {
        let mut request = Request::post(format!("/api/v1/hooks/{}", sent.path))
            .header("x-ebb-timestamp", timestamp)
            .header("x-ebb-signature", signature);
        if let Some(id) = sent.id {
            request = request.header("x-ebb-id", id);
        }
        let request = request.body(Body::from(sent.body.to_owned())).unwrap();
        let secrets = Secrets::default().with_folder(self.secrets.path().to_owned());
        let response =
            router_with(self.app.clone(), self.api.clone(), secrets).oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }
}

#[tokio::test]
async fn a_signed_request_starts_a_run_and_returns_its_id() {
    let partner = Partner::new().await;
    let (status, body) = partner.send(&SOUND).await;
    assert_eq!(status, 201, "{body}");
    let run: RunId = body["run_id"].as_str().unwrap().parse().unwrap();
    let record = partner.app.runtime.store().run(TenantId::DEFAULT, run).await.unwrap().unwrap();
    assert_eq!((record.facts.trigger_kind.as_str(), &record.facts.inputs["n"]), ("webhook", &json!(1)));
}

#[tokio::test]
async fn webhooks_count_towards_the_rate_limits_and_quotas_of_the_tenant() {
    let one = |body| Sent { body, ..SOUND };
    let runs = Partner::bounded(Rates::default(), Some(1)).await;
    assert_eq!(runs.send(&one(r#"{"n": 1}"#)).await.0, 201);
    let (status, body) = runs.send(&one(r#"{"n": 2}"#)).await;
    assert_eq!(status, 429, "{body}");
    assert!(body["message"].as_str().unwrap().contains("EBB_QUOTA_RUNS"), "{body}");
    let rate = Partner::bounded(Rates { caller: Some(1), tenant: None }, None).await;
    let mut answers = Vec::new();
    for body in [r#"{"n": 1}"#, r#"{"n": 2}"#, r#"{"n": 3}"#] {
        answers.push(rate.send(&one(body)).await.0);
    }
    assert_eq!(answers, [201, 201, 429], "a burst of two seconds is allowed");
    assert_eq!(
        rate.send(&Sent { secret: "guess", ..SOUND }).await.0,
        401,
        "unauthenticated callers use up nothing"
    );
}

#[tokio::test]
async fn a_wrong_signature_is_refused_without_a_hint() {
    let partner = Partner::new().await;
    let wrong = Sent { secret: "guess", ..SOUND };
    let elsewhere = Sent { path: "hooked/nothing", ..SOUND };
    let (status, body) = partner.send(&wrong).await;
    assert_eq!(status, 401);
    let (other, problem) = partner.send(&elsewhere).await;
    assert_eq!((other, &problem["message"]), (401, &body["message"]));
    let now = partner.clock.now().timestamp().to_string();
    for signature in ["", "v1=", "v1=zz", "v1=abc", "sha256=00"] {
        assert_eq!(partner.post(&SOUND, &now, signature).await.0, 401, "{signature}");
    }
}

#[tokio::test]
async fn an_unsigned_body_or_timestamp_is_refused() {
    let partner = Partner::new().await;
    let now = partner.clock.now().timestamp().to_string();
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"s3cret");
    let tag = hmac::sign(&key, format!("{now}.{}", SOUND.body).as_bytes());
    let signature: String = "v1="
        .chars()
        .chain(tag.as_ref().iter().flat_map(|byte| format!("{byte:02x}").chars().collect::<Vec<_>>()))
        .collect();
    let other_body = Sent { body: r#"{"n": 2}"#, ..SOUND };
    assert_eq!(partner.post(&other_body, &now, &signature).await.0, 401);
    let later = (partner.clock.now().timestamp() + 1).to_string();
    assert_eq!(partner.post(&SOUND, &later, &signature).await.0, 401);
    assert_eq!(partner.post(&SOUND, &now, &signature).await.0, 201);
}

#[tokio::test]
async fn a_role_neither_replaces_a_signature_nor_takes_it_away() {
    let issuer = auth::Issuer::generate("https://issuer.test");
    let mut partner = Partner::bounded(Rates::default(), None).await;
    let verifier = issuer.verifier("api");
    let roles = ["viewer", "operator", "author", "admin", "worker", "partner"];
    let policy = roles.map(|role| format!("{role}@example.com={role}:*")).join(", ");
    let access = Access::new(Authenticator::new([verifier.into()]), Policy::read(&policy).unwrap());
    partner.api = partner.api.map(|api| Api { access, ..api });
    for role in roles {
        let token = issuer.sign(&json!({
            "iss": issuer.url(), "sub": role, "aud": "api", "email": format!("{role}@example.com"),
            "email_verified": true, "exp": partner.clock.now().timestamp() + 3600,
        }));
        let body = json!({"n": 1, "role": role}).to_string();
        let sound = Sent { body: &body, ..SOUND };
        for path in ["/api/v1/hooks/hooked/partner", "/api/v1/tenants/default/hooks/hooked/partner"] {
            let request = Request::post(path).header("authorization", format!("Bearer {token}"));
            let request = request.body(Body::from(body.clone())).unwrap();
            let secrets = Secrets::default().with_folder(partner.secrets.path().to_owned());
            let router = router_with(partner.app.clone(), partner.api.clone(), secrets);
            assert_eq!(router.oneshot(request).await.unwrap().status(), 401, "{role} without a signature");
        }
        assert_eq!(partner.send(&sound).await.0, 201, "a signature needs no role");
    }
}

#[tokio::test]
async fn a_timestamp_more_than_five_minutes_away_is_refused() {
    let partner = Partner::new().await;
    for seconds in [-301, 301, -86_400] {
        let (status, body) = partner.send(&Sent { at: TimeDelta::seconds(seconds), ..SOUND }).await;
        assert_eq!((status, &body["error_code"]), (401, &json!("too_old")), "{seconds}");
    }
    assert_eq!(partner.send(&Sent { at: TimeDelta::seconds(-300), ..SOUND }).await.0, 201);
}

#[tokio::test]
async fn an_accepted_request_is_not_accepted_again() {
    let partner = Partner::new().await;
    let sent = Sent { id: Some("order-1"), ..SOUND };
    assert_eq!(partner.send(&sent).await.0, 201);
    let (status, body) = partner.send(&sent).await;
    assert_eq!((status, &body["error_code"]), (409, &json!("replayed")));
    // Another id does not make it another request.
    assert_eq!(partner.send(&Sent { id: Some("order-2"), ..SOUND }).await.0, 409);
    // Nor does another spelling of its signature.
    while !partner.sign(&sent).1.iter().any(|pair| pair.starts_with('0')) {
        partner.clock.advance(chrono::Duration::seconds(1));
    }
    let (timestamp, pairs) = partner.sign(&sent);
    let other = Sent { id: Some("order-3"), ..SOUND };
    assert!(
        [201, 409].contains(&partner.post(&other, &timestamp, &format!("v1={}", pairs.concat())).await.0)
    );
    let signed: Vec<String> = pairs
        .iter()
        .map(|pair| pair.strip_prefix('0').map_or(pair.clone(), |low| format!("+{low}")))
        .collect();
    let other = Sent { id: Some("order-4"), ..SOUND };
    assert_eq!(partner.post(&other, &timestamp, &format!("v1={}", signed.concat())).await.0, 401);
    let upper = pairs.concat().to_uppercase();
    assert_eq!(partner.post(&other, &timestamp, &format!("v1={upper}")).await.0, 409);
    // Signed again, it is recognised by its id.
    partner.clock.advance(chrono::Duration::seconds(10));
    let (status, body) = partner.send(&sent).await;
    assert_eq!((status, &body["duplicate"]), (200, &json!(true)));
}

#[tokio::test]
async fn the_sender_is_informed_about_invalid_inputs() {
    let partner = Partner::new().await;
    let (status, body) = partner.send(&Sent { body: r#"{"n": "x"}"#, ..SOUND }).await;
    assert_eq!(status, 422, "{body}");
    let (status, body) = partner.send(&Sent { body: r#"{"n": 0}"#, ..SOUND }).await;
    assert_eq!((status, &body["filtered"]), (200, &json!(true)));
}

#[tokio::test]
async fn the_documented_webhook_paths_are_served() {
    let partner = Partner::new().await;
    for path in api::openapi::hooks::PATHS {
        assert!(api::openapi::document()["paths"][path]["post"].is_object(), "{path}");
        let address = path.replace("{tenant}", "default").replace("{workflow}", "hooked");
        let request = Request::post(address.replace("{trigger}", "partner")).body(Body::empty()).unwrap();
        let secrets = Secrets::default().with_folder(partner.secrets.path().to_owned());
        let response = router_with(partner.app.clone(), None, secrets).oneshot(request).await.unwrap();
        assert_eq!(response.status().as_u16(), 401, "{path} exists and requires a signature");
    }
}

/// What was asked of the database and of the secrets, and what was logged for the operator.
#[derive(Clone, Default)]
struct Steps(Arc<Mutex<Vec<String>>>);

impl Steps {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl tracing::Subscriber for Steps {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        ["sqlx::query", "ebbflow_host::secrets", "ebbflow_trigger::webhooks"].contains(&metadata.target())
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut step = event.metadata().target().to_owned();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            if ["summary", "event"].contains(&field.name()) {
                step += &format!(" {value:?}");
            }
        });
        self.0.lock().unwrap().push(step);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn without_the_secret_nobody_learns_whether_a_webhook_exists() {
    let partner = Partner::bounded(Rates::default(), None).await;
    let steps = Steps::default();
    let _subscribed = testkit::subscribe(steps.clone());
    let ask = async |path: &str, headers: &[(&str, &str)]| {
        let mut request = Request::post(format!("/api/v1{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let secrets = Secrets::default().with_folder(partner.secrets.path().to_owned());
        let router = router_with(partner.app.clone(), None, secrets);
        steps.take();
        let response = router.oneshot(request.body(Body::from("{}")).unwrap()).await.unwrap();
        let (status, mut headers) = (response.status().as_u16(), response.headers().clone());
        headers.remove("content-length");
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        let body = String::from_utf8(body.into()).unwrap();
        // These two differ from request to request, and the length with the digits of the time.
        let json: Value = serde_json::from_str(&body).unwrap();
        let vary = ["request_id", "timestamp"].map(|field| json[field].as_str().unwrap().to_owned());
        let body = vary.iter().fold(body, |body, part| body.replace(part, ""));
        let (logged, taken): (Vec<String>, Vec<String>) =
            steps.take().into_iter().partition(|step| step.contains("webhook_unusable"));
        ((status, headers, body, taken), !logged.is_empty())
    };
    let now = partner.clock.now().timestamp().to_string();
    let wrong = format!("v1={}", "00".repeat(32));
    let cases: [&[(&str, &str)]; 6] = [
        &[],
        &[("x-ebb-timestamp", &now)],
        &[("x-ebb-signature", &wrong)],
        &[("x-ebb-timestamp", &now), ("x-ebb-signature", &wrong)],
        &[("x-ebb-timestamp", "0"), ("x-ebb-signature", &wrong)],
        &[("x-ebb-timestamp", "soon"), ("x-ebb-signature", "v1=xyz")],
    ];
    let of_default = ["/hooks/hooked/partner", "/hooks/hooked/nothing", "/hooks/nothing/partner"];
    let of_tenants = [
        "/tenants/default/hooks/hooked/partner",
        "/tenants/default/hooks/hooked/nothing",
        "/tenants/nowhere/hooks/hooked/partner",
    ];
    // With the secret there, and once it cannot be read.
    for readable in [true, false] {
        for headers in cases {
            for (paths, statements) in [(of_default, 1), (of_tenants, 2)] {
                let (expected, logged) = ask(paths[0], headers).await;
                assert_eq!(expected.0, 401, "{headers:?}: {expected:?}");
                assert_eq!(logged, !readable, "the operator learns of a secret that cannot be read");
                let count = |target: &str| expected.3.iter().filter(|step| step.starts_with(target)).count();
                assert_eq!(
                    (count("sqlx::query"), count("ebbflow_host::secrets")),
                    (statements, 1),
                    "{:?}",
                    expected.3
                );
                for path in &paths[1..] {
                    assert_eq!(ask(path, headers).await, (expected.clone(), false), "{path} {headers:?}");
                }
            }
        }
        let _ = std::fs::remove_file(partner.secrets.path().join("default/PARTNER"));
    }
}

#[tokio::test]
async fn what_is_wrong_with_an_address_is_said_as_everywhere() {
    let partner = Partner::new().await;
    for (path, status, code) in [
        ("hooked/partner?debug=1", 400, "bad_request"),
        ("hooked/partner%00", 400, "bad_request"),
        ("hooked/%FF", 404, "not_found"),
    ] {
        let (refused, body) = partner.send(&Sent { path, ..SOUND }).await;
        assert_eq!((refused, &body["error_code"]), (status, &json!(code)), "{path}: {body}");
    }
    let (_, body) = partner.send(&Sent { path: "hooked/partner?debug=1", ..SOUND }).await;
    assert_eq!(body["message"], "unknown query parameter `debug`; this endpoint takes none");
}
