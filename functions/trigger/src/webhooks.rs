//! Signed webhooks: requests that start runs, from callers that share a secret with the trigger.
//!
//! `X-Ebb-Timestamp` is the time in seconds since 1970, `X-Ebb-Signature` is `v1=` and the HMAC-SHA256, in hexadecimal, of
//! the timestamp, a dot and the body. Requests older than five minutes are rejected, and signatures are stored for longer, so
//! no request is accepted twice. `X-Ebb-Id` identifies the event: sent again with a new signature, it starts no second run.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use api::Api;
use api::request::Path;
use aws_lc_rs::hmac;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn;
use axum::routing::post;
use axum::{Json, Router};
use host::{App, Problem, Secrets, read_body};
use model::{CloudEvent, Instant, TenantId, TenantName, TriggerKey, TriggerOn};
use runtime::TriggerOutcome;
use serde_json::{Value, json};
use store::{TriggerEvent, TriggerRecord};
use tracing::{info, warn};

const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The maximum difference between a timestamp and our clock, in seconds.
const MAX_CLOCK_SKEW: i64 = 300;

const MAX_ID_LENGTH: usize = 256;

/// Stands for a tenant that does not exist: it has no triggers.
const NO_TENANT: TenantId = TenantId(-1);

/// The name of the secret that is looked up where there is no webhook. No secret has it: names in files and variables of people
/// do not begin like ours.
const NO_SECRET_NAME: &str = "NO_SUCH_WEBHOOK";

/// The secret of webhooks that do not exist.
static NO_SECRET: LazyLock<[u8; 32]> = LazyLock::new(|| {
    let mut secret = [0; 32];
    aws_lc_rs::rand::fill(&mut secret).expect("the system provides random bytes");
    secret
});

#[derive(Clone)]
struct Shared {
    app: App,
    /// Applies rate limits and quotas; none if the function has no API.
    api: Option<Api>,
    secrets: Secrets,
}

/// `POST /api/v1/hooks/WORKFLOW/TRIGGER`: a signed request that starts a run. `POST /api/v1/tenants/NAME/hooks/…`: the same
/// for a trigger of that tenant.
pub fn webhooks(app: App, api: Option<Api>, secrets: Secrets) -> Router {
    Router::new()
        .route("/api/v1/hooks/{workflow}/{trigger}", post(receive))
        .route("/api/v1/tenants/{tenant}/hooks/{workflow}/{trigger}", post(receive_for_tenant))
        .layer(from_fn(host::check_no_query))
        .layer(from_fn(api::bounded))
        .with_state(Shared { app, api, secrets })
}

async fn receive(
    State(shared): State<Shared>,
    Path((workflow, name)): Path<(String, String)>,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let key = TriggerKey { tenant: TenantId::DEFAULT, workflow, name };
    receive_at(shared, key, TenantName::default_tenant(), request).await
}

async fn receive_for_tenant(
    State(shared): State<Shared>,
    Path((tenant, workflow, name)): Path<(String, String, String)>,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let store = shared.app.runtime.store().clone();
    let found = store.tenant_named(&tenant).await?;
    // No lookup of the name: what is read is the same whether there is such a tenant or not.
    let (tenant, owner) = match TenantName::new(&tenant) {
        Ok(valid) => (found.unwrap_or(NO_TENANT), valid),
        Err(_) => (NO_TENANT, TenantName::default_tenant()),
    };
    receive_at(shared, TriggerKey { tenant, workflow, name }, owner, request).await
}

async fn receive_at(
    shared: Shared,
    key: TriggerKey,
    owner: TenantName,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let (parts, body) = request.into_parts();
    let body = read_body(body, MAX_BODY_BYTES).await?;
    let Found { record, secret } = find(&shared, &key, &owner).await?;
    let signature = check(&parts.headers, &body, &secret, shared.app.now())?;
    let record = record.ok_or_else(rejected)?;
    if let Some(pause) = &record.paused {
        let message = format!("the trigger is paused: {}", pause.reason);
        return Err(Problem::new(StatusCode::CONFLICT, "paused", message));
    }
    if let Some(api) = &shared.api {
        api.access.admit_webhook(api, &key)?;
    }
    let event = event(&key, &parts.headers, &body, &signature, shared.app.now())?;
    let signed = TriggerEvent::new(&format!("signature\n{signature}"), "a signature", shared.app.now());
    if shared.app.runtime.triggers().has_received(&key, &signed).await.map_err(api::error::runtime)? {
        let message = "this request was already accepted; sign each request separately";
        return Err(Problem::new(StatusCode::CONFLICT, "replayed", message));
    }
    let outcome = shared
        .app
        .runtime
        .triggers()
        .deliver(&record, &event, vec![signed])
        .await
        .map_err(api::error::runtime)?;
    info!("Webhook {} at trigger `{}` of `{}`: {outcome:?}", event.id, key.name, key.workflow);
    respond(&event, outcome)
}

fn rejected() -> Problem {
    Problem::unauthorized("there is no such webhook, or the signature is invalid")
}

/// What a request is checked against.
struct Found {
    /// The trigger; none if there is no such webhook, or its secret cannot be read.
    record: Option<TriggerRecord>,
    /// Its secret, or one that nobody knows.
    secret: Vec<u8>,
}

/// Looks up a webhook and its secret. Whether there is one or not, the same is read and computed, so that a caller without the
/// secret does not learn it from the response, nor from the time it takes. What is wrong with a webhook is in the log.
async fn find(shared: &Shared, key: &TriggerKey, owner: &TenantName) -> Result<Found, Problem> {
    let record = match shared.app.runtime.store().trigger(key).await {
        Err(store::Error::Unreadable { what, why }) => {
            warn!(
                event = "webhook_unusable",
                "Rejecting a webhook of `{}`: unreadable {what}: {why}", key.workflow
            );
            None
        }
        found => found?,
    };
    let name = record.as_ref().and_then(|record| match &record.trigger.on {
        TriggerOn::Webhook { secret } => Some(secret.clone()),
        _ => None,
    });
    let looked_up = name.clone().unwrap_or_else(|| NO_SECRET_NAME.to_owned());
    let resolved = shared.secrets.of(owner).resolve([looked_up.clone()].into()).await;
    let why = match (name, resolved.map(|mut resolved| resolved.remove(&looked_up))) {
        (None, _) => None,
        (Some(_), Ok(Some(Value::String(text)))) if !text.is_empty() => {
            return Ok(Found { record, secret: text.into_bytes() });
        }
        (Some(_), Ok(_)) => Some("its secret is empty".to_owned()),
        (Some(_), Err(failure)) => Some(failure.message),
    };
    if let Some(why) = why {
        warn!(event = "webhook_unusable", "Rejecting a webhook of `{}`: {why}", key.workflow);
    }
    Ok(Found { record: None, secret: NO_SECRET.to_vec() })
}

/// Checks timestamp and signature. Returns the signature in canonical form, since it is stored.
fn check(headers: &HeaderMap, body: &Bytes, secret: &[u8], now: Instant) -> Result<String, Problem> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(timestamp), Some(signature)) = (header("x-ebb-timestamp"), header("x-ebb-signature")) else {
        return Err(Problem::unauthorized(
            "the headers `X-Ebb-Timestamp` and `X-Ebb-Signature` are required",
        ));
    };
    let claimed = signature.strip_prefix("v1=").and_then(unhex).ok_or_else(rejected)?;
    let signed = [timestamp.as_bytes(), b".", body].concat();
    let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
    hmac::verify(&secret, &signed, &claimed).map_err(|_| rejected())?;
    let age = timestamp.parse::<i64>().ok().map(|at| now.timestamp().saturating_sub(at));
    match age {
        Some(age) if (-MAX_CLOCK_SKEW..=MAX_CLOCK_SKEW).contains(&age) => Ok(format!("v1={}", hex(&claimed))),
        _ => {
            let message = format!("`X-Ebb-Timestamp` must be within {MAX_CLOCK_SKEW} s of now");
            Err(Problem::new(StatusCode::UNAUTHORIZED, "too_old", message))
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes hexadecimal digits; none for anything else.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    pairs.collect()
}

/// Parts of the names of headers with secrets.
const SECRET_HEADERS: [&str; 8] =
    ["auth", "cookie", "credential", "key", "password", "secret", "signature", "token"];

/// Whether a header becomes part of the event, which is stored and shown.
fn is_part_of_event(name: &str) -> bool {
    let is_secret = SECRET_HEADERS.iter().any(|word| name.contains(word));
    name == "content-type" || name.starts_with("x-") && !is_secret
}

fn event(
    key: &TriggerKey,
    headers: &HeaderMap,
    body: &Bytes,
    signature: &str,
    now: Instant,
) -> Result<CloudEvent, Problem> {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
    let id = text("x-ebb-id").unwrap_or_else(|| signature.to_owned());
    if id.is_empty() || id.len() > MAX_ID_LENGTH {
        return Err(Problem::bad_request(format!("`X-Ebb-Id` must have 1 to {MAX_ID_LENGTH} characters")));
    }
    let attributes: BTreeMap<String, String> = headers
        .iter()
        .filter(|(name, _)| is_part_of_event(name.as_str()))
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect();
    let as_text = || Value::String(String::from_utf8_lossy(body).into_owned());
    Ok(CloudEvent {
        id,
        source: format!("/hooks/{}/{}", key.workflow, key.name),
        kind: "dev.ebbflow.webhook.v1".into(),
        subject: None,
        time: Some(now),
        data: if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(body).unwrap_or_else(|_| as_text())
        },
        attributes,
    })
}

fn respond(event: &CloudEvent, outcome: TriggerOutcome) -> Result<(StatusCode, Json<Value>), Problem> {
    let id = &event.id;
    let body = match outcome {
        TriggerOutcome::Started(run) => {
            let body = json!({"id": id, "run_id": run, "links": {"run": api::Links::run_path(run)}});
            return Ok((StatusCode::CREATED, Json(body)));
        }
        TriggerOutcome::Held(until) => {
            return Ok((StatusCode::ACCEPTED, Json(json!({"id": id, "held_until": until}))));
        }
        TriggerOutcome::Before => json!({"id": id, "duplicate": true}),
        TriggerOutcome::Filtered => json!({"id": id, "filtered": true}),
        TriggerOutcome::Unwanted(reason) => json!({"id": id, "skipped": reason}),
        TriggerOutcome::Broken(reason) => {
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_event", reason));
        }
    };
    Ok((StatusCode::OK, Json(body)))
}
