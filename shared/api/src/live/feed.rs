//! The one reader of the news in an instance, and those who listen to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use host::Problem;
use model::{RunId, TenantId};
use runtime::Runtime;
use store::{FeedCursor, FeedItem, FeedPage};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tracing::warn;

use super::LiveView;
use crate::error;
use crate::views::EventView;

/// How often the news is read. It is old by no more than that and the time of a reading.
const PACE: Duration = Duration::from_millis(200);

/// After a reading that failed, so many are left out.
const REST: u32 = 5;

/// No reading takes in more rows.
pub(super) const MAX_ROWS: u32 = 5_000;

/// So many readings are kept for a listener that is slow.
const KEPT: usize = 64;

/// So many may listen to an instance, and so many of one tenant.
const MAX_LISTENERS: usize = 256;
const MAX_OF_A_TENANT: usize = 64;

/// What an instance tells its listeners. Clones share one reader.
#[derive(Clone)]
pub struct Feed(Arc<Inner>);

struct Inner {
    news: broadcast::Sender<Arc<Batch>>,
    /// The reader, while somebody listens.
    reader: tokio::sync::Mutex<Option<Reader>>,
    listeners: Mutex<BTreeMap<TenantId, usize>>,
}

struct Reader {
    task: JoinHandle<()>,
    began: FeedCursor,
}

/// What one reading brought.
pub(super) struct Batch {
    pub(super) notices: Vec<Notice>,
    pub(super) cursor: FeedCursor,
    pub(super) complete: bool,
}

/// One event, ready to be sent.
pub(super) struct Notice {
    pub(super) tenant: TenantId,
    pub(super) workflow: String,
    pub(super) run: RunId,
    pub(super) seq: i64,
    pub(super) json: String,
}

/// A place among the listeners; it is free again once this is dropped.
pub(super) struct Subscription {
    pub(super) tenant: TenantId,
    pub(super) news: broadcast::Receiver<Arc<Batch>>,
    /// Everything that is committed from here on will be told.
    pub(super) cursor: FeedCursor,
    feed: Feed,
}

impl Drop for Subscription {
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

impl Default for Feed {
    fn default() -> Self {
        let news = broadcast::Sender::new(KEPT);
        Self(Arc::new(Inner { news, reader: Default::default(), listeners: Default::default() }))
    }
}

impl Feed {
    /// How many listen.
    pub fn listeners(&self) -> usize {
        self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    /// Takes a place among the listeners, and has somebody read if nobody does.
    pub(super) async fn subscribe(
        &self,
        runtime: &Arc<Runtime>,
        tenant: TenantId,
    ) -> Result<Subscription, Problem> {
        self.admit(tenant)?;
        let mut place = Subscription {
            tenant,
            news: self.0.news.subscribe(),
            cursor: FeedCursor(String::new()),
            feed: self.clone(),
        };
        let mut reader = self.0.reader.lock().await;
        match reader.as_ref().filter(|reader| !reader.task.is_finished()) {
            Some(reader) => place.cursor = reader.began.clone(),
            None => {
                let news = runtime.store().news(None, 0).await.map_err(error::store)?;
                let missing = || Problem::unavailable("the change feed is not available yet");
                place.cursor = news.ok_or_else(missing)?.cursor;
                let task = tokio::spawn(self.clone().keep_reading(runtime.clone(), place.cursor.clone()));
                *reader = Some(Reader { task, began: place.cursor.clone() });
            }
        }
        Ok(place)
    }

    fn admit(&self, tenant: TenantId) -> Result<(), Problem> {
        let mut listeners = self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, own) = (listeners.values().sum::<usize>(), listeners.get(&tenant).copied().unwrap_or(0));
        if all >= MAX_LISTENERS || own >= MAX_OF_A_TENANT {
            let message = format!(
                "too many listen already: {MAX_OF_A_TENANT} of a tenant and {MAX_LISTENERS} of all may"
            );
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_listeners", message));
        }
        *listeners.entry(tenant).or_default() += 1;
        Ok(())
    }

    /// Reads on until nobody listens any more.
    async fn keep_reading(self, runtime: Arc<Runtime>, mut since: FeedCursor) {
        // It is the pace of the reader and decides nothing, so no clock is asked.
        let mut pace = tokio::time::interval(PACE);
        pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            pace.tick().await;
            {
                let mut reader = self.0.reader.lock().await;
                if self.0.news.receiver_count() == 0 {
                    *reader = None;
                    return;
                }
                if let Some(reader) = reader.as_mut() {
                    reader.began = since.clone();
                }
            }
            match runtime.store().news(Some(&since), MAX_ROWS).await {
                Ok(Some(news)) => {
                    since = news.cursor.clone();
                    if !news.items.is_empty() {
                        // Nobody listens any more if it cannot be sent.
                        let _ = self.0.news.send(Arc::new(prepare(&runtime, news).await));
                    }
                }
                // The store is not the one that it was, or was set back: what happened meanwhile is not told.
                Ok(None) => match runtime.store().news(None, 0).await {
                    Ok(Some(news)) => {
                        since = news.cursor.clone();
                        let news = FeedPage { complete: false, ..news };
                        let _ = self.0.news.send(Arc::new(prepare(&runtime, news).await));
                    }
                    _ => drop(pace.tick().await),
                },
                Err(error) => {
                    warn!("Listeners wait: the news cannot be read: {error}");
                    for _ in 0..REST {
                        pace.tick().await;
                    }
                }
            }
        }
    }
}

/// Makes the news ready to be sent: once, however many listen.
pub(super) async fn prepare(runtime: &Runtime, news: FeedPage) -> Batch {
    let mut notices = Vec::new();
    for item in news.items {
        // A version that this program cannot read has no names; its events are told all the same.
        let graph = runtime.graph(item.version).await.ok().flatten();
        let FeedItem { run, tenant, workflow, state, first, events, .. } = item;
        for (seq, event) in (first..).zip(events) {
            let event = EventView::new(seq, event, graph.as_deref());
            let view = LiveView { run, workflow: workflow.clone(), state, event };
            let json = serde_json::to_string(&view).expect("a view is made of JSON");
            notices.push(Notice { tenant, workflow: workflow.clone(), run, seq, json });
        }
    }
    Batch { notices, cursor: news.cursor, complete: news.complete }
}

#[cfg(test)]
mod tests;
