//! Labels the log lines of each request, and logs and counts its response.

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

/// Marks a request as already observe_request: in `ebb dev` one function's router is nested in another's.
#[derive(Clone, Copy)]
struct Observed;

/// Runs a request in a span that labels its log lines, counts it, and logs its response: as a warning if the server failed.
pub async fn observe_request(mut request: Request, next: Next) -> Response {
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
    span.in_scope(|| log_response(&method, &uri, &headers, response.status(), took));
    response
}

/// Of the highest level, so that the span exists at every log level: it labels log lines and goes to the collector.
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
    // Pushes are named by their message type.
    if path != "/push" {
        span.record("name", display(format_args!("{method} {path}")));
    }
    let parent = headers.get("traceparent").and_then(|value| value.to_str().ok());
    if let Some(parent) = parent.filter(|text| is_traceparent(text)) {
        if is_sampled(parent) {
            set_parent(&span, parent);
        } else {
            span.record("trace", traces::parts(parent).0);
        }
    }
    span
}

/// Whether the caller records its trace.
fn is_sampled(traceparent: &str) -> bool {
    u8::from_str_radix(&traceparent[53..55], 16).is_ok_and(|flags| flags & 1 == 1)
}

fn set_parent(span: &Span, traceparent: &str) {
    let (trace, parent) = traces::parts(traceparent);
    span.record("trace", trace).record("parent", parent);
}

/// Labels the log lines of this request with its run. The request joins the run's trace and links to its caller's.
pub fn label_run(run: RunId) {
    let span = Span::current();
    set_parent(&span, &run.traceparent());
    span.record("run", display(run));
}

/// Labels the log lines of this request with its message and run.
pub(crate) fn label_delivery(delivery: &Delivery, now: model::Instant) {
    let span = Span::current();
    span.record("name", delivery.message.kind());
    if let Some(run) = delivery.message.run() {
        label_run(run);
    }
    if let Some(parent) = &delivery.traceparent {
        set_parent(&span, parent);
    }
    traces::record_delivery(delivery, now);
    if let Some(created_at) = delivery.created_at {
        crate::metrics::delivered(delivery.message.kind(), created_at, now);
    }
}

fn log_response(method: &Method, uri: &Uri, headers: &HeaderMap, status: StatusCode, took: Duration) {
    let (latency, agent) = (format!("{:.6}s", took.as_secs_f64()), text(headers, header::USER_AGENT));
    let (path, number) = (uri.path(), status.as_u16());
    if status.is_server_error() {
        warn!(
            http.requestMethod = %method, http.requestUrl = path, http.status = number, http.latency = latency,
            http.userAgent = agent, "{method} {path}: {number}"
        );
    } else {
        debug!(
            http.requestMethod = %method, http.requestUrl = path, http.status = number, http.latency = latency,
            http.userAgent = agent, "{method} {path}: {number}"
        );
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
