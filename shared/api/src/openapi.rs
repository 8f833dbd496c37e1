//! The OpenAPI document: made from the endpoints that are served, and shown as a page.

pub mod hooks;
mod operation;
mod page;
pub(crate) mod shapes;

use std::sync::LazyLock;

use axum::Json;
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::endpoints::{self, Endpoint};
use crate::views::ProblemView;

pub(crate) use operation::{Described, Operation, Schemas};

/// What the page may do: show our own style sheet, and nothing else.
const POLICY: &str = "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Made once: it does not change while the program runs.
static DOCUMENT: LazyLock<Value> = LazyLock::new(make);
static PAGE: LazyLock<String> = LazyLock::new(|| page::render(&DOCUMENT));

/// The document, as it is served.
pub fn document() -> &'static Value {
    &DOCUMENT
}

fn make() -> Value {
    let (mut schemas, mut paths) = (Schemas::default(), Map::new());
    let problem = operation::content("application/json", schemas.answered::<ProblemView>());
    for endpoint in endpoints::all() {
        let described = (endpoint.describe)(&mut schemas);
        let path = paths.entry(format!("/api/v1{}", endpoint.path)).or_insert_with(|| json!({}));
        path[endpoint.method.as_str().to_ascii_lowercase()] = show(&endpoint, described);
    }
    paths.extend(hooks::paths());
    let refused = |what: &str| json!({"description": what, "content": problem});
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ebbflow",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Reading and steering workflows and runs.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": STATUSES.iter().map(|(status, what)| (status.to_string(), refused(what))).collect::<Map<_, _>>(),
            "schemas": schemas.into_named(),
        },
    })
}

/// Why a request may be refused, by status.
const STATUSES: [(u16, &str); 12] = [
    (400, "The request cannot be understood."),
    (401, "There is no token, or none that can be believed."),
    (403, "The caller may not do this."),
    (404, "There is no such thing."),
    (409, "It does not fit how things stand."),
    (412, "It has changed since it was read."),
    (413, "The body is too large."),
    (415, "The body is of a type that is not taken."),
    (422, "The request is understood, and what it asks for is not possible."),
    (429, "Too many requests; `Retry-After` says when to come again."),
    (500, "A defect of ours; what it was is in our log."),
    (503, "It may succeed later; `Retry-After` says when to come again."),
];

/// Whether an endpoint can answer so.
fn can_be(status: u16, endpoint: &Endpoint, described: &Operation) -> bool {
    match status {
        401 | 403 | 429 | 503 => described.needs_token,
        404 => described.needs_token,
        409 => endpoint.method != Method::GET,
        412 => is_register(endpoint),
        413 | 415 => endpoint.method != Method::GET,
        422 => endpoint.method != Method::GET,
        _ => true,
    }
}

/// Whether definitions are changed by it, which have ETags.
fn is_register(endpoint: &Endpoint) -> bool {
    endpoint.method == Method::POST && endpoint.path == "/workflows"
}

fn show(endpoint: &Endpoint, described: Operation) -> Value {
    let mut responses: Map<String, Value> = STATUSES
        .iter()
        .filter(|(status, _)| can_be(*status, endpoint, &described))
        .map(|(status, _)| (status.to_string(), json!({"$ref": format!("#/components/responses/{status}")})))
        .collect();
    for (status, content) in &described.answers {
        let what = if *status == 201 { "It came into being." } else { "It is done, or was so already." };
        let what = if endpoint.method == Method::GET { "What was asked for." } else { what };
        let answer = match content {
            Value::Null => json!({"description": "The caller has it already."}),
            content => json!({"description": what, "content": content}),
        };
        responses.insert(status.to_string(), answer);
    }
    if let Some(kind) = endpoint.answers {
        let content = operation::content(kind, json!({"type": "string"}));
        responses.insert("200".into(), json!({"description": "What was asked for.", "content": content}));
    }
    let mut shown = json!({
        "operationId": endpoint.name,
        "tags": [endpoints::subject(endpoint.path)],
        "summary": endpoint.summary,
        "parameters": parameters(endpoint, &described),
        "responses": responses,
        "security": if described.needs_token { json!([{"token": []}]) } else { json!([]) },
    });
    if let Some(body) = described.body {
        shown["requestBody"] = body;
    }
    shown
}

fn parameters(endpoint: &Endpoint, described: &Operation) -> Vec<Value> {
    let named = endpoints::names(endpoint.path).zip(&described.path);
    let mut parameters: Vec<Value> = named
        .map(|(name, schema)| json!({"name": name, "in": "path", "required": true, "schema": schema}))
        .collect();
    parameters.extend(described.query.iter().cloned());
    if endpoint.changes {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "The same request with the same key is done once, and answered alike for a day.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$"},
        }));
    }
    if described.answers.iter().any(|(status, _)| *status == 304) {
        parameters.push(json!({
            "name": "If-None-Match", "in": "header", "required": false,
            "description": "The ETag of the definition that the caller has.",
            "schema": {"type": "string"},
        }));
    }
    if is_register(endpoint) {
        parameters.push(json!({
            "name": "If-Match", "in": "header", "required": false,
            "description": "The ETag of the definition that is to be changed.",
            "schema": {"type": "string", "pattern": "^[!-~]*$"},
        }));
    }
    if endpoint.answers == Some("text/event-stream") {
        parameters.push(json!({
            "name": "Last-Event-ID", "in": "header", "required": false,
            "description": "The id of the event that was heard last: what happened since is told first.",
            "schema": {"type": "string", "pattern": "^[!-~]*$"},
        }));
    }
    parameters
}

pub(crate) async fn get_document() -> Json<Value> {
    Json(DOCUMENT.clone())
}

pub(crate) async fn get_page() -> Response {
    let policy = (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    ([policy, kind], PAGE.as_str()).into_response()
}

pub(crate) async fn get_style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], page::STYLE).into_response()
}
