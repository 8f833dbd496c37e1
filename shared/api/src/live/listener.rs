//! One who listens: what concerns it, what it has heard, and signs of life.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use axum::response::sse::Event;
use futures::stream::{self, Stream, StreamExt};
use model::RunId;
use runtime::Runtime;
use store::{FeedCursor, FeedPage};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Interval;

use super::LiveQuery;
use super::feed::{self, Batch, Notice, Subscription};

/// How often a listener hears that the connection lives, whatever happens.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(10);

/// After so long a listener has to come again, and to say who it is: a token that has expired since ends here.
const LIFE: Duration = Duration::from_secs(15 * 60);

/// How long a browser waits before it comes again.
const RETRY: Duration = Duration::from_secs(1);

/// One who listens.
pub(super) struct Listener {
    subscription: Subscription,
    query: LiveQuery,
    /// The last event of each run that was told while catching up: the reader may tell of it again.
    heard: BTreeMap<RunId, i64>,
    to_send: VecDeque<Event>,
    cursor: FeedCursor,
    heartbeat: Interval,
}

impl Listener {
    pub(super) fn new(subscription: Subscription, query: LiveQuery) -> Self {
        let cursor = subscription.cursor.clone();
        let heartbeat = tokio::time::interval(HEARTBEAT);
        let to_send = VecDeque::from([hello().id(&cursor.0)]);
        Self { subscription, query, heard: BTreeMap::new(), to_send, cursor, heartbeat }
    }

    /// Tells first what happened since the listener last heard anything; none if nobody knows when that was.
    pub(super) async fn catch_up(&mut self, runtime: &Runtime, missed: Option<FeedPage>) {
        match missed {
            Some(news) => {
                // Until all of it is told, whoever comes again comes with the cursor it has.
                self.to_send = VecDeque::from([hello()]);
                let batch = feed::prepare(runtime, news).await;
                self.take_in(&batch);
                let last = batch.notices.iter().map(|notice| (notice.run, notice.seq));
                self.heard = last.collect();
            }
            None => self.to_send.push_back(gap(&self.cursor)),
        }
    }

    /// Everything that there is to send, until the life of the connection ends or the process is to stop.
    pub(super) fn into_stream(
        self,
        stopping: impl Future<Output = ()> + Send + 'static,
    ) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
        let events = stream::unfold(self, async |mut it| Some((Ok(it.next().await?), it)));
        events.take_until(end_of_life(stopping))
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.to_send.pop_front() {
                self.heartbeat.reset();
                return Some(event);
            }
            tokio::select! {
                _ = self.heartbeat.tick() => return Some(heartbeat(&self.cursor)),
                received = self.subscription.news.recv() => match received {
                    Ok(batch) => self.take_in(&batch),
                    Err(RecvError::Lagged(_)) => self.to_send.push_back(gap(&self.cursor)),
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }

    /// Whoever comes again goes on after the last event of a reading, so only that one carries the cursor.
    fn take_in(&mut self, batch: &Batch) {
        self.cursor = batch.cursor.clone();
        let wanted: Vec<&Notice> = batch.notices.iter().filter(|notice| self.wants(notice)).collect();
        let last = wanted.len().saturating_sub(1);
        for (place, notice) in wanted.into_iter().enumerate() {
            let event = Event::default().data(&notice.json);
            let is_last = place == last && batch.complete;
            self.to_send.push_back(if is_last { event.id(&self.cursor.0) } else { event });
        }
        if !batch.complete {
            self.to_send.push_back(gap(&self.cursor));
        }
    }

    fn wants(&self, notice: &Notice) -> bool {
        notice.tenant == self.subscription.tenant
            && self.query.run.is_none_or(|run| run == notice.run)
            && self.query.workflow.as_ref().is_none_or(|workflow| *workflow == notice.workflow)
            && self.heard.get(&notice.run).is_none_or(|last| notice.seq > *last)
    }
}

/// The end of a connection's life, or of the process if that is to stop before.
pub(super) async fn end_of_life(stopping: impl Future<Output = ()>) {
    drop(tokio::time::timeout(LIFE, stopping).await);
}

pub(super) fn hello() -> Event {
    Event::default().comment("listening").retry(RETRY)
}

fn heartbeat(cursor: &FeedCursor) -> Event {
    Event::default().comment("alive").id(&cursor.0)
}

/// Some events were not told: whoever listens has to look for itself.
fn gap(cursor: &FeedCursor) -> Event {
    Event::default().event("gap").data("{}").id(&cursor.0)
}
