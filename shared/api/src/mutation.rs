//! Every mutation passes here: it is executed once per idempotency key, and audited.

use std::net::SocketAddr;
use std::sync::Arc;

use accounts::{AuditEntry, Claim, IdempotencyKey, RecordedResponse};
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, FromRequestParts, OriginalUri, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, response};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::TimeDelta;
use host::{Problem, read_body};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tracing::{Instrument, Span, error};

use crate::endpoints::{Before, Change, Endpoint, Idempotency};
use crate::{Api, BODY_LIMIT, Caller, RESPONSE_LIMIT, limits, runs, tasks};

/// How long a recorded response is sent again.
const RECORD_TTL: TimeDelta = TimeDelta::hours(24);

/// A request that takes longer is dead, and its key is free again. No request may take half of it.
const REQUEST_TIMEOUT: TimeDelta = TimeDelta::minutes(1);

/// A larger response is not recorded, in bytes.
const MAX_RECORD: usize = 256 * 1024;

/// The part of a header that the audit log keeps, in characters.
const MAX_HEADER: usize = 200;

/// The fields of a response that the audit log keeps as the state after a change.
const AFTER: [&str; 17] = [
    "id",
    "name",
    "workflow",
    "state",
    "version",
    "archived",
    "changed",
    "registered",
    "count",
    "applied",
    "matched",
    "done",
    "paused_at",
    "pause",
    "weight",
    "max_active_tasks",
    "error_code",
];

/// Executes a change, even if the client disconnects meanwhile.
pub(crate) async fn pass(
    State((api, endpoint, change)): State<(Api, Arc<Endpoint>, Change)>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let read = async {
        let caller = Caller::from_request_parts(&mut parts, &api).await?;
        let key = key_of(&parts.headers)?;
        Ok::<_, Problem>((caller, key, read_body(body, BODY_LIMIT).await?))
    };
    let (caller, key, body) = match read.await {
        Ok(read) => read,
        Err(problem) => return problem.into_response(),
    };
    let mutation = Mutation { api, endpoint, change, caller, key, parts, body };
    let done = tokio::spawn(mutation.execute(next).instrument(Span::current()));
    done.await.unwrap_or_else(|panic| Problem::internal(&panic).into_response())
}

/// Records a change that the guard refused.
pub(crate) async fn record_refusal(
    api: &Api,
    endpoint: &Endpoint,
    caller: &Caller,
    parts: &Parts,
    problem: &Problem,
) {
    let key = key_of(&parts.headers).ok().flatten();
    let mut entry = audit_entry(api, caller, endpoint, parts, key);
    entry.status = problem.status().as_u16();
    entry.after = Some(json!({"error_code": problem.code()}));
    record(api, &entry).await;
}

struct Mutation {
    api: Api,
    endpoint: Arc<Endpoint>,
    change: Change,
    caller: Caller,
    key: Option<String>,
    parts: Parts,
    body: Bytes,
}

impl Mutation {
    async fn execute(self, next: Next) -> Response {
        let idempotency_key =
            self.key.clone().filter(|_| self.change.idempotency != Idempotency::OwnKey).map(|key| {
                IdempotencyKey { tenant: self.caller.tenant, actor: self.caller.name.clone(), key }
            });
        if let Some(key) = &idempotency_key {
            match self.known(key).await {
                Ok(None) => {}
                Ok(Some(answer)) => return answer,
                Err(problem) => return problem.into_response(),
            }
        }
        let Self { api, endpoint, change, caller, key, mut parts, body } = self;
        let before = snapshot_before(&api, &caller, change.before, &mut parts).await;
        let mut entry = audit_entry(&api, &caller, &endpoint, &parts, key);
        let response = next.run(Request::from_parts(parts, Body::from(body))).await;
        let (mut head, body) = response.into_parts();
        if change.idempotency == Idempotency::NeverStored {
            head.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        let body = match to_bytes(body, RESPONSE_LIMIT as usize).await {
            Ok(body) => body,
            Err(error) => return Problem::internal(&error).into_response(),
        };
        (entry.status, entry.before, entry.after) = (head.status.as_u16(), before, state_after(&body));
        record(&api, &entry).await;
        if let Some(key) = idempotency_key {
            let stored = change.idempotency == Idempotency::Recorded;
            keep(&api, &key, stored, &head, &body).await;
        }
        Response::from_parts(head, Body::from(body))
    }

    /// The response to an earlier request with this key; none if this one is the first.
    async fn known(&self, key: &IdempotencyKey) -> Result<Option<Response>, Problem> {
        let now = self.api.app.now();
        let accounts = &self.api.accounts;
        let claim =
            accounts.claim_key(key, &self.fingerprint(), now, now - REQUEST_TIMEOUT, now - RECORD_TTL).await;
        match claim? {
            Claim::New => Ok(None),
            Claim::Answered(response) => Ok(Some(replay(response))),
            Claim::InProgress => {
                let message =
                    "a request with this `Idempotency-Key` is in progress; retry to get its response";
                Err(Problem::new(StatusCode::CONFLICT, "request_in_progress", message))
            }
            Claim::Mismatch => {
                let message = "this `Idempotency-Key` was already used for a different request";
                Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused", message))
            }
        }
    }

    fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.parts.method.as_str());
        hash.update(b"\n");
        hash.update(self.parts.uri.to_string());
        hash.update(b"\n");
        hash.update(&self.body);
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The key that a caller chose, if it did.
pub(crate) fn key_of(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    match key.to_str() {
        Ok(key) if (1..=runs::MAX_KEY).contains(&key.len()) && !key.contains('\t') => {
            Ok(Some(key.to_owned()))
        }
        _ => {
            let max = runs::MAX_KEY;
            let message = format!("`Idempotency-Key` must be 1 to {max} visible ASCII characters");
            Err(Problem::bad_request(message))
        }
    }
}

/// A response that was sent before.
fn replay(recorded: RecordedResponse) -> Response {
    let status = StatusCode::from_u16(recorded.status).unwrap_or(StatusCode::OK);
    let mut response = (status, recorded.body).into_response();
    response.headers_mut().remove(header::CONTENT_TYPE);
    for (name, value) in recorded.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response.headers_mut().extend([replayed()]);
    response
}

/// The header of a response that repeats an earlier one.
pub(crate) fn replayed() -> (HeaderName, HeaderValue) {
    (HeaderName::from_static("idempotency-replayed"), HeaderValue::from_static("true"))
}

/// Keeps a response. The key becomes free again if the response may differ next time or must not be stored.
async fn keep(api: &Api, key: &IdempotencyKey, stored: bool, head: &response::Parts, body: &[u8]) {
    let response::Parts { status, headers, .. } = head;
    let lasting = !status.is_server_error() && *status != StatusCode::TOO_MANY_REQUESTS && stored;
    let header = |name: &HeaderName| {
        let value = headers.get(name)?.to_str().ok()?;
        Some((name.to_string(), value.to_owned()))
    };
    let response = (lasting && body.len() <= MAX_RECORD).then(|| RecordedResponse {
        status: status.as_u16(),
        headers: [header::CONTENT_TYPE, header::LOCATION, header::ETAG].iter().filter_map(header).collect(),
        body: body.to_vec(),
    });
    if let Err(error) = api.accounts.record_response(key, response.as_ref()).await {
        error!("Idempotency record lost: `{}` of {}: {error}", key.key, key.actor);
    }
}

/// The entry of a request whose outcome is not known yet.
fn audit_entry(
    api: &Api,
    caller: &Caller,
    endpoint: &Endpoint,
    parts: &Parts,
    key: Option<String>,
) -> AuditEntry {
    let note = |name: HeaderName| {
        let text = parts.headers.get(name)?.to_str().ok()?;
        Some(text.chars().take(MAX_HEADER).collect())
    };
    let origin = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    let whole = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |OriginalUri(uri)| uri);
    AuditEntry {
        tenant: caller.tenant,
        at: api.app.now(),
        actor: caller.name.clone(),
        origin: origin.map(|ConnectInfo(address)| address.ip().to_string()),
        forwarded: note(HeaderName::from_static("x-forwarded-for")),
        agent: note(header::USER_AGENT),
        action: endpoint.id.to_owned(),
        target: whole.path().to_owned(),
        key,
        status: 0,
        before: None,
        after: None,
    }
}

async fn record(api: &Api, entry: &AuditEntry) {
    if let Err(error) = api.accounts.record(entry).await {
        error!("Audit entry lost: {} by {}: {error}", entry.action, entry.actor);
    }
}

/// The state of what the path names before a change; `None` if it does not exist.
async fn snapshot_before(api: &Api, caller: &Caller, before: Before, parts: &mut Parts) -> Option<Value> {
    let params = RawPathParams::from_request_parts(parts, api).await.ok()?;
    let param = |name| params.iter().find_map(|(known, value)| (known == name).then_some(value));
    let reader = api.reader(caller);
    match before {
        Before::Nothing => None,
        Before::Task => {
            let found = tasks::find(api, caller, param("id")?.parse().ok()?, param("task")?).await.ok()?;
            let task = &found.record.task;
            Some(json!({"state": found.run.state, "task": task.state, "attempt": task.attempt}))
        }
        Before::Run => {
            let found = reader.runs().summary(param("id")?.parse().ok()?).await.ok()?;
            Some(json!({"state": found.run.state}))
        }
        Before::Workflow => {
            let found = reader.workflows().get(param("name")?).await.ok()?;
            let pause = found.pause.map(|pause| json!({"at": pause.at, "by": pause.by}));
            Some(json!({"version": found.version.number, "archived": found.archived, "pause": pause}))
        }
        Before::Backfill => {
            let found = reader.backfills().get(param("id")?.parse().ok()?).await.ok()?;
            Some(json!({"state": found.state}))
        }
        Before::Limit => {
            let (kind, name) = (param("kind")?, param("name")?);
            let known = limits::show(api, caller).await.ok()?.items;
            let limit = known.into_iter().find(|limit| limit.kind == kind && limit.name == name)?;
            Some(json!({"slots": limit.slots}))
        }
        Before::Tenant => {
            let found = reader.tenants().named(param("name")?).await.ok()?;
            Some(json!({"weight": found.weight, "max_active_tasks": found.slots}))
        }
    }
}

/// The state after a change, as far as the response shows it.
fn state_after(body: &[u8]) -> Option<Value> {
    let Ok(Value::Object(response)) = serde_json::from_slice(body) else { return None };
    let kept: Map<String, Value> =
        response.into_iter().filter(|(name, _)| AFTER.contains(&name.as_str())).collect();
    (!kept.is_empty()).then_some(Value::Object(kept))
}
