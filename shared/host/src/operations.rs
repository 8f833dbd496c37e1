//! Endpoints for operators of a function: its metrics and its log level.

use std::sync::Arc;

use auth::PushAuth;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::{App, Problem, check_no_query, metrics, read_body, telemetry};

/// The maximum length of a log filter, in bytes.
const MAX_FILTER_BYTES: usize = 1024;

/// Who may use the endpoints for operators, besides the account that may push, and what the metrics cover.
#[derive(Clone, Default)]
pub struct Operations {
    /// `EBB_OPERATIONS_TOKEN`: an accepted token.
    pub token: Option<String>,
    /// An account whose tokens are accepted.
    pub account: Option<Arc<PushAuth>>,
    /// Whether the metrics include the load in the store, not only this process.
    pub with_load: bool,
}

impl Operations {
    async fn accepts(&self, app: &App, authorization: Option<&str>) -> bool {
        let bearer = authorization.and_then(|text| text.strip_prefix("Bearer "));
        if let (Some(token), Some(bearer)) = (&self.token, bearer)
            && auth::constant_time_eq(token, bearer)
        {
            return true;
        }
        match &self.account {
            Some(account) => account.check(authorization, app.now()).await.is_ok(),
            None => false,
        }
    }
}

/// `GET /metrics`: in Prometheus' text format. `GET` and `PUT /log-level`: the log filter, in the syntax of `RUST_LOG`.
pub(crate) fn router(app: App) -> Router {
    Router::new()
        .route("/metrics", get(show_metrics))
        .route("/log-level", get(show_filter).put(set_filter))
        .layer(from_fn(check_no_query))
        .with_state(app)
}

async fn admit(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if app.operations.accepts(app, authorization).await {
        return Ok(());
    }
    Ok(app.push.check(authorization, app.now()).await?)
}

async fn show_metrics(State(app): State<App>, headers: HeaderMap) -> Result<Response, Problem> {
    admit(&app, &headers).await?;
    let store = app.runtime.store();
    metrics::pool(&**store);
    if app.operations.with_load {
        let load = store.load().await.map_err(|error| Problem::unavailable(error.to_string()))?;
        metrics::load(&load, app.now());
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics::page()).into_response())
}

async fn show_filter(State(app): State<App>, headers: HeaderMap) -> Result<String, Problem> {
    admit(&app, &headers).await?;
    Ok(telemetry::filter().unwrap_or_default() + "\n")
}

async fn set_filter(State(app): State<App>, headers: HeaderMap, body: Body) -> Result<String, Problem> {
    admit(&app, &headers).await?;
    let body = read_body(body, MAX_FILTER_BYTES).await?;
    let filter = String::from_utf8_lossy(&body).trim().to_owned();
    let before = telemetry::filter().unwrap_or_default();
    telemetry::set_filter(&filter).map_err(|error| {
        Problem::bad_request(format!(
            "{error}; give a level (debug) or levels by target (info,ebbflow_runtime=debug)"
        ))
    })?;
    tracing::warn!("Changed the log filter from `{before}` to `{filter}`");
    Ok(format!("{filter}\n"))
}
