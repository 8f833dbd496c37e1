//! Every mutation passes here: it is executed once per idempotency key, and audited.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use accounts::{AuditEntry, Claim, IdempotencyKey, RecordedResponse};
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, FromRequestParts, OriginalUri, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, response};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::TimeDelta;
use host::{Problem, RequestDeadline, read_body};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tracing::{Instrument, Span, error};

use crate::endpoints::{Before, Change, Endpoint, Idempotency};
use crate::{Api, BODY_LIMIT, Caller, RESPONSE_LIMIT, limits, runs, tasks};

/// How long a recorded response is sent again.
const RECORD_TTL: TimeDelta = TimeDelta::hours(24);

/// A request that takes longer is dead, and its key is free again. [`CHANGE_TIMEOUT`] is shorter.
const REQUEST_TIMEOUT: TimeDelta = TimeDelta::minutes(1);

/// How long a change may take together with recording it.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(45);

/// How much longer than its request a change may take: the database gives up a statement first, so that what a change did is known.
const CHANGE_GRACE: Duration = Duration::from_secs(10);

/// A larger response is not recorded, in bytes.
const MAX_RECORD: usize = 256 * 1024;

/// The part of a header that the audit log keeps, in characters.
const MAX_HEADER: usize = 200;

/// The part of an address that the audit log keeps, in characters. Names that exist are shorter.
const MAX_TARGET: usize = 1_000;

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
///
/// The change may outlive its request for [`CHANGE_GRACE`], its audit entry and idempotency record for a few seconds more. A change that takes even longer may have been made or not: its key stays in use for a
/// minute, so that a retry does not make it a second time at once.
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
    let deadline = match RequestDeadline::from_request_parts(&mut parts, &api).await {
        Ok(deadline) => deadline,
        Err(never) => match never {},
    };
    let mutation = Mutation { api, endpoint, change, caller, key, parts, body };
    let executed = tokio::time::timeout(CHANGE_TIMEOUT, mutation.execute(next, deadline));
    match tokio::spawn(executed.instrument(Span::current())).await {
        Ok(Ok(response)) => response,
        Ok(Err(late)) => {
            Problem::unavailable(format!("the change was not recorded in time: {late}")).into_response()
        }
        Err(panic) => Problem::internal(&panic).into_response(),
    }
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
    async fn execute(self, next: Next, deadline: RequestDeadline) -> Response {
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
        let changed = next.run(Request::from_parts(parts, Body::from(body)));
        let changed = deadline.later(CHANGE_GRACE).wait(changed).await;
        let idempotency_key = idempotency_key.filter(|_| changed.is_some());
        let (mut head, body) = changed.unwrap_or_else(outcome_unknown).into_parts();
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

/// The response to a change that was given up.
fn outcome_unknown() -> Response {
    let message = "the change took too long and was given up: it may have been made; check before you retry";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "outcome_unknown", message).into_response()
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
        target: whole.path().chars().take(MAX_TARGET).collect(),
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
            let limit = limits::named(caller, kind, name).ok()?;
            let found = limits::find(api, caller, &limit).await.ok()??;
            Some(json!({"slots": found.slots}))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi;

    /// The fields of a schema of the document, also of those that it refers to.
    fn fields(document: &Value, schema: &Value, found: &mut Vec<String>) {
        if let Some(name) = schema["$ref"].as_str() {
            fields(document, &document.pointer(name.trim_start_matches('#')).unwrap().clone(), found);
        }
        for part in ["allOf", "anyOf", "oneOf"].iter().flat_map(|key| schema[key].as_array()).flatten() {
            fields(document, part, found);
        }
        found.extend(schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()));
    }

    #[test]
    fn every_field_that_the_audit_log_keeps_is_in_the_response_of_a_change() {
        let document = openapi::document();
        let operations = document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object());
        let changes = operations.flatten().filter(|(method, _)| *method != "get");
        let mut found = Vec::new();
        for (_, change) in changes {
            for response in change["responses"].as_object().unwrap().values() {
                let response = match response["$ref"].as_str() {
                    Some(name) => document.pointer(name.trim_start_matches('#')).unwrap(),
                    None => response,
                };
                fields(document, &response["content"]["application/json"]["schema"], &mut found);
            }
        }
        let unknown: Vec<_> =
            AFTER.iter().filter(|name| !found.iter().any(|field| field == **name)).collect();
        assert!(unknown.is_empty(), "no response to a change has {unknown:?}");
    }
    #[test]
    fn every_reason_that_a_change_takes_has_a_maximum_length() {
        let document = openapi::document();
        let operations = document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object());
        let mut reasons = 0;
        for (_, change) in operations.flatten() {
            let mut schema = &change["requestBody"]["content"]["application/json"]["schema"];
            while let Some(name) = schema["$ref"].as_str() {
                schema = document.pointer(name.trim_start_matches('#')).unwrap();
            }
            let reason = &schema["properties"]["reason"];
            if !reason.is_null() {
                assert_eq!(reason["maxLength"], 1_000, "{change}");
                reasons += 1;
            }
        }
        assert!(reasons > 5, "{reasons} were found");
    }
}
