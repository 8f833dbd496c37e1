//! What whoever operates a function reads and sets: its metrics, and what it logs.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::{App, Problem, metrics, read_body, telemetry};

/// No filter is longer, in bytes.
const FILTER_LIMIT: usize = 1024;

/// What the metrics tell of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Page {
    /// What happened in this process.
    OfThisInstance,
    /// That, and how much there is in the store.
    WithLoad,
}

#[derive(Clone)]
struct Shared {
    app: App,
    page: Page,
}

/// `GET /metrics`: in Prometheus' text format. `GET` and `PUT /log-level`: what is logged, in the words of `RUST_LOG`.
pub(crate) fn router(app: App, page: Page) -> Router {
    Router::new()
        .route("/metrics", get(show))
        .route("/log-level", get(tell).put(change))
        .with_state(Shared { app, page })
}

/// Whoever has the token that `EBB_OPERATIONS_TOKEN` names, or may push.
async fn admitted(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = std::env::var("EBB_OPERATIONS_TOKEN").ok().filter(|token| !token.is_empty());
    if let (Some(token), Some(given)) = (token, given.and_then(|given| given.strip_prefix("Bearer ")))
        && auth::same(&token, given)
    {
        return Ok(());
    }
    Ok(app.push.check(given, app.now()).await?)
}

async fn show(State(shared): State<Shared>, headers: HeaderMap) -> Result<Response, Problem> {
    admitted(&shared.app, &headers).await?;
    let store = shared.app.runtime.store();
    metrics::pool(&**store);
    if shared.page == Page::WithLoad {
        let load = store.load().await.map_err(|error| Problem::unavailable(error.to_string()))?;
        metrics::load(&load, shared.app.now());
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics::page()).into_response())
}

async fn tell(State(shared): State<Shared>, headers: HeaderMap) -> Result<String, Problem> {
    admitted(&shared.app, &headers).await?;
    Ok(telemetry::filter().unwrap_or_default() + "\n")
}

async fn change(State(shared): State<Shared>, headers: HeaderMap, body: Body) -> Result<String, Problem> {
    admitted(&shared.app, &headers).await?;
    let body = read_body(body, FILTER_LIMIT).await?;
    let words = String::from_utf8_lossy(&body).trim().to_owned();
    let before = telemetry::filter().unwrap_or_default();
    telemetry::set_filter(&words).map_err(|error| {
        Problem::bad_request(format!(
            "{error}; give a level (debug) or levels by target (info,ebbflow_runtime=debug)"
        ))
    })?;
    tracing::warn!("What is logged was changed from `{before}` to `{words}`");
    Ok(format!("{words}\n"))
}
