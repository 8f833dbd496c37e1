//! Every request, seen from outside: what its log lines are about, how it was answered, and how long that took.

use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use bus::envelope::{Delivery, is_traceparent};
use model::RunId;
use tracing::field::{Empty, display};
use tracing::{Instrument, Span, debug, error_span, warn};

use crate::traces;

/// Marks a request that is observed already: in one process a function lies within another's router.
#[derive(Clone, Copy)]
struct Observed;

/// Writes the lines of a request within a span that says what they are about, counts it, and logs how it was answered:
/// aloud if it was not well.
pub async fn observed(mut request: Request, next: Next) -> Response {
    if request.extensions_mut().insert(Observed).is_some() {
        return next.run(request).await;
    }
    let started = Instant::now();
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let path = path.unwrap_or_else(|| "other".into());
    let (method, uri, headers) = (request.method().clone(), request.uri().clone(), request.headers().clone());
    let span = span_of(&method, &path, &headers);
    let response = next.run(request).instrument(span.clone()).await;
    let took = started.elapsed();
    crate::metrics::request(&path, response.status(), took);
    span.record("status", response.status().as_u16());
    span.in_scope(|| answered(&method, &uri, &headers, response.status(), took));
    response
}

/// Whatever is logged, this span is there: it is what lines are labelled by, and what a collector is sent.
fn span_of(method: &Method, path: &str, headers: &HeaderMap) -> Span {
    let span = error_span!(
        "request",
        name = Empty,
        trace = Empty,
        span = traces::new_id(),
        parent = Empty,
        tenant = Empty,
        workflow = Empty,
        run = Empty,
        task = Empty,
        attempt = Empty,
        status = Empty
    );
    // What is pushed is named by what it is.
    if path != "/push" {
        span.record("name", display(format_args!("{method} {path}")));
    }
    let parent = headers.get("traceparent").and_then(|value| value.to_str().ok());
    if let Some(parent) = parent.filter(|text| is_traceparent(text)) {
        if wants_it_kept(parent) {
            belong_to(&span, parent);
        } else {
            span.record("trace", traces::parts(parent).0);
        }
    }
    span
}

/// Whether a caller keeps the spans of its trace.
fn wants_it_kept(traceparent: &str) -> bool {
    u8::from_str_radix(&traceparent[53..55], 16).is_ok_and(|flags| flags & 1 == 1)
}

fn belong_to(span: &Span, traceparent: &str) {
    let (trace, parent) = traces::parts(traceparent);
    span.record("trace", trace).record("parent", parent);
}

/// Says in the lines of this request which run they are about. It is part of the run's trace; that of its caller, if it has
/// one, is a link of its span.
pub fn note_run(run: RunId) {
    let span = Span::current();
    belong_to(&span, &run.traceparent());
    span.record("run", display(run));
}

/// Says in the lines of this request which message and which run they are about.
pub(crate) fn note_delivery(delivery: &Delivery, now: model::Instant) {
    let span = Span::current();
    span.record("name", delivery.message.kind());
    if let Some(run) = delivery.message.run() {
        note_run(run);
    }
    if let Some(parent) = &delivery.traceparent {
        belong_to(&span, parent);
    }
    traces::arrived(delivery, now);
    if let Some(made_at) = delivery.made_at {
        crate::metrics::delivered(delivery.message.kind(), made_at, now);
    }
}

fn answered(method: &Method, uri: &Uri, headers: &HeaderMap, status: StatusCode, took: Duration) {
    let (latency, agent) = (format!("{:.6}s", took.as_secs_f64()), text(headers, header::USER_AGENT));
    let (path, number) = (uri.path(), status.as_u16());
    if status.is_server_error() {
        warn!(
            http.requestMethod = %method, http.requestUrl = path, http.status = number, http.latency = latency,
            http.userAgent = agent, "{method} {path} was answered {number}"
        );
    } else {
        debug!(
            http.requestMethod = %method, http.requestUrl = path, http.status = number, http.latency = latency,
            http.userAgent = agent, "{method} {path} was answered {number}"
        );
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
