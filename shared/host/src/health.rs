//! Whether a function lives, and whether it can work.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;

use crate::App;
use crate::operations::{self, Page};

/// `/livez` answers while the process does; `/readyz` answers 200 once database and bus do. `/metrics` and `/log-level`
/// are for whoever operates it.
pub fn health(app: App) -> Router {
    alive(app.clone()).merge(operations::router(app, Page::OfThisInstance))
}

/// The same, where the metrics tell also how much of everything there is in the store.
pub fn health_and_load(app: App) -> Router {
    alive(app.clone()).merge(operations::router(app, Page::WithLoad))
}

fn alive(app: App) -> Router {
    Router::new().route("/livez", get(|| async { "ok" })).route("/readyz", get(ready)).with_state(app)
}

async fn ready(State(app): State<App>) -> Response {
    let database = says("database", app.runtime.store().ping().await);
    let bus = says("bus", app.runtime.bus().ping().await);
    let ready = [database, bus].iter().all(|word| *word == "ok");
    let body = Json(json!({"database": database, "bus": bus}));
    if ready {
        return body.into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")], body).into_response()
}

/// One word for anyone who asks; what is wrong is for the log.
fn says<E: std::fmt::Display>(part: &str, answer: Result<(), E>) -> &'static str {
    match answer {
        Ok(()) => "ok",
        Err(error) => {
            tracing::warn!("Not ready, the {part} does not answer: {error}");
            "unavailable"
        }
    }
}
