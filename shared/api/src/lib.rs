//! The REST API below `/api/v1`: reading and steering workflows and runs.
//!
//! Each module has the endpoints of one subject. A handler takes, calls and replies; what it calls is public,
//! since the console's pages show the same things. The modules in reading order:
//!
//! - [`views`]: the shapes that callers rely on. [`links`]: where they lead. [`page`]: lists in pages.
//! - [`access`]: who may do what. [`caller`]: who asks. [`request`]: paths, queries and bodies, refused in words. [`error`]: what went wrong.
//! - [`compare`]: what differs between two definitions.
//! - [`live`]: what happens, as it happens.
//! - [`workflows`], [`versions`], [`runs`], [`tasks`], [`explain`], [`answers`], [`operate`], [`bulk`], [`logs`], [`limits`],
//!   [`workers`], [`timers`], [`schedules`], [`drift`], [`backfills`], [`triggers`], [`dead_letters`], [`doctor`]: the endpoints.

pub mod access;
pub mod answers;
pub mod backfills;
pub mod bulk;
pub mod caller;
pub mod compare;
pub mod dead_letters;
pub mod definitions;
pub mod doctor;
pub mod drift;
pub mod error;
pub mod explain;
pub mod limits;
pub mod links;
pub mod live;
pub mod logs;
pub mod operate;
pub mod page;
pub mod request;
pub mod runs;
pub mod schedules;
pub mod tasks;
pub mod timers;
pub mod triggers;
pub mod versions;
pub mod views;
pub mod workers;
pub mod workflows;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use service::config::BusConfig;
use service::{App, Config, Problem};

pub use access::Access;
pub use caller::Caller;
pub use links::Links;
pub use live::Feed;

/// No request's body is larger, in bytes.
pub const BODY_LIMIT: usize = 1024 * 1024;

/// What the API works with; cheap to clone.
#[derive(Clone)]
pub struct Api {
    /// The store and the runtime.
    pub app: App,
    /// Who is let in, and what they may do.
    pub access: Access,
    /// Where things can be looked at.
    pub links: Links,
    /// Whether pages may be read without a token: only where nobody but this machine can reach them.
    pub pages_open: bool,
    /// What listeners are told.
    pub feed: Feed,
}

impl Api {
    /// The API that a function's configuration describes; none where it does not say whose tokens to believe.
    pub fn configured(config: &Config, app: App) -> Result<Option<Self>, auth::Error> {
        let Some(access) = &config.api else { return Ok(None) };
        let project = match &config.bus {
            BusConfig::PubSub { project, endpoint: None } => Some(project.clone()),
            _ => None,
        };
        let links = Links { project, ..Links::local(config.console_url.as_deref().unwrap_or_default()) };
        let access = Access::configured(access)?;
        Ok(Some(Self { app, access, links, pages_open: false, feed: Feed::default() }))
    }
}

/// Everything below `/api/v1`.
pub fn router(api: Api) -> Router {
    let v1 = Router::new()
        .route("/workflows", get(workflows::get_list).post(workflows::post_register))
        .route("/workflows/validate", post(workflows::post_validate))
        .route("/workflows/{name}", get(workflows::get_one))
        .route("/workflows/{name}/archive", post(versions::post_archive))
        .route("/workflows/{name}/versions", get(versions::get_list))
        .route("/workflows/{name}/versions/{number}", get(versions::get_one))
        .route("/workflows/{name}/versions/{number}/activate", post(versions::post_activate))
        .route("/workflows/{name}/versions/{number}/compare/{other}", get(versions::get_comparison))
        .route("/workflows/{name}/runs", post(runs::post_start))
        .route("/runs", get(runs::get_list))
        .route("/runs/{id}", get(runs::get_one))
        .route("/runs/bulk", post(bulk::post_bulk))
        .route("/runs/{id}/cancel", post(runs::post_cancel))
        .route("/runs/{id}/pause", post(operate::post_pause))
        .route("/runs/{id}/resume", post(operate::post_resume))
        .route("/runs/{id}/retry", post(operate::post_retry))
        .route("/runs/{id}/evaluate", post(operate::post_evaluate))
        .route("/runs/{id}/events", get(runs::get_events))
        .route("/runs/{id}/explain", get(explain::get_explanation))
        .route("/runs/{id}/signals/{name}", post(answers::post_signal))
        .route("/runs/{id}/tasks/{task}/approve", post(answers::post_approve))
        .route("/runs/{id}/tasks/{task}/reject", post(answers::post_reject))
        .route("/runs/{id}/tasks/{task}/clear", post(operate::post_clear))
        .route("/runs/{id}/tasks/{task}/succeed", post(operate::post_succeed))
        .route("/runs/{id}/tasks/{task}/fail", post(operate::post_fail))
        .route("/runs/{id}/tasks/{task}/wake", post(operate::post_wake))
        .route("/runs/{id}/tasks", get(tasks::get_list))
        .route("/runs/{id}/tasks/{task}", get(tasks::get_one))
        .route("/runs/{id}/tasks/{task}/attempts", get(tasks::get_attempts))
        .route("/runs/{id}/tasks/{task}/logs", get(logs::get_lines))
        .route("/events", get(live::get_events))
        .route("/limits", get(limits::get_list))
        .route("/limits/{kind}/{name}", get(limits::get_detail).post(limits::post_places))
        .route("/workers", get(workers::get_list))
        .route("/workers/{id}/drain", post(workers::post_drain))
        .route("/workers/{id}/kill", post(workers::post_kill))
        .route("/doctor", get(doctor::get_report))
        .route("/doctor/repair", post(doctor::post_repair))
        .route("/timers", get(timers::get_list))
        .route("/runs/{id}/timers", get(timers::get_of_run))
        .route("/schedules", get(schedules::get_list))
        .route("/schedules/{workflow}", get(schedules::get_of_workflow))
        .route("/schedules/{workflow}/next", get(schedules::get_next))
        .route("/schedules/{workflow}/drift", get(drift::get_drift))
        .route("/schedules/{workflow}/pause", post(schedules::post_pause))
        .route("/schedules/{workflow}/resume", post(schedules::post_resume))
        .route("/backfills", get(backfills::get_list).post(backfills::post_start))
        .route("/backfills/{id}", get(backfills::get_one))
        .route("/backfills/{id}/pause", post(backfills::post_pause))
        .route("/backfills/{id}/resume", post(backfills::post_resume))
        .route("/backfills/{id}/cancel", post(backfills::post_cancel))
        .route("/triggers", get(triggers::get_list))
        .route("/triggers/{workflow}/{name}", get(triggers::get_one))
        .route("/triggers/{workflow}/{name}/pause", post(triggers::post_pause))
        .route("/triggers/{workflow}/{name}/resume", post(triggers::post_resume))
        .route("/dead-letters", get(dead_letters::get_list))
        .route("/dead-letters/bulk", post(dead_letters::post_bulk))
        .route("/dead-letters/{id}", get(dead_letters::get_one))
        .route("/dead-letters/{id}/replay", post(dead_letters::post_replay))
        .route("/dead-letters/{id}/discard", post(dead_letters::post_discard))
        .route("/tokens", get(access::get_tokens).post(access::post_token))
        .route("/tokens/{id}", delete(access::delete_token))
        .route("/grants", get(access::get_grants).post(access::post_grant))
        .route("/grants/{id}", delete(access::delete_grant))
        .route_layer(middleware::from_fn_with_state(api.clone(), access::guard))
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
    let message = format!("`/api/v1{}` takes no {}", request.uri().path(), request.method());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}

/// Refuses what no handler can make sense of, and ends what takes too long.
async fn bounded(request: Request, next: Next) -> Response {
    // The database cannot hold a NUL in a text, so nothing has one in its name.
    if request.uri().to_string().contains("%00") {
        return Problem::bad_request("the address holds a NUL character (%00)").into_response();
    }
    service::in_time(request, next).await
}
