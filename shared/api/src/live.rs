//! Server-sent events: changes to runs as they happen.
//!
//! An instance reads the change feed of a tenant once for all who listen in it, in the tenant's database role, and only
//! while a client listens: [`Feed`]. A listener that cannot keep up is sent a gap.

mod feed;
mod listener;
mod log;
mod stay;

use std::convert::Infallible;
use std::future::Future;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::Stream;
use host::Problem;
use model::{RunId, RunState};
use read::{ChangeFeed, FeedCursor, Reader};
use serde::{Deserialize, Serialize};

use crate::request::Query;
use crate::views::{EventView, ProgressView};
use crate::{Api, Caller};

pub use feed::Feed;
use listener::Listener;
pub(crate) use log::get_log;
pub use log::{FollowQuery, FollowedView};
pub(crate) use stay::Stay;

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

/// One event with its run and workflow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LiveView {
    /// The id of the run.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub run: RunId,
    /// The name of the run's workflow.
    pub workflow: String,
    /// The run's current state.
    #[schemars(with = "crate::openapi::shapes::RunStates")]
    pub state: RunState,
    /// The event itself, in the same object.
    #[serde(flatten)]
    pub event: EventView,
}

/// The progress of an attempt, sent as an event of the type `progress`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LiveProgressView {
    /// The id of the run.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub run: RunId,
    /// The name of the run's workflow.
    pub workflow: String,
    /// The name of the task.
    pub task: String,
    /// All that its attempt has reported.
    pub progress: ProgressView,
}

/// The subject that a caller follows.
struct Followed {
    changes: ChangeFeed,
    /// The workflow whose runs are followed; none for all.
    workflow: Option<String>,
}

impl Followed {
    /// The subject of the query, if the reader may follow it.
    async fn find(reader: &Reader, query: &LiveQuery) -> read::Result<Self> {
        let Some(run) = query.run else {
            let workflow = query.workflow.clone();
            return Ok(Self { changes: reader.change_feed(workflow.as_deref())?, workflow });
        };
        let run = reader.run(run).await?;
        Ok(Self { changes: run.change_feed(), workflow: Some(run.record().run.workflow.clone()) })
    }
}

/// The events from now on, or after the last event that the client received.
async fn listen(
    api: &Api,
    source: &ChangeFeed,
    query: LiveQuery,
    last_event: Option<&str>,
    ending: impl Future<Output = ()> + Send + 'static,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + Send + 'static>, Problem> {
    let subscription = api.feed.subscribe(&api.app.runtime, source).await?;
    let mut listener = Listener::new(subscription, query);
    if let Some(text) = last_event {
        let turn = api.feed.turn().await;
        let missed = match &turn {
            Some(_) => source.since(&FeedCursor(text.to_owned()), feed::MAX_ROWS).await?,
            None => None,
        };
        listener.catch_up(&api.app.runtime, missed).await;
    }
    Ok(Sse::new(listener.into_stream(ending)))
}

pub(crate) async fn get_events(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<LiveQuery>,
    stay: Stay,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let last_event = last_event(&headers)?;
    let Followed { changes, workflow } = Followed::find(&api.reader(&caller), &query).await?;
    let check = move |reader: &Reader| reader.change_feed(workflow.as_deref()).map(drop);
    let ending = stay.end(api.clone(), caller.clone(), check);
    let events = listen(&api, &changes, query, last_event, ending).await?;
    Ok((unbuffered(), events).into_response())
}

/// The last event that a client received before it reconnected.
fn last_event(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    match headers.get("last-event-id").map(HeaderValue::to_str) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
        Some(Err(_)) => Err(Problem::bad_request("unknown `Last-Event-ID`")),
    }
}

/// Keeps proxies from holding events back.
fn unbuffered() -> HeaderMap {
    let unbuffered = (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    let fresh = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    HeaderMap::from_iter([unbuffered, fresh])
}
