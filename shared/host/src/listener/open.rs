//! The open connections, and which of them is closed to make room.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// A limited number of open connections. Clones share them.
#[derive(Clone)]
pub(super) struct OpenConnections(Arc<Inner>);

struct Inner {
    permits: Arc<Semaphore>,
    open: Mutex<BTreeMap<u64, Arc<Activity>>>,
    /// Counts what happens, to tell which connection has been idle for longest.
    moments: AtomicU64,
    /// A connection became idle.
    idle: Notify,
}

/// Whether a connection waits for its client.
pub(super) struct Activity {
    connections: OpenConnections,
    /// Whether a whole request was received and its response has not been sent.
    busy: AtomicBool,
    /// Since when it has been idle.
    since: AtomicU64,
    evicted: Notify,
}

/// The place of one connection; dropping it frees the place.
pub(super) struct Place {
    id: u64,
    activity: Arc<Activity>,
    _permit: OwnedSemaphorePermit,
}

impl OpenConnections {
    pub(super) fn new(limit: usize) -> Self {
        Self(Arc::new(Inner {
            permits: Arc::new(Semaphore::new(limit)),
            open: Mutex::default(),
            moments: AtomicU64::new(0),
            idle: Notify::new(),
        }))
    }

    /// A place for a connection. If all are taken, the connection that has been idle for longest is closed.
    pub(super) async fn place(&self) -> Place {
        let permit = loop {
            let permit = self.0.permits.clone().acquire_owned();
            if self.0.permits.available_permits() > 0 || self.evict() {
                break permit.await;
            }
            tokio::select! {
                permit = permit => break permit,
                () = self.0.idle.notified() => {}
            }
        };
        let permit = permit.expect("the semaphore is never closed");
        let id = self.moment();
        let activity = Arc::new(Activity {
            connections: self.clone(),
            busy: AtomicBool::new(false),
            since: AtomicU64::new(id),
            evicted: Notify::new(),
        });
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner).insert(id, activity.clone());
        Place { id, activity, _permit: permit }
    }

    /// Closes the connection that has been idle for longest. Returns whether there is one.
    fn evict(&self) -> bool {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = open.iter().filter(|(_, activity)| !activity.busy.load(Ordering::Acquire));
        let longest = idle.min_by_key(|(_, activity)| activity.since.load(Ordering::Acquire));
        let Some(id) = longest.map(|(id, _)| *id) else { return false };
        if let Some(activity) = open.remove(&id) {
            activity.evicted.notify_one();
        }
        true
    }

    fn moment(&self) -> u64 {
        self.0.moments.fetch_add(1, Ordering::AcqRel)
    }
}

impl Activity {
    /// A whole request was received.
    pub(super) fn set_busy(&self) {
        self.busy.store(true, Ordering::Release);
    }

    /// The response was sent, or given up.
    fn set_idle(&self) {
        self.since.store(self.connections.moment(), Ordering::Release);
        self.busy.store(false, Ordering::Release);
        self.connections.0.idle.notify_one();
    }
}

impl Place {
    pub(super) fn activity(&self) -> Arc<Activity> {
        self.activity.clone()
    }

    /// Resolves once the connection must make room for another one.
    pub(super) async fn evicted(&self) {
        self.activity.evicted.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let open = &self.activity.connections.0.open;
        open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// The body of a response; the connection is idle again once it was sent.
pub(super) struct Answered {
    body: Body,
    activity: Arc<Activity>,
}

impl Answered {
    pub(super) fn new(body: Body, activity: Arc<Activity>) -> Self {
        Self { body, activity }
    }
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.activity.set_idle();
    }
}

impl HttpBody for Answered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
