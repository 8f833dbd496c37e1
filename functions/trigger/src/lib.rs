//! Accepts requests, schedules and events, and creates runs.
//!
//! A request comes as a message, or over HTTP where the API is mounted. Either may come twice: the id of the
//! run is part of it, so that the second one finds the run that the first one created.

use std::process::ExitCode;

use api::Api;
use axum::Router;
use axum::extract::State;
use axum::middleware::from_fn;
use axum::routing::post;
use model::Message;
use model::message::RunRequested;
use runtime::StartRun;
use service::{App, Push, Reply, Verdict, health, in_time};
use tracing::info;

/// `POST /push`: a run is asked for. Below `/api/v1`, where given: the API.
pub fn router(app: App, api: Option<Api>) -> Router {
    let router = Router::new().route("/push", post(push)).with_state(app.clone()).merge(health(app));
    match api {
        Some(api) => router.merge(api::router(api)),
        None => router,
    }
}

async fn push(State(app): State<App>, Push(delivery): Push) -> Reply {
    let outcome = match delivery.message.clone() {
        Message::RunRequested(request) => start(&app, request).await,
        other => Ok(Verdict::Hopeless(format!("trigger takes no `{}`", other.kind()))),
    };
    app.reply(&delivery, outcome).await
}

/// Creates the run. A second copy of the message creates nothing.
async fn start(app: &App, request: RunRequested) -> runtime::Result<Verdict> {
    let parent = request.parent;
    let start = StartRun::from(request);
    let started = match parent {
        Some(parent) => app.runtime.start_child(start, parent).await,
        None => app.runtime.start(start).await.map(|_| ()),
    };
    match started {
        // That others of its key go on is what the workflow asks for, and no mistake of the message.
        Ok(()) | Err(runtime::Error::LaneTaken(_)) => Ok(Verdict::Done),
        Err(error) => Err(error),
    }
}

/// The function as a service: reads its configuration and serves until it is asked to stop.
pub fn main() -> ExitCode {
    service::main("trigger", |config, app| async move {
        let api = Api::configured(&config, app.clone())?;
        if api.is_none() {
            info!("EBB_API_AUDIENCE is not set: runs are started by messages only, the API is not served");
        }
        Ok(router(app, api).layer(from_fn(in_time)))
    })
}

#[cfg(test)]
mod tests;
