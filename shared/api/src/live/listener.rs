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
use tokio::time::Interval;

use super::LiveQuery;
use super::feed::{self, Batch, Next, Notice, Subscription};

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
    /// How far it has come with what it sends after that.
    sending: Option<Sending>,
    cursor: FeedCursor,
    heartbeat: Interval,
}

/// A batch of which a part was sent.
struct Sending {
    number: u64,
    next: usize,
    /// The last notice that the listener wants. Only this one carries the cursor: a listener that reconnects continues after
    /// the last event of a read.
    last: Option<usize>,
}

impl Listener {
    pub(super) fn new(subscription: Subscription, query: LiveQuery) -> Self {
        let cursor = subscription.cursor.clone();
        let heartbeat = tokio::time::interval(HEARTBEAT);
        let to_send = VecDeque::from([hello().id(&cursor.0)]);
        let (caught_up, sending) = Default::default();
        Self { subscription, query, caught_up, to_send, sending, cursor, heartbeat }
    }

    /// Sends first what happened since the listener's last event; none if its cursor is unknown.
    pub(super) async fn catch_up(&mut self, runtime: &Runtime, missed: Option<FeedPage>) {
        match missed {
            Some(page) => {
                // Until all of it is sent, the listener keeps the cursor it has.
                self.to_send = VecDeque::from([hello()]);
                self.subscription.position.send_first(feed::prepare(runtime, page).await);
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
            if let Some(event) = self.next_notice() {
                self.heartbeat.reset();
                return Some(event);
            }
            tokio::select! {
                _ = self.heartbeat.tick() => return Some(heartbeat(&self.cursor)),
                changed = self.subscription.changes.changed() => changed.ok()?,
            }
        }
    }

    /// The next event that was read; none if all of them were sent.
    fn next_notice(&mut self) -> Option<Event> {
        loop {
            let (number, batch) = match self.subscription.position.next() {
                Next::Nothing => return None,
                Next::Batch(number, batch) => (number, batch),
                Next::Dropped => {
                    self.sending = None;
                    self.subscription.position.pass_dropped();
                    return Some(gap(&self.cursor));
                }
            };
            if let Some(event) = self.next_of(number, &batch) {
                return Some(event);
            }
            // The reader may bring parts of what the listener had missed again.
            if self.subscription.position.is_missed() {
                let last = batch.notices.iter().filter_map(|notice| Some((notice.run, notice.seq?)));
                self.caught_up = last.collect();
            }
            self.sending = None;
            self.subscription.position.pass(number);
            if !batch.complete {
                return Some(gap(&self.cursor));
            }
        }
    }

    /// The next event of a batch that the listener wants; none if all of them were sent.
    fn next_of(&mut self, number: u64, batch: &Batch) -> Option<Event> {
        if self.sending.as_ref().is_none_or(|sending| sending.number != number) {
            self.cursor = batch.cursor.clone();
            let last = batch.notices.iter().rposition(|notice| self.wants(notice));
            self.sending = Some(Sending { number, next: 0, last });
        }
        let Sending { next, last, .. } = self.sending.as_ref()?;
        let wanted = batch.notices.iter().enumerate().skip(*next).find(|(_, notice)| self.wants(notice));
        let ((index, notice), is_last) = (wanted?, *last == wanted.map(|(index, _)| index) && batch.complete);
        self.sending.as_mut()?.next = index + 1;
        let event = Event::default().data(&notice.json);
        let event = if notice.seq.is_none() { event.event("progress") } else { event };
        Some(if is_last { event.id(&self.cursor.0) } else { event })
    }

    fn wants(&self, notice: &Notice) -> bool {
        self.query.run.is_none_or(|run| run == notice.run)
            && self.query.workflow.as_ref().is_none_or(|workflow| *workflow == notice.workflow)
            && self.caught_up.get(&notice.run).is_none_or(|last| notice.seq.is_none_or(|seq| seq > *last))
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
