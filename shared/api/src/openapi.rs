//! The OpenAPI document: made from the table of endpoints, and shown as a page.

pub mod hooks;
mod operation;
mod page;
pub(crate) mod shapes;

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::endpoints::{self, Endpoint, Row};
use crate::views::ProblemView;

use operation::Answers;
pub(crate) use operation::{Described, Operation, Schemas};

/// The page loads our own style sheet and nothing else.
const POLICY: &str = "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'";

// Made once: they do not change while the program runs.
static DOCUMENT: LazyLock<Value> = LazyLock::new(make);
static JSON: LazyLock<Bytes> = LazyLock::new(|| DOCUMENT.to_string().into());
static PAGE: LazyLock<String> = LazyLock::new(|| page::render(&DOCUMENT));

/// The document, as it is served.
pub fn document() -> &'static Value {
    &DOCUMENT
}

fn make() -> Value {
    let (mut schemas, mut paths) = (Schemas::default(), Map::new());
    let problem = operation::content("application/json", schemas.answered::<ProblemView>());
    for Row { endpoint, describe, .. } in endpoints::rows() {
        let described = describe(&mut schemas);
        let path = paths.entry(format!("/api/v1{}", endpoint.path)).or_insert_with(|| json!({}));
        path[endpoint.method.as_str().to_ascii_lowercase()] = show(&endpoint, described);
    }
    paths.extend(hooks::paths());
    let refused = |what: &str| json!({"description": what, "content": problem});
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ebbflow",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Define, run and observe workflows.",
            "contact": {"name": "The Ebbflow authors"},
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": TAGS.map(|(name, description)| json!({"name": name, "description": description})),
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": STATUSES.iter().map(|(status, what)| (status.to_string(), refused(what))).collect::<Map<_, _>>(),
            "schemas": schemas.into_named(),
        },
    });
    open_schemas(&mut document);
    document
}

/// Replaces the schema `true` by `{}`, which means the same and which every generator understands.
fn open_schemas(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(open_schemas),
        Value::Object(fields) => {
            for (name, field) in fields {
                let schemas = match (name.as_str(), field) {
                    ("default" | "example" | "const" | "enum", _) => continue,
                    ("properties", Value::Object(schemas)) => schemas.values_mut().collect(),
                    ("anyOf" | "allOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                        schemas.iter_mut().collect()
                    }
                    ("schema" | "items" | "additionalProperties", schema) => vec![schema],
                    (_, other) => {
                        open_schemas(other);
                        continue;
                    }
                };
                for schema in schemas {
                    match schema {
                        Value::Bool(true) => *schema = json!({}),
                        other => open_schemas(other),
                    }
                }
            }
        }
        _ => {}
    }
}

/// The subject of each group of operations.
const TAGS: [(&str, &str); 23] = [
    ("workflows", "Workflow definitions and their versions."),
    ("task-types", "Task types, built-in and custom."),
    ("runs", "Runs, their tasks, logs and outputs."),
    ("events", "Events of runs, live."),
    ("schedules", "Schedules of workflows."),
    ("backfills", "Runs for past dates."),
    ("triggers", "Events from outside that start runs."),
    ("hooks", "Signed webhooks."),
    ("timers", "Pending timers."),
    ("limits", "Concurrency limits and their wait queues."),
    ("breakers", "Circuit breakers of tasks and hosts."),
    ("queues", "Tasks waiting for a worker."),
    ("tenants", "Tenants and their share of the instance."),
    ("workers", "Workers and the attempts they hold."),
    ("execution", "The protocol of remote workers."),
    ("dead-letters", "Messages that could not be processed."),
    ("log-filters", "What the instances of functions log."),
    ("audit", "Who changed what."),
    ("doctor", "The health of the instance."),
    ("tokens", "Service tokens."),
    ("grants", "Roles granted over the API."),
    ("openapi", "This document."),
    ("docs", "This document, for people."),
];

/// Why a request may fail, by status.
const STATUSES: [(u16, &str); 12] = [
    (400, "The request is malformed."),
    (401, "The token is missing or not accepted."),
    (403, "The caller lacks the permission."),
    (404, "Not found."),
    (409, "The request conflicts with the current state."),
    (412, "The resource has changed since it was read."),
    (413, "The body is too large."),
    (415, "The content type is not supported."),
    (422, "The request is well-formed but cannot be executed."),
    (429, "Too many requests. Retry after the seconds in `Retry-After`."),
    (500, "Internal error. The server's log has the details."),
    (503, "Temporarily unavailable. Retry after the seconds in `Retry-After`."),
];

/// Whether an endpoint can return that status.
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

/// Whether it changes definitions, which have ETags.
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
        let what = match (*status, &endpoint.method) {
            (_, &Method::GET) => "OK.",
            (201, _) => "Created.",
            _ => "Done, or nothing had to be done.",
        };
        let answer = match content {
            Value::Null => json!({"description": "Not modified: the caller has the current version."}),
            content => json!({"description": what, "content": content}),
        };
        responses.insert(status.to_string(), answer);
    }
    if let Some(kind) = endpoint.content_type {
        let content = operation::content(kind, json!({"type": "string"}));
        responses.insert("200".into(), json!({"description": "OK.", "content": content}));
    }
    let mut shown = json!({
        "operationId": endpoint.id,
        "tags": [endpoints::tag(endpoint.path)],
        "summary": endpoint.summary,
        "description": endpoint.description,
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
    if endpoint.change.is_some() {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "The same request with the same key is executed once and gets the same response for a day.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$"},
        }));
    }
    if described.answers.iter().any(|(status, _)| *status == 304) {
        parameters.push(json!({
            "name": "If-None-Match", "in": "header", "required": false,
            "description": "The ETag of the definition the caller has.",
            "schema": {"type": "string"},
        }));
    }
    if is_register(endpoint) {
        parameters.push(json!({
            "name": "If-Match", "in": "header", "required": false,
            "description": "The ETag of the definition to replace.",
            "schema": {"type": "string", "pattern": "^[!-~]*$"},
        }));
    }
    if endpoint.content_type == Some("text/event-stream") {
        parameters.push(json!({
            "name": "Last-Event-ID", "in": "header", "required": false,
            "description": "The id of the last event received; the stream continues after it.",
            "schema": {"type": "string", "pattern": "^[!-~]*$"},
        }));
    }
    parameters
}

/// JSON that was written before, once for all requests.
pub(crate) struct Prepared(Bytes);

impl IntoResponse for Prepared {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}

impl Answers for Prepared {
    fn answer(operation: &mut Operation, schemas: &mut Schemas) {
        axum::Json::<Value>::answer(operation, schemas);
    }
}

pub(crate) async fn get_document() -> Prepared {
    Prepared(JSON.clone())
}

pub(crate) async fn get_page() -> Response {
    let policy = (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    ([policy, kind], PAGE.as_str()).into_response()
}

pub(crate) async fn get_style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], page::STYLE).into_response()
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;

    #[tokio::test]
    async fn the_document_is_written_once_however_often_it_is_read() {
        let read = async || {
            let mut body = get_document().await.into_response().into_body().into_data_stream();
            body.next().await.unwrap().unwrap()
        };
        let (one, other) = (read().await, read().await);
        assert_eq!(one.as_ptr(), other.as_ptr(), "both are the same bytes");
        assert_eq!(serde_json::from_slice::<Value>(&one).unwrap(), *document());
    }
}
