//! Creates runs from requests and events.
//!
//! A request arrives as a message, or over HTTP if the API is mounted. It contains the run's id, so a duplicate finds the run
//! that the first one created. External events start runs through matching triggers; a duplicate event starts none.

mod webhooks;

use std::process::ExitCode;

use api::Api;
use api::request::Query;
use axum::Router;
use axum::extract::State;
use axum::middleware::from_fn;
use axum::routing::post;
use host::envelope::{Incoming, Opened};
use host::{AnyPush, App, Reply, Secrets, Verdict, health, request_timeout};
use model::message::RunRequested;
use model::{CloudEvent, Message};
use runtime::StartRun;
use serde::Deserialize;
use tracing::{info, warn};

pub use webhooks::webhooks;

/// `POST /push`, or `/push?tenant=NAME`: a request for a run, or an event. `POST /api/v1/hooks/WORKFLOW/TRIGGER`,
/// or `/api/v1/tenants/NAME/hooks/…`: signed webhooks. Below `/api/v1`, if given: the API. Without secrets.
pub fn router(app: App, api: Option<Api>) -> Router {
    router_with(app, api, Secrets::default())
}

/// The router with the secrets that webhooks are signed with.
pub fn router_with(app: App, api: Option<Api>, secrets: Secrets) -> Router {
    let router = Router::new().route("/push", post(push)).with_state(app.clone());
    let router = router.merge(webhooks(app.clone(), api.clone(), secrets)).merge(health(app));
    match api {
        Some(api) => router.merge(api::router(api)),
        None => router,
    }
}

/// The tenant of pushed events: a subscription's address names it, since its events cannot.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Addressed {
    tenant: Option<String>,
}

async fn push(State(app): State<App>, Query(addressed): Query<Addressed>, AnyPush(opened): AnyPush) -> Reply {
    match opened {
        Opened::Ours(delivery) => {
            let outcome = match delivery.message.clone() {
                Message::RunRequested(request) => start(&app, request).await,
                Message::RunFinished(finished) => {
                    app.runtime.triggers().follow(&finished).await.map(|()| Verdict::Done)
                }
                // Without a filter, a subscription also gets the ends of tasks.
                Message::TaskFinished(_) => Ok(Verdict::Done),
                other => Ok(Verdict::Reject(format!("trigger does not handle `{}`", other.kind()))),
            };
            app.reply(&delivery, outcome).await
        }
        Opened::Foreign(mut incoming) => {
            // Part of the event, so that it survives a redelivery.
            let tenant = addressed.tenant.map(|tenant| (CloudEvent::TENANT.to_owned(), tenant));
            incoming.event.attributes.extend(tenant);
            receive(&app, &incoming).await
        }
    }
}

/// Passes an event to its triggers. An event without a trigger is not an error.
async fn receive(app: &App, incoming: &Incoming) -> Reply {
    let event = &incoming.event;
    let received = match app.runtime.triggers().receive(event).await {
        Ok(received) => received,
        Err(error) if error.is_hopeless() => return app.dead_letter_event(incoming, error.to_string()).await,
        Err(error) => return Reply::Retry(error.to_string()),
    };
    if received.outcomes.is_empty() {
        warn!(event.kind, event.source, "Event {} matches no trigger", event.id);
    }
    for (key, outcome) in &received.outcomes {
        info!("Event {} at trigger `{}` of `{}`: {outcome:?}", event.id, key.name, key.workflow);
    }
    match received.complaint() {
        Some(reason) => app.dead_letter_event(incoming, reason).await,
        None => Reply::Ack,
    }
}

/// Creates the run. A second copy of the message creates nothing.
async fn start(app: &App, request: RunRequested) -> runtime::Result<Verdict> {
    let parent = request.parent;
    let start = StartRun::from(request);
    let started = match parent {
        Some(parent) => app.runtime.child_runs().start(start, parent).await,
        None => app.runtime.start(start).await.map(|_| ()),
    };
    match started {
        // The workflow is configured to skip runs while another run of its concurrency group is active.
        Ok(()) | Err(runtime::Error::ConcurrencyGroupTaken(_)) => Ok(Verdict::Done),
        // A redelivery would slow down the messages of other tenants.
        Err(error) if error.is_quota() => Ok(Verdict::Reject(error.to_string())),
        Err(error) => Err(error),
    }
}

/// The function as a service: reads its configuration and serves until shutdown.
pub fn main() -> ExitCode {
    host::main("trigger", |config, connected| async move {
        let app = connected.app.clone();
        let api = Api::configured(&config, connected)?;
        if api.is_none() {
            info!("EBB_API_AUDIENCE is not set: not serving the API; only messages start runs");
        }
        Ok(router_with(app, api, config.secrets).layer(from_fn(request_timeout)))
    })
}

#[cfg(test)]
mod tests;
