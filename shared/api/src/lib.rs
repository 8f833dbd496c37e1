//! The REST API below `/api/v1`: reading and steering workflows and runs.
//!
//! Each module has the endpoints of one subject. What handlers call is public where the console's pages show the same
//! things. The modules in reading order:
//!
//! - [`views`]: the shapes that clients rely on. [`links`]: URLs. [`page`]: lists in pages.
//! - [`access`]: authentication and permissions. `caller`: the caller of a request. [`request`]: paths, queries and bodies.
//!   [`error`]: error responses.
//! - [`compare`]: the differences between two definitions.
//! - [`endpoints`]: the table of endpoints, the source of the router and of the document ([`openapi`]).
//! - [`live`]: server-sent events.
//! - [`workflows`], [`versions`], [`runs`], [`picture`], [`tasks`], [`task_types`], [`explain`], [`expressions`], [`approvals`], [`operate`], [`bulk`], [`logs`], [`limits`], [`breakers`],
//!   [`queues`], [`tenants`], [`execution`], [`workers`], [`timers`], [`schedules`], [`drift`], [`backfills`], [`triggers`], [`dead_letters`], [`doctor`], [`audit`]: the endpoints.

pub mod access;
pub mod approvals;
pub mod audit;
pub mod backfills;
pub mod breakers;
pub mod bulk;
mod caller;
pub mod compare;
pub mod dead_letters;
pub mod definitions;
pub mod doctor;
pub mod drift;
pub mod endpoints;
pub mod error;
mod etag;
pub mod execution;
pub mod explain;
pub mod expressions;
pub mod limits;
pub mod links;
pub mod live;
pub mod log_filters;
pub mod logs;
mod mutation;
pub mod openapi;
pub mod operate;
pub mod page;
pub mod picture;
pub mod queues;
pub mod request;
pub mod runs;
pub mod schedules;
pub mod task_types;
pub mod tasks;
pub mod tenants;
pub mod timers;
pub mod triggers;
pub mod versions;
pub mod views;
pub mod workers;
pub mod workflows;

use std::sync::Arc;

use accounts::Accounts;
use auth::Caller;
use axum::Router;
use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use host::config::BusConfig;
use host::{App, Config, Connected, Problem, Secrets};
use model::VersionId;
use read::{Database, Reader};

pub use access::Access;
pub use links::Links;
pub use live::Feed;
pub use runtime::{Graph, attempts_allowed};

/// The maximum size of a request's body, in bytes.
pub const BODY_LIMIT: usize = 1024 * 1024;

/// The maximum size of a response in bytes. Streams have none: they are sent as they are read.
pub const RESPONSE_LIMIT: u64 = 32 * 1024 * 1024;

/// Everything that handlers need; cheap to clone.
#[derive(Clone)]
pub struct Api {
    /// The runtime, through which every change goes.
    pub app: App,
    /// The database, from which callers read.
    pub database: Database,
    /// Grants, tokens, sessions, the audit log and idempotency records.
    pub accounts: Accounts,
    /// Authentication, grants, rate limits and quotas.
    pub access: Access,
    /// The URLs of pages and traces.
    pub links: Links,
    /// Whether the console is open without signing in: only if it is reachable from this machine alone.
    pub pages_open: bool,
    /// The readers of the change feed, and their listeners.
    pub feed: Feed,
    /// The secrets that leases carry to remote workers.
    pub secrets: Secrets,
}

impl Api {
    /// The API of a function's configuration; none without an issuer of tokens.
    pub fn configured(config: &Config, connected: Connected) -> Result<Option<Self>, auth::Error> {
        let Some(access) = &config.api else { return Ok(None) };
        let project = match &config.bus {
            BusConfig::PubSub { project, endpoint: None, .. } => Some(project.clone()),
            _ => None,
        };
        let links = Links { project, ..Links::local(config.console_url.as_deref().unwrap_or_default()) };
        let access = Access::configured(access)?.with_queues(config.queues());
        Ok(Some(Self { secrets: config.secrets.clone(), ..Self::new(connected, access, links) }))
    }

    /// An API without secrets, whose console asks everyone to sign in.
    pub fn new(connected: Connected, access: Access, links: Links) -> Self {
        let Connected { app, database, accounts } = connected;
        let (feed, secrets) = (Feed::default(), Secrets::default());
        Self { app, database, accounts, access, links, pages_open: false, feed, secrets }
    }

    /// A reader of the resources that a caller may see.
    pub(crate) fn reader(&self, caller: &Caller) -> Reader {
        self.database.reader(caller)
    }

    /// The graph of a version; none if there is no such version.
    pub async fn graph(&self, version: VersionId) -> Result<Option<Arc<Graph>>, Problem> {
        self.app.runtime.graph(version).await.map_err(error::runtime)
    }
}

/// The router of everything below `/api/v1`.
pub fn router(api: Api) -> Router {
    let v1 = endpoints::router(&api)
        .fallback(no_such_endpoint)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn(bounded))
        .with_state(api);
    Router::new().nest("/api/v1", v1)
}

async fn no_such_endpoint(request: Request) -> Problem {
    Problem::not_found(format!("there is no endpoint `/api/v1{}`", request.uri().path()))
}

async fn no_such_method(request: Request) -> Problem {
    let message = format!("`/api/v1{}` does not support {}", request.uri().path(), request.method());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}

/// Refuses requests that no handler accepts, and ends those that take too long. What is served next to the API passes it, too.
pub async fn bounded(request: Request, next: Next) -> Response {
    // The database cannot store a NUL in a text, so no name has one.
    if request.uri().to_string().contains("%00") {
        return Problem::bad_request("the URL contains a NUL character (%00)").into_response();
    }
    // A compressed body could exceed the limit once it is unpacked.
    if request.headers().get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
        let message = "compressed bodies are not supported";
        return Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
            .into_response();
    }
    limited(host::request_timeout(request, next).await)
}

/// Refuses to send more than the limit. Lists end early, so that no page comes near it; streams have no length.
fn limited(response: Response) -> Response {
    match response.body().size_hint().exact().filter(|bytes| *bytes > RESPONSE_LIMIT) {
        Some(bytes) => Problem::internal(&format!("a response has {bytes} bytes")).into_response(),
        None => response,
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn a_response_that_is_too_large_is_not_sent() {
        let of = |bytes: u64| limited(Response::new(Body::from(vec![b'x'; bytes as usize]))).status();
        assert_eq!(of(RESPONSE_LIMIT), StatusCode::OK);
        assert_eq!(of(RESPONSE_LIMIT + 1), StatusCode::INTERNAL_SERVER_ERROR);
        let stream = futures::stream::once(async { Ok::<_, std::io::Error>("x") });
        assert_eq!(
            limited(Response::new(Body::from_stream(stream))).status(),
            StatusCode::OK,
            "it has no length"
        );
    }
}
