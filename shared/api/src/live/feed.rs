//! The readers of the change feed in an instance: one for each tenant with listeners.

mod backlog;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use host::Problem;
use model::{RunId, TenantId};
use read::{ChangeFeed, FeedCursor, FeedItem, FeedPage, FeedProgress};
use runtime::Runtime;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::task::JoinHandle;
use tracing::warn;

use super::{LiveProgressView, LiveView};
use crate::views::{EventView, ProgressView};
use backlog::Backlog;
pub(super) use backlog::{Next, Position};

/// How often a reader polls. An event is late by no more than that and the duration of a read.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The number of polls that are left out after a failed one.
const POLLS_AFTER_FAILURE: u32 = 5;

/// The maximum number of rows of one read.
pub(super) const MAX_ROWS: u32 = 5_000;

/// The size of a notice without its text, in bytes.
const NOTICE_BYTES: usize = 100;

/// How many listeners catch up at the same time: each reads and prepares what it missed, which takes memory.
const MAX_CATCHING_UP: usize = 2;

/// How long a listener waits for its turn to catch up.
const MAX_WAIT_FOR_TURN: Duration = Duration::from_secs(2);

/// The maximum number of listeners of an instance, and of one tenant: one tenant leaves room for others. A listener costs a
/// connection and its position in the feed; the changes themselves are kept once for all.
const MAX_LISTENERS: usize = 640;
const MAX_OF_A_TENANT: usize = 512;

/// The live events that an instance sends to its listeners. Clones share the readers.
#[derive(Clone, Default)]
pub struct Feed(Arc<Inner>);

struct Inner {
    /// The reader of each tenant with listeners.
    readers: tokio::sync::Mutex<BTreeMap<TenantId, Reader>>,
    listeners: Mutex<BTreeMap<TenantId, usize>>,
    backlog: Arc<Backlog>,
    catching_up: Semaphore,
    /// Shared by those who follow logs, to count them.
    followers: Arc<()>,
}

impl Default for Inner {
    fn default() -> Self {
        let catching_up = Semaphore::new(MAX_CATCHING_UP);
        let (readers, listeners, backlog, followers) = Default::default();
        Self { readers, listeners, backlog, catching_up, followers }
    }
}

struct Reader {
    /// Changes with the backlog of its tenant.
    changes: watch::Sender<()>,
    task: JoinHandle<()>,
    /// Everything that is committed after this is sent.
    began: FeedCursor,
}

/// The changes of one read.
pub(super) struct Batch {
    pub(super) notices: Vec<Notice>,
    pub(super) cursor: FeedCursor,
    pub(super) complete: bool,
}

impl Batch {
    fn bytes(&self) -> usize {
        let of = |notice: &Notice| NOTICE_BYTES + notice.workflow.len() + notice.json.len();
        self.notices.iter().map(of).sum::<usize>() + NOTICE_BYTES
    }
}

/// One event or the progress of an attempt, ready to be sent.
pub(super) struct Notice {
    pub(super) workflow: String,
    pub(super) run: RunId,
    /// The number of an event; none for progress, which is not part of the history.
    pub(super) seq: Option<i64>,
    pub(super) json: String,
}

/// A slot among the listeners; dropping it frees the slot.
pub(super) struct ListenerSlot {
    tenant: TenantId,
    feed: Feed,
}

/// A listener's end of the change feed of its tenant.
pub(super) struct Subscription {
    /// There is something new to send.
    pub(super) changes: watch::Receiver<()>,
    pub(super) position: Position,
    /// Everything that is committed after this is sent.
    pub(super) cursor: FeedCursor,
    _slot: ListenerSlot,
}

impl Drop for ListenerSlot {
    fn drop(&mut self) {
        let mut listeners = self.feed.0.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = listeners.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                listeners.remove(&self.tenant);
            }
        }
    }
}

impl Feed {
    /// The number of listeners.
    pub fn listeners(&self) -> usize {
        self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    /// Counts one who follows a log, until it is dropped.
    pub(super) fn followers(&self) -> Arc<()> {
        self.0.followers.clone()
    }

    /// Takes a slot among the listeners, or refuses a listener above the limit.
    pub(super) fn admit(&self, tenant: TenantId) -> Result<ListenerSlot, Problem> {
        let mut listeners = self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, own) = (listeners.values().sum::<usize>(), listeners.get(&tenant).copied().unwrap_or(0));
        if all >= MAX_LISTENERS || own >= MAX_OF_A_TENANT {
            let message = format!(
                "too many listeners; at most {MAX_OF_A_TENANT} per tenant and {MAX_LISTENERS} in total are allowed"
            );
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_listeners", message));
        }
        *listeners.entry(tenant).or_default() += 1;
        Ok(ListenerSlot { tenant, feed: self.clone() })
    }

    /// A turn to catch up; none if too many others wait for one. The listener is then sent a gap: it must not wait for those of
    /// other tenants.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        tokio::time::timeout(MAX_WAIT_FOR_TURN, self.0.catching_up.acquire()).await.ok()?.ok()
    }

    /// Subscribes to a tenant's changes, and starts its reader if there is none.
    pub(super) async fn subscribe(
        &self,
        runtime: &Arc<Runtime>,
        source: &ChangeFeed,
    ) -> Result<Subscription, Problem> {
        let (tenant, slot) = (source.tenant(), self.admit(source.tenant())?);
        let mut readers = self.0.readers.lock().await;
        if readers.get(&tenant).is_none_or(|reader| reader.task.is_finished()) {
            let (changes, began) = (watch::Sender::new(()), source.end().await?);
            let (runtime, backlog) = (runtime.clone(), self.0.backlog.clone());
            let sending = Sending { runtime, backlog, tenant, changes: changes.clone() };
            let reading = self.clone().keep_reading(source.clone(), sending, began.clone());
            // The subscription comes before the task's first poll, which waits for the lock that is held here.
            readers.insert(tenant, Reader { changes, task: tokio::spawn(reading), began });
        }
        let reader = &readers[&tenant];
        let (changes, cursor) = (reader.changes.subscribe(), reader.began.clone());
        Ok(Subscription { changes, position: self.0.backlog.join(tenant), cursor, _slot: slot })
    }

    /// Reads a tenant's changes until the last listener leaves.
    async fn keep_reading(self, source: ChangeFeed, sending: Sending, mut since: FeedCursor) {
        // The interval decides nothing, so it needs no clock.
        let mut interval = tokio::time::interval(POLL_INTERVAL);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            {
                let mut readers = self.0.readers.lock().await;
                if sending.changes.receiver_count() == 0 {
                    readers.remove(&source.tenant());
                    return;
                }
                if let Some(reader) = readers.get_mut(&source.tenant()) {
                    reader.began = since.clone();
                }
            }
            match next_page(&source, &since).await {
                Ok(page) => {
                    since = page.cursor.clone();
                    if !page.items.is_empty() || !page.progress.is_empty() || !page.complete {
                        sending.send(page).await;
                    }
                }
                Err(error) => {
                    warn!("The change feed of tenant {} cannot be read: {error}", source.tenant().0);
                    for _ in 0..POLLS_AFTER_FAILURE {
                        interval.tick().await;
                    }
                }
            }
        }
    }
}

/// How a reader sends what it has read.
struct Sending {
    runtime: Arc<Runtime>,
    backlog: Arc<Backlog>,
    tenant: TenantId,
    changes: watch::Sender<()>,
}

impl Sending {
    async fn send(&self, page: FeedPage) {
        let batch = prepare(&self.runtime, page).await;
        self.backlog.push(self.tenant, batch);
        self.changes.send_replace(());
    }
}

/// The changes since a cursor. If the database was restored to an earlier moment, an incomplete page from now on.
async fn next_page(source: &ChangeFeed, since: &FeedCursor) -> read::Result<FeedPage> {
    match source.since(since, MAX_ROWS).await? {
        Some(page) => Ok(page),
        None => {
            let (items, progress) = Default::default();
            Ok(FeedPage { items, progress, cursor: source.end().await?, complete: false })
        }
    }
}

/// Prepares changes for sending: once, however many listen.
pub(super) async fn prepare(runtime: &Runtime, page: FeedPage) -> Batch {
    let mut notices = Vec::new();
    for item in page.items {
        // A version that this program cannot read has no names; its events are sent without them.
        let graph = runtime.graph(item.version).await.ok().flatten();
        let FeedItem { run, workflow, state, first, events, .. } = item;
        for (seq, event) in (first..).zip(events) {
            let event = EventView::new(seq, event, graph.as_deref());
            let view = LiveView { run, workflow: workflow.clone(), state, event };
            let json = serde_json::to_string(&view).expect("a view is made of JSON");
            notices.push(Notice { workflow: workflow.clone(), run, seq: Some(seq), json });
        }
    }
    for FeedProgress { run, workflow, version, task, child, progress } in page.progress {
        let graph = runtime.graph(version).await.ok().flatten();
        // Without a name there is nothing to show it at.
        let Some(graph) = graph.filter(|graph| graph.has(task, child)) else { continue };
        let progress = ProgressView::from(progress).brief();
        let (task, workflow) = (graph.name_at(task, child), workflow.clone());
        let view = LiveProgressView { run, workflow: workflow.clone(), task, progress };
        let json = serde_json::to_string(&view).expect("a view is made of JSON");
        notices.push(Notice { workflow, run, seq: None, json });
    }
    Batch { notices, cursor: page.cursor, complete: page.complete }
}

#[cfg(test)]
mod tests;
