//! The web pages and the read side of the REST API.
//!
//! Pages are made here and need no script. They accept the token that the API accepts; what they show is what
//! the API answers.

mod pages;
mod reader;
mod schemas;
mod show;
mod sign_in;

use std::process::ExitCode;

use api::Api;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use service::health;
use tracing::warn;

const STYLE: &str = include_str!("../templates/style.css");

/// Nothing is fetched but our own style sheet, nothing runs, nobody frames us.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The pages, the API below `/api/v1`, the language's schemas, and health.
pub fn router(api: Api) -> Router {
    let pages = Router::new()
        .route("/", get(pages::runs))
        .route("/runs/{id}", get(pages::run))
        .route("/runs/{id}/tasks/{task}/log", get(pages::log))
        .route("/style.css", get(style))
        .layer(middleware::from_fn(guarded))
        .with_state(api.clone());
    let signing = sign_in::router(api.clone()).layer(middleware::from_fn(guarded));
    pages.merge(signing).merge(schemas::router()).merge(health(api.app.clone())).merge(api::router(api))
}

async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE)
}

/// Says to the browser what a page may do.
async fn guarded(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The console as a service: reads its configuration and serves until it is asked to stop.
pub fn main() -> ExitCode {
    service::main("console", |config, app| async move {
        Ok(match Api::configured(&config, app.clone())? {
            Some(api) => router(api),
            None => {
                warn!("EBB_API_AUDIENCE is not set: nobody can be told apart, so only health is served");
                health(app)
            }
        })
    })
}

#[cfg(test)]
mod tests;
