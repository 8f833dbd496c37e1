//! What happens, as it happens: server-sent events.
//!
//! One reader in each instance reads the news for everybody who listens, and only while somebody does: [`Feed`]. Each
//! listener is told what concerns it, as far as it keeps up; one that does not is told that it missed something.

mod feed;
mod listener;
mod log;

use std::convert::Infallible;
use std::future::Future;

use auth::Permission::Read;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::{Extension, http::header};
use futures::stream::Stream;
use host::{Problem, ShutdownNotice};
use model::{RunId, RunState};
use serde::{Deserialize, Serialize};
use store::FeedCursor;

use crate::request::Query;
use crate::views::EventView;
use crate::{Api, Caller, error};

pub use feed::Feed;
use listener::Listener;
pub(crate) use log::get_log;
pub use log::{FollowQuery, FollowedView};

/// Which events to follow.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LiveQuery {
    /// Only of runs of this workflow.
    pub workflow: Option<String>,
    /// Only of this run.
    #[schemars(with = "Option<crate::openapi::shapes::Id>")]
    pub run: Option<RunId>,
}

/// One event, as it is told to whoever listens: what the run's own list of events says of it, and whose it is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LiveView {
    /// The run.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub run: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// The run's current state.
    #[schemars(with = "crate::openapi::shapes::RunStates")]
    pub state: RunState,
    /// The event.
    #[serde(flatten)]
    pub event: EventView,
}

/// What happens from now on, or from the event on that was heard last.
pub async fn listen(
    api: &Api,
    caller: &Caller,
    query: LiveQuery,
    last_heard: Option<&str>,
    stopping: impl Future<Output = ()> + Send + 'static,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + Send + 'static>, Problem> {
    match query.run {
        Some(run) => {
            api.reader(caller).run(run).await?;
        }
        None => caller.check_filter(Read, query.workflow.as_deref())?,
    }
    let subscription = api.feed.subscribe(&api.app.runtime, caller.tenant).await?;
    let mut listener = Listener::new(subscription, query);
    if let Some(text) = last_heard {
        let store = api.app.runtime.store();
        let missed = store.news(Some(&FeedCursor(text.to_owned())), feed::MAX_ROWS).await;
        listener.catch_up(&api.app.runtime, missed.map_err(error::store)?).await;
    }
    Ok(Sse::new(listener.into_stream(stopping)))
}

pub(crate) async fn get_events(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<LiveQuery>,
    stopping: Option<Extension<ShutdownNotice>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let last_heard = last_heard(&headers)?;
    let stopping = stopping.map(|Extension(stopping)| stopping).unwrap_or_default();
    let events = listen(&api, &caller, query, last_heard, stopping.received()).await?;
    Ok((unbuffered(), events).into_response())
}

/// The event that whoever comes again heard last.
fn last_heard(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    match headers.get("last-event-id").map(HeaderValue::to_str) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
        Some(Err(_)) => Err(Problem::bad_request("unknown `Last-Event-ID`")),
    }
}

/// A proxy that waits for more before it passes anything on would make the news old.
fn unbuffered() -> HeaderMap {
    let unbuffered = (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    let fresh = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    HeaderMap::from_iter([unbuffered, fresh])
}
