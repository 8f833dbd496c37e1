//! The readers of the change feed in an instance: one for each tenant with listeners.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use host::Problem;
use model::{RunId, TenantId};
use read::{ChangeFeed, FeedCursor, FeedItem, FeedPage};
use runtime::Runtime;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tracing::warn;

use super::LiveView;
use crate::views::EventView;

/// How often a reader polls. An event is late by no more than that and the duration of a read.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The number of polls that are left out after a failed one.
const POLLS_AFTER_FAILURE: u32 = 5;

/// The maximum number of rows of one read.
pub(super) const MAX_ROWS: u32 = 5_000;

/// The number of reads that are kept for a slow listener.
const MAX_BUFFERED: usize = 64;

/// The maximum number of listeners of an instance, and of one tenant.
const MAX_LISTENERS: usize = 256;
const MAX_OF_A_TENANT: usize = 64;

/// What an instance sends to its listeners. Clones share the readers.
#[derive(Clone, Default)]
pub struct Feed(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// The reader of each tenant with listeners.
    readers: tokio::sync::Mutex<BTreeMap<TenantId, Reader>>,
    listeners: Mutex<BTreeMap<TenantId, usize>>,
}

struct Reader {
    changes: broadcast::Sender<Arc<Batch>>,
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

/// One event, ready to be sent.
pub(super) struct Notice {
    pub(super) workflow: String,
    pub(super) run: RunId,
    pub(super) seq: i64,
    pub(super) json: String,
}

/// A slot among the listeners; dropping it frees the slot.
pub(super) struct ListenerSlot {
    tenant: TenantId,
    feed: Feed,
}

/// A listener's end of the change feed of its tenant.
pub(super) struct Subscription {
    pub(super) changes: broadcast::Receiver<Arc<Batch>>,
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

    /// Subscribes to a tenant's changes, and starts its reader if there is none.
    pub(super) async fn subscribe(
        &self,
        runtime: &Arc<Runtime>,
        source: &ChangeFeed,
    ) -> Result<Subscription, Problem> {
        let (tenant, slot) = (source.tenant(), self.admit(source.tenant())?);
        let mut readers = self.0.readers.lock().await;
        if readers.get(&tenant).is_none_or(|reader| reader.task.is_finished()) {
            let (changes, began) = (broadcast::Sender::new(MAX_BUFFERED), source.end().await?);
            let reading =
                self.clone().keep_reading(runtime.clone(), source.clone(), changes.clone(), began.clone());
            // The subscription comes before the task's first poll, which waits for the lock that is held here.
            readers.insert(tenant, Reader { changes, task: tokio::spawn(reading), began });
        }
        let reader = &readers[&tenant];
        Ok(Subscription { changes: reader.changes.subscribe(), cursor: reader.began.clone(), _slot: slot })
    }

    /// Reads a tenant's changes until the last listener leaves.
    async fn keep_reading(
        self,
        runtime: Arc<Runtime>,
        source: ChangeFeed,
        changes: broadcast::Sender<Arc<Batch>>,
        mut since: FeedCursor,
    ) {
        // The interval decides nothing, so it needs no clock.
        let mut interval = tokio::time::interval(POLL_INTERVAL);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            {
                let mut readers = self.0.readers.lock().await;
                if changes.receiver_count() == 0 {
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
                    if !page.items.is_empty() || !page.complete {
                        // Sending fails only if the last listener has left.
                        let _ = changes.send(Arc::new(prepare(&runtime, page).await));
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

/// The changes since a cursor. If the database was restored to an earlier moment, an incomplete page from now on.
async fn next_page(source: &ChangeFeed, since: &FeedCursor) -> read::Result<FeedPage> {
    match source.since(since, MAX_ROWS).await? {
        Some(page) => Ok(page),
        None => Ok(FeedPage { items: Vec::new(), cursor: source.end().await?, complete: false }),
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
            notices.push(Notice { workflow: workflow.clone(), run, seq, json });
        }
    }
    Batch { notices, cursor: page.cursor, complete: page.complete }
}

#[cfg(test)]
mod tests;
