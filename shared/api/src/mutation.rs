//! The one way to every change: each mutation passes here, is done once for a key, and is noted in the audit log.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, FromRequestParts, OriginalUri, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::TimeDelta;
use host::{Problem, read_body};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use store::{Deed, Known, Receipt, ReceiptKey};
use tracing::{Instrument, Span, error};

use crate::{Api, BODY_LIMIT, Caller, error, limits, runs};

/// An answer is given again for so long.
const KEPT: TimeDelta = TimeDelta::hours(24);

/// Whoever has not answered for so long is dead: no request may take half of it.
const PATIENCE: TimeDelta = TimeDelta::minutes(1);

/// A larger answer is not kept, in bytes: the request can be made again.
const LARGEST_RECEIPT: usize = 256 * 1024;

/// No answer is larger, in bytes.
const LARGEST_ANSWER: usize = 64 * 1024 * 1024;

/// So much is noted of what a caller says of itself, in characters.
const LONGEST_NOTE: usize = 200;

/// The fields of an answer that tell how something stands now.
const TELLING: [&str; 17] = [
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

/// Starting runs and backfills makes the same thing of the same key for ever: their ids are made from it.
const HAVE_THEIR_OWN: [&str; 2] = ["runs_post_start", "backfills_post_start"];

/// What these answer is a secret that nobody is told again.
const TOLD_ONCE: [&str; 1] = ["access_post_token"];

/// What an endpoint that changes something is called, in the document and in the audit log.
#[derive(Clone)]
pub(crate) struct Action(pub(crate) Arc<str>);

/// Lets a mutation through. It goes on even if whoever asked does not wait for the answer.
pub(crate) async fn pass(
    State((api, Action(action))): State<(Api, Action)>,
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
    let tenant = caller.tenant;
    let change = Change { api, action, caller, key, parts, body };
    // What is read on the way is read for the caller, in this task as in the one that asked.
    let done = tokio::spawn(store::walled(tenant, change.carry_out(next)).instrument(Span::current()));
    done.await.unwrap_or_else(|panic| Problem::internal(&panic).into_response())
}

struct Change {
    api: Api,
    action: Arc<str>,
    caller: Caller,
    key: Option<String>,
    parts: Parts,
    body: Bytes,
}

impl Change {
    async fn carry_out(self, next: Next) -> Response {
        let receipt_key = self
            .key
            .clone()
            .filter(|_| !HAVE_THEIR_OWN.contains(&&*self.action))
            .map(|key| ReceiptKey { tenant: self.caller.tenant, actor: self.caller.name.clone(), key });
        if let Some(key) = &receipt_key {
            match self.known(key).await {
                Ok(None) => {}
                Ok(Some(answer)) => return answer,
                Err(problem) => return problem.into_response(),
            }
        }
        let Self { api, action, caller, key, parts, body } = self;
        let before = glance(&api, &caller, parts.uri.path()).await;
        let mut deed = deed(&api, &caller, &action, &parts, key);
        let answer = next.run(Request::from_parts(parts, Body::from(body))).await;
        let (mut head, body) = answer.into_parts();
        if TOLD_ONCE.contains(&&*action) {
            head.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        let body = match to_bytes(body, LARGEST_ANSWER).await {
            Ok(body) => body,
            Err(error) => return Problem::internal(&error).into_response(),
        };
        (deed.status, deed.before, deed.after) = (head.status.as_u16(), before, outcome(&body));
        if let Err(error) = api.app.runtime.store().note_deed(&deed).await {
            error!("{} by {} is missing in the audit log: {error}", deed.action, deed.actor);
        }
        if let Some(key) = receipt_key {
            keep(&api, &key, head.status, &head.headers, &body).await;
        }
        Response::from_parts(head, Body::from(body))
    }

    /// What is known of a request with this key; none if it has to be carried out.
    async fn known(&self, key: &ReceiptKey) -> Result<Option<Response>, Problem> {
        let now = self.api.app.now();
        let store = self.api.app.runtime.store();
        let known = store.take_key(key, &self.fingerprint(), now, now - PATIENCE, now - KEPT).await;
        match known.map_err(error::store)? {
            Known::New => Ok(None),
            Known::Answered(receipt) => Ok(Some(again(receipt))),
            Known::UnderWay => {
                let message = "a request with this `Idempotency-Key` is under way; ask again for its answer";
                Err(Problem::new(StatusCode::CONFLICT, "request_under_way", message))
            }
            Known::Other => {
                let message = "this `Idempotency-Key` came with another request already: choose another one";
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
        Ok(key) if (1..=runs::LONGEST_KEY).contains(&key.len()) && !key.contains('\t') => {
            Ok(Some(key.to_owned()))
        }
        _ => {
            let longest = runs::LONGEST_KEY;
            let message = format!("`Idempotency-Key` must be 1 to {longest} visible ASCII characters");
            Err(Problem::bad_request(message))
        }
    }
}

/// An answer that was given before.
fn again(receipt: Receipt) -> Response {
    let status = StatusCode::from_u16(receipt.status).unwrap_or(StatusCode::OK);
    let mut response = (status, receipt.body).into_response();
    response.headers_mut().remove(header::CONTENT_TYPE);
    for (name, value) in receipt.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
        .headers_mut()
        .insert(HeaderName::from_static("idempotency-replayed"), HeaderValue::from_static("true"));
    response
}

/// Keeps an answer. One that may be another the next time is not kept, and the key is free again.
async fn keep(api: &Api, key: &ReceiptKey, status: StatusCode, headers: &HeaderMap, body: &[u8]) {
    // What must not be stored is told once, whoever asks again.
    let secret = headers.get(header::CACHE_CONTROL).is_some_and(|value| value == "no-store");
    let lasting = !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS && !secret;
    let header = |name: &HeaderName| {
        let value = headers.get(name)?.to_str().ok()?;
        Some((name.to_string(), value.to_owned()))
    };
    let receipt = (lasting && body.len() <= LARGEST_RECEIPT).then(|| Receipt {
        status: status.as_u16(),
        headers: [header::CONTENT_TYPE, header::LOCATION, header::ETAG].iter().filter_map(header).collect(),
        body: body.to_vec(),
    });
    if let Err(error) = api.app.runtime.store().keep_receipt(key, receipt.as_ref()).await {
        error!("The answer to `{}` of {} is not kept: {error}", key.key, key.actor);
    }
}

fn deed(api: &Api, caller: &Caller, action: &str, parts: &Parts, key: Option<String>) -> Deed {
    let note = |name: HeaderName| {
        let text = parts.headers.get(name)?.to_str().ok()?;
        Some(text.chars().take(LONGEST_NOTE).collect())
    };
    let origin = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    let whole = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |OriginalUri(uri)| uri);
    Deed {
        tenant: caller.tenant,
        at: api.app.now(),
        actor: caller.name.clone(),
        origin: origin.map(|ConnectInfo(address)| address.ip().to_string()),
        forwarded: note(HeaderName::from_static("x-forwarded-for")),
        agent: note(header::USER_AGENT),
        action: action.to_owned(),
        target: whole.path().to_owned(),
        key,
        status: 0,
        before: None,
        after: None,
    }
}

/// How the thing that a path names stands now, in short; none where it is not there or tells nothing in short.
async fn glance(api: &Api, caller: &Caller, path: &str) -> Option<Value> {
    let parts: Vec<_> = path.trim_start_matches('/').split('/').collect();
    let decoded = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    let store = api.app.runtime.store();
    match parts.as_slice() {
        ["runs", id, "tasks", task, _] => {
            let found = crate::tasks::find(api, caller, id.parse().ok()?, &decoded(task)).await.ok()?;
            let task = &found.record.task;
            Some(json!({"state": found.run.state, "task": task.state, "attempt": task.attempt}))
        }
        ["runs", id, _] => {
            let found = store.run(caller.tenant, id.parse().ok()?).await.ok()??;
            Some(json!({"state": found.run.state}))
        }
        ["workflows", _, "runs"] => None,
        ["workflows", name, ..] => {
            let found = store.workflow(caller.tenant, &decoded(name)).await.ok()??;
            let pause = found.pause.map(|pause| json!({"at": pause.at, "by": pause.by}));
            Some(json!({"version": found.version.number, "archived": found.archived, "pause": pause}))
        }
        ["backfills", id, _] => {
            let found = store.backfill(caller.tenant, id.parse().ok()?).await.ok()??;
            Some(json!({"state": found.state}))
        }
        ["limits", kind, name] => {
            let known = limits::show(api, caller).await.ok()?.items;
            let limit = known.into_iter().find(|limit| limit.kind == *kind && limit.name == decoded(name))?;
            Some(json!({"places": limit.places}))
        }
        ["tenants", name] => {
            let found = crate::tenants::find(api, caller, &decoded(name)).await.ok()?;
            Some(json!({"weight": found.weight, "max_active_tasks": found.places}))
        }
        _ => None,
    }
}

/// What an answer tells of how something stands, in short.
fn outcome(body: &[u8]) -> Option<Value> {
    let Ok(Value::Object(answer)) = serde_json::from_slice(body) else { return None };
    let told: Map<String, Value> =
        answer.into_iter().filter(|(name, _)| TELLING.contains(&name.as_str())).collect();
    (!told.is_empty()).then_some(Value::Object(told))
}
