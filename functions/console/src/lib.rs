//! The web pages and the read side of the REST API.
//!
//! Pages are rendered here, from what the API returns to their reader, and everything they do is a form that the API
//! carries out. They need no script; the one there is adds live updates, zoom and search. In reading order:
//!
//! - `visitor`, `sent`, `shell`, `ask`, `refused`: who reads, what a form sends, the frame of a page, the API, and errors.
//! - `show`, `graph`, `phases`, `charts`, `yaml`: how values are written and drawn.
//! - `pages`: each page.

mod ask;
mod assets;
mod charts;
mod graph;
mod live;
mod pages;
mod phases;
mod refused;
mod schemas;
mod sent;
mod shell;
mod show;
mod sign_in;
mod visitor;
mod yaml;

use std::process::ExitCode;

use api::{Api, RESPONSE_LIMIT};
use axum::Router;
use axum::body::HttpBody;
use axum::extract::{FromRef, Request};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use host::{Problem, health};
use refused::Refused;
use tracing::warn;

/// Only our own style sheet and script are loaded, and no site may frame us.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What pages are made from; cheap to clone.
#[derive(Clone)]
struct Console {
    /// Shared state of the pages.
    api: Api,
    /// The API, to be asked.
    asked: Router,
}

impl FromRef<Console> for Api {
    fn from_ref(console: &Console) -> Self {
        console.api.clone()
    }
}

/// The pages, the API below `/api/v1`, the language's schemas, and health.
pub fn router(api: Api) -> Router {
    let asked = api::router(api.clone());
    let console = Console { api: api.clone(), asked: asked.clone() };
    let pages = pages::router().merge(sign_in::router());
    let pages = pages.layer(middleware::from_fn(plain)).layer(middleware::from_fn(bounded));
    let pages = pages.layer(middleware::from_fn(guarded)).with_state(console);
    pages.merge(assets::router()).merge(schemas::router()).merge(health(api.app)).merge(asked)
}

/// Refuses forms that are sent with a query: what it says would be ignored.
async fn plain(request: Request, next: Next) -> Response {
    match host::unknown_parameter(request.uri(), &[]) {
        Err(problem) if request.method() == Method::POST => Refused::from(problem).into_response(),
        _ => next.run(request).await,
    }
}

/// Ends the making of a page that takes too long, and refuses to send one that is too large. What is long is shown in part, so that
/// no page comes near the limit; streams have no length.
async fn bounded(request: Request, next: Next) -> Response {
    let response = host::request_timeout(request, next).await;
    let json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if json && response.status() == StatusCode::SERVICE_UNAVAILABLE {
        return Refused::from(Problem::unavailable("The page took too long to make.")).into_response();
    }
    limited(response)
}

fn limited(response: Response) -> Response {
    match response.body().size_hint().exact().filter(|bytes| *bytes > RESPONSE_LIMIT) {
        Some(bytes) => Refused::from(Problem::internal(&format!("a page has {bytes} bytes"))).into_response(),
        None => response,
    }
}

/// Adds the security headers, and clears the notice that the page has shown.
async fn guarded(request: Request, next: Next) -> Response {
    let cookies = request.headers().get(header::COOKIE).and_then(|cookies| cookies.to_str().ok());
    let shown = request.method() == Method::GET && cookies.is_some_and(|text| text.contains(shell::NOTICE));
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if shown
        && headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
    {
        let gone = HeaderValue::from_static("ebb_notice=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
        headers.append(header::SET_COOKIE, gone);
    }
    response
}

/// The console as a service: reads its configuration and serves until it is asked to stop.
pub fn main() -> ExitCode {
    host::main("console", |config, connected| async move {
        let app = connected.app.clone();
        Ok(match Api::configured(&config, connected)? {
            Some(api) => router(api),
            None => {
                warn!(
                    "EBB_API_AUDIENCE is not set, so callers cannot be authenticated; serving health checks only"
                );
                health(app)
            }
        })
    })
}

#[cfg(test)]
mod tests;
