//! Liveness and readiness of a function.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;

use crate::{App, operations};

/// `/alive` and `/livez` return 200 while the process serves. `/started` returns 200 from the first connection to the database
/// on: before that, the process has none of these routes and returns 503. `/readyz` returns 200 if the database and the bus
/// respond. `/metrics` and `/log-level` are for operators.
pub fn health(app: App) -> Router {
    Router::new()
        .route("/alive", get(|| async { "ok" }))
        .route("/livez", get(|| async { "ok" }))
        .route("/started", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .with_state(app.clone())
        .merge(operations::router(app))
}

/// Whether a path is one that platforms probe.
pub(crate) fn is_probe(path: &str) -> bool {
    is_liveness(path) || path == "/readyz"
}

/// Whether a path is one of those that respond without the database and the bus.
pub(crate) fn is_liveness(path: &str) -> bool {
    matches!(path, "/alive" | "/livez" | "/started")
}

async fn ready(State(app): State<App>) -> Response {
    let database = status("database", app.runtime.store().ping().await);
    let bus = status("bus", app.runtime.bus().ping().await);
    let ready = [database, bus].iter().all(|status| *status == "ok");
    let body = Json(json!({"database": database, "bus": bus}));
    if ready {
        return body.into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")], body).into_response()
}

/// One word for the response; the reason goes to the log.
fn status<E: std::fmt::Display>(part: &str, ping: Result<(), E>) -> &'static str {
    match ping {
        Ok(()) => "ok",
        Err(error) => {
            tracing::warn!("Not ready: the {part} does not respond: {error}");
            "unavailable"
        }
    }
}
