//! The open connections, and which of them is closed to make room.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// A limited number of open connections, which keep a limited number of bytes in memory. Clones share them.
#[derive(Clone)]
pub(super) struct OpenConnections(Arc<Inner>);

struct Inner {
    permits: Arc<Semaphore>,
    open: Mutex<BTreeMap<u64, Arc<Activity>>>,
    /// Counts what happens, to tell which connection has been idle for longest.
    moments: AtomicU64,
    /// A connection became idle.
    idle: Notify,
    /// The bytes of all requests and responses that are kept in memory, and their maximum.
    kept: AtomicUsize,
    max_kept: usize,
}

/// Whether a connection waits for its client, and what it keeps in memory meanwhile.
pub(super) struct Activity {
    connections: OpenConnections,
    /// Whether a whole request was received and its response has not been sent.
    busy: AtomicBool,
    /// Whether the client has not read yet what there is of the response.
    sending: AtomicBool,
    /// Since when its client is waited for.
    since: AtomicU64,
    /// The bytes of its request, or of its response.
    kept: AtomicUsize,
    evicted: Notify,
}

/// The place of one connection; dropping it frees the place.
pub(super) struct Place {
    id: u64,
    activity: Arc<Activity>,
    _permit: OwnedSemaphorePermit,
}

impl OpenConnections {
    pub(super) fn new(limit: usize, max_kept: usize) -> Self {
        Self(Arc::new(Inner {
            permits: Arc::new(Semaphore::new(limit)),
            open: Mutex::default(),
            moments: AtomicU64::new(0),
            idle: Notify::new(),
            kept: AtomicUsize::new(0),
            max_kept,
        }))
    }

    /// A place for a connection. If all are taken, the connection that has been idle for longest is closed.
    pub(super) async fn place(&self) -> Place {
        let permit = loop {
            let permit = self.0.permits.clone().acquire_owned();
            if self.0.permits.available_permits() > 0 || self.evict(Activity::is_idle) {
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
            sending: AtomicBool::new(false),
            since: AtomicU64::new(id),
            kept: AtomicUsize::new(0),
            evicted: Notify::new(),
        });
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner).insert(id, activity.clone());
        Place { id, activity, _permit: permit }
    }

    /// Of these connections, closes the one that has waited for its client for longest. Returns whether there is one.
    fn evict(&self, may_be: impl Fn(&Activity) -> bool) -> bool {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        let those = open.iter().filter(|(_, activity)| may_be(activity));
        let longest = those.min_by_key(|(_, activity)| activity.since.load(Ordering::Acquire));
        let Some(id) = longest.map(|(id, _)| *id) else { return false };
        if let Some(activity) = open.remove(&id) {
            activity.release(usize::MAX);
            activity.evicted.notify_one();
        }
        true
    }

    fn moment(&self) -> u64 {
        self.0.moments.fetch_add(1, Ordering::AcqRel)
    }
}

impl Activity {
    /// The head of a request was received.
    pub(super) fn set_receiving(&self) {
        self.since.store(self.connections.moment(), Ordering::Release);
    }

    /// A whole request was received.
    pub(super) fn set_busy(&self) {
        self.busy.store(true, Ordering::Release);
    }

    /// The client has to read a part of the response.
    pub(super) fn set_sending(&self, sending: bool) {
        self.since.store(self.connections.moment(), Ordering::Release);
        self.sending.store(sending, Ordering::Release);
    }

    /// The response was sent, or given up.
    pub(super) fn set_idle(&self) {
        self.since.store(self.connections.moment(), Ordering::Release);
        self.sending.store(false, Ordering::Release);
        self.busy.store(false, Ordering::Release);
        self.connections.0.idle.notify_one();
    }

    fn is_idle(&self) -> bool {
        !self.busy.load(Ordering::Acquire)
    }

    /// Whether it keeps bytes in memory only because its client is slow.
    fn waits_with_bytes(&self) -> bool {
        let waits = self.is_idle() || self.sending.load(Ordering::Acquire);
        waits && self.kept.load(Ordering::Acquire) > 0
    }

    /// Counts bytes that are kept in memory. If all connections keep too many, the one that has waited for its client for longest
    /// is closed: a client that is not slow is done by then.
    pub(super) fn keep(&self, bytes: usize) {
        let all = &self.connections.0;
        self.kept.fetch_add(bytes, Ordering::AcqRel);
        all.kept.fetch_add(bytes, Ordering::AcqRel);
        while all.kept.load(Ordering::Acquire) > all.max_kept
            && self.connections.evict(Self::waits_with_bytes)
        {}
    }

    /// As many bytes are no longer kept.
    pub(super) fn release(&self, bytes: usize) {
        let rest = |kept: usize| Some(kept.saturating_sub(bytes));
        let kept = self.kept.fetch_update(Ordering::AcqRel, Ordering::Acquire, rest).unwrap_or_default();
        self.connections.0.kept.fetch_sub(kept.min(bytes), Ordering::AcqRel);
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.release(usize::MAX);
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
