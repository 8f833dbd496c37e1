//! One listener: what it wants, what it was sent, and keep-alives.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use axum::response::sse::Event;
use futures::stream::{self, Stream, StreamExt};
use model::RunId;
use read::{FeedCursor, FeedPage};
use runtime::Runtime;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Interval;

use super::LiveQuery;
use super::feed::{self, Batch, Notice, Subscription};

/// How often a listener is sent a keep-alive.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(10);

/// How long a connection lasts; the listener then connects again.
const MAX_CONNECTION: Duration = Duration::from_secs(15 * 60);

/// How long a browser waits before it connects again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// A client that listens to events.
pub(super) struct Listener {
    subscription: Subscription,
    query: LiveQuery,
    /// The last event of each run that was sent while catching up: the reader may bring it again.
    caught_up: BTreeMap<RunId, i64>,
    to_send: VecDeque<Event>,
    cursor: FeedCursor,
    heartbeat: Interval,
}

impl Listener {
    pub(super) fn new(subscription: Subscription, query: LiveQuery) -> Self {
        let cursor = subscription.cursor.clone();
        let heartbeat = tokio::time::interval(HEARTBEAT);
        let to_send = VecDeque::from([hello().id(&cursor.0)]);
        Self { subscription, query, caught_up: BTreeMap::new(), to_send, cursor, heartbeat }
    }

    /// Sends first what happened since the listener's last event; none if its cursor is unknown.
    pub(super) async fn catch_up(&mut self, runtime: &Runtime, missed: Option<FeedPage>) {
        match missed {
            Some(page) => {
                // Until all of it is sent, the listener keeps the cursor it has.
                self.to_send = VecDeque::from([hello()]);
                let batch = feed::prepare(runtime, page).await;
                self.take_in(&batch);
                let last = batch.notices.iter().map(|notice| (notice.run, notice.seq));
                self.caught_up = last.collect();
            }
            None => self.to_send.push_back(gap(&self.cursor)),
        }
    }

    /// Everything that there is to send, until the connection ends or the process stops.
    pub(super) fn into_stream(
        self,
        stopping: impl Future<Output = ()> + Send + 'static,
    ) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
        let events = stream::unfold(self, async |mut it| Some((Ok(it.next().await?), it)));
        events.take_until(end_of_connection(stopping))
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.to_send.pop_front() {
                self.heartbeat.reset();
                return Some(event);
            }
            tokio::select! {
                _ = self.heartbeat.tick() => return Some(heartbeat(&self.cursor)),
                received = self.subscription.changes.recv() => match received {
                    Ok(batch) => self.take_in(&batch),
                    Err(RecvError::Lagged(_)) => self.to_send.push_back(gap(&self.cursor)),
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }

    /// A listener that reconnects continues after the last event of a read, so only that one carries the cursor.
    fn take_in(&mut self, batch: &Batch) {
        self.cursor = batch.cursor.clone();
        let wanted: Vec<&Notice> = batch.notices.iter().filter(|notice| self.wants(notice)).collect();
        let last = wanted.len().saturating_sub(1);
        for (index, notice) in wanted.into_iter().enumerate() {
            let event = Event::default().data(&notice.json);
            let is_last = index == last && batch.complete;
            self.to_send.push_back(if is_last { event.id(&self.cursor.0) } else { event });
        }
        if !batch.complete {
            self.to_send.push_back(gap(&self.cursor));
        }
    }

    fn wants(&self, notice: &Notice) -> bool {
        self.query.run.is_none_or(|run| run == notice.run)
            && self.query.workflow.as_ref().is_none_or(|workflow| *workflow == notice.workflow)
            && self.caught_up.get(&notice.run).is_none_or(|last| notice.seq > *last)
    }
}

/// The end of a connection: after its maximum time, or when the process stops.
pub(super) async fn end_of_connection(stopping: impl Future<Output = ()>) {
    drop(tokio::time::timeout(MAX_CONNECTION, stopping).await);
}

pub(super) fn hello() -> Event {
    Event::default().comment("listening").retry(RECONNECT_DELAY)
}

fn heartbeat(cursor: &FeedCursor) -> Event {
    Event::default().comment("alive").id(&cursor.0)
}

/// Some events were left out: the listener has to read the state itself.
fn gap(cursor: &FeedCursor) -> Event {
    Event::default().event("gap").data("{}").id(&cursor.0)
}
