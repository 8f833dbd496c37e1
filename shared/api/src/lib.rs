//! The REST API below `/api/v1`: reading and steering workflows and runs.
//!
//! Each module has the endpoints of one subject. A handler takes, calls and replies; what it calls is public,
//! since the console's pages show the same things. The modules in reading order:
//!
//! - [`views`]: the shapes that callers rely on. [`links`]: where they lead. [`page`]: lists in pages.
//! - [`access`]: who may do what. `caller`: who asks. [`request`]: paths, queries and bodies, refused in words. [`error`]: what went wrong.
//! - [`compare`]: what differs between two definitions.
//! - [`endpoints`]: all of them in one table, of which the router and the document ([`openapi`]) are made.
//! - [`live`]: what happens, as it happens.
//! - [`workflows`], [`versions`], [`runs`], [`picture`], [`tasks`], [`explain`], [`answers`], [`operate`], [`bulk`], [`logs`], [`limits`],
//!   [`queues`], [`tenants`], [`execution`], [`workers`], [`timers`], [`schedules`], [`drift`], [`backfills`], [`triggers`], [`dead_letters`], [`doctor`], [`audit`]: the endpoints.

pub mod access;
pub mod answers;
pub mod audit;
pub mod backfills;
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
pub mod limits;
pub mod links;
pub mod live;
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
pub mod tasks;
pub mod tenants;
pub mod timers;
pub mod triggers;
pub mod versions;
pub mod views;
pub mod workers;
pub mod workflows;

use accounts::Accounts;
use auth::Caller;
use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use host::config::BusConfig;
use host::{App, Config, Connected, Problem};
use read::{Database, Reader};

pub use access::Access;
pub use links::Links;
pub use live::Feed;

/// No request's body is larger, in bytes.
pub const BODY_LIMIT: usize = 1024 * 1024;

/// What the API works with; cheap to clone.
#[derive(Clone)]
pub struct Api {
    /// The runtime, which changes things.
    pub app: App,
    /// Where callers read.
    pub database: Database,
    /// Grants, tokens, sessions, the audit log and idempotency records.
    pub accounts: Accounts,
    /// Who is let in, and what they may do.
    pub access: Access,
    /// Where things can be looked at.
    pub links: Links,
    /// Whether pages may be read, and their buttons pressed, by whoever sits at this machine: only where nobody else can
    /// reach them.
    pub pages_open: bool,
    /// What listeners are told.
    pub feed: Feed,
}

impl Api {
    /// The API that a function's configuration describes; none where it does not say whose tokens to believe.
    pub fn configured(config: &Config, connected: Connected) -> Result<Option<Self>, auth::Error> {
        let Some(access) = &config.api else { return Ok(None) };
        let project = match &config.bus {
            BusConfig::PubSub { project, endpoint: None } => Some(project.clone()),
            _ => None,
        };
        let links = Links { project, ..Links::local(config.console_url.as_deref().unwrap_or_default()) };
        let access = Access::configured(access)?;
        let Connected { app, database, accounts } = connected;
        let feed = Feed::default();
        Ok(Some(Self { app, database, accounts, access, links, pages_open: false, feed }))
    }
}

impl Api {
    /// What a caller may see.
    pub(crate) fn reader(&self, caller: &Caller) -> Reader {
        self.database.reader(caller)
    }
}

/// Everything below `/api/v1`.
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

/// Refuses what no handler can make sense of, and ends what takes too long.
async fn bounded(request: Request, next: Next) -> Response {
    // The database cannot hold a NUL in a text, so nothing has one in its name.
    if request.uri().to_string().contains("%00") {
        return Problem::bad_request("the URL contains a NUL character (%00)").into_response();
    }
    // Nothing that is sent grows: whatever would have to be unpacked is refused.
    if request.headers().get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
        let message = "compressed bodies are not supported";
        return Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
            .into_response();
    }
    host::request_timeout(request, next).await
}
