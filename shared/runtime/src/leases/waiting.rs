//! Workers that wait for offers.
//!
//! A process listens for new offers over one connection, and only while workers wait. An offer wakes one worker that it
//! suits. A worker that takes something wakes the next one, since there may be more; one that finds nothing does not. So a
//! thousand idle workers cost a few reads per offer, not a thousand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{Demand, NewOffer, TenantId};
use store::{OfferFeed, Store};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::warn;

use super::Wanted;

/// The maximum numbers of leases that wait in one process: each keeps a connection of a client open.
pub const MAX_WAITING: usize = 256;
const MAX_WAITING_OF_A_TENANT: usize = 128;

/// How long the process goes on listening after its last worker has left: most of them come back at once.
const LINGER: Duration = Duration::from_secs(30);

/// How long the process waits before it listens again after an error.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);

/// The workers that wait in this process. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct WaitingRoom(Arc<Inner>);

#[derive(Default)]
struct Inner {
    workers: Mutex<Workers>,
    /// The task that listens for offers, if one does.
    listener: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Workers {
    next: u64,
    /// In the order in which they came.
    waiting: BTreeMap<u64, Waiting>,
}

struct Waiting {
    wanted: Wanted,
    /// The offers that woke it and that it has not tried to lease yet.
    woken: Option<Vec<Demand>>,
    bell: Arc<Notify>,
}

/// A worker that waits. Dropped, it leaves, and what it was woken for goes to the next worker.
pub struct WaitingWorker {
    room: WaitingRoom,
    number: u64,
    bell: Arc<Notify>,
    /// The offers that woke it and that it tries to lease now.
    trying: Vec<Demand>,
}

impl WaitingRoom {
    /// Adds a worker, and makes sure that the process listens for offers. If it cannot, workers find offers only when they
    /// try by themselves. None if too many wait already.
    pub(crate) async fn enter(&self, store: &Arc<dyn Store>, wanted: Wanted) -> Option<WaitingWorker> {
        // It is added before the listener is checked: a listener that is about to end sees it, or has ended.
        let worker = self.add(wanted)?;
        let mut listener = self.0.listener.lock().await;
        if listener.as_ref().is_none_or(JoinHandle::is_finished) {
            match store.listen_for_offers().await {
                Ok(feed) => *listener = Some(tokio::spawn(self.clone().listen(feed))),
                Err(error) => warn!("New offers are found late: {error}"),
            }
        }
        Some(worker)
    }

    fn add(&self, wanted: Wanted) -> Option<WaitingWorker> {
        let bell = Arc::<Notify>::default();
        let mut workers = self.workers();
        let is_own = |waiting: &&Waiting| waiting.wanted.tenant == wanted.tenant;
        let own = workers.waiting.values().filter(is_own).count();
        if workers.waiting.len() >= MAX_WAITING || own >= MAX_WAITING_OF_A_TENANT {
            return None;
        }
        let number = workers.next;
        workers.next += 1;
        workers.waiting.insert(number, Waiting { wanted, woken: None, bell: bell.clone() });
        Some(WaitingWorker { room: self.clone(), number, bell, trying: Vec::new() })
    }

    /// Wakes the first worker that an offer suits.
    pub(crate) fn offered(&self, tenant: TenantId, queue: &str, demand: &Demand) {
        let suits = |waiting: &&mut Waiting| {
            let Waiting { wanted, woken, .. } = waiting;
            woken.is_none() && wanted.tenant == tenant && wanted.queue == queue && wanted.suits(demand)
        };
        if let Some(waiting) = self.workers().waiting.values_mut().find(suits) {
            waiting.woken = Some(vec![demand.clone()]);
            waiting.bell.notify_one();
        }
    }

    /// Wakes every worker: offers may have been missed.
    fn wake_all(&self) {
        for waiting in self.workers().waiting.values_mut() {
            waiting.woken.get_or_insert_default();
            waiting.bell.notify_one();
        }
    }

    async fn listen(self, mut feed: Box<dyn OfferFeed>) {
        loop {
            match timeout(LINGER, feed.next()).await {
                Ok(Ok(Some(NewOffer { tenant, queue, demand }))) => self.offered(tenant, &queue, &demand),
                Ok(Ok(None)) => self.wake_all(),
                Ok(Err(error)) => {
                    warn!("New offers are found late: {error}");
                    // The time only keeps a broken feed from being asked in a loop, so it needs no clock.
                    let _ = timeout(PAUSE_AFTER_ERROR, std::future::pending::<()>()).await;
                    self.wake_all();
                }
                Err(_) => {
                    let mut listener = self.0.listener.lock().await;
                    if self.workers().waiting.is_empty() {
                        *listener = None;
                        return;
                    }
                }
            }
        }
    }

    fn workers(&self) -> MutexGuard<'_, Workers> {
        self.0.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingWorker {
    /// Resolves once there may be something for it. Offers between its last try and this call are not missed.
    pub async fn woken(&mut self) {
        self.trying.clear();
        loop {
            let woken = self.room.workers().waiting.get_mut(&self.number).and_then(|own| own.woken.take());
            if let Some(demands) = woken {
                self.trying = demands;
                return;
            }
            self.bell.notified().await;
        }
    }

    /// It has tried to lease, whatever it found.
    pub fn tried(&mut self) {
        self.trying.clear();
    }
}

impl Drop for WaitingWorker {
    fn drop(&mut self) {
        let Some(own) = self.room.workers().waiting.remove(&self.number) else { return };
        let demands = self.trying.drain(..).chain(own.woken.into_iter().flatten());
        for demand in demands {
            self.room.offered(own.wanted.tenant, &own.wanted.queue, &demand);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use futures::FutureExt;
    use model::{Abilities, Labels};

    use super::*;

    fn demand(kind: &str) -> Demand {
        Demand { workflow: "w".into(), kind: kind.into(), requires: Labels::default() }
    }

    fn wanted(queue: &str, kind: &str) -> Wanted {
        Wanted {
            tenant: TenantId::DEFAULT,
            queue: queue.into(),
            abilities: Abilities { types: Some(BTreeSet::from([kind.to_owned()])), ..Abilities::default() },
            may_execute: Arc::new(|_| true),
        }
    }

    fn offer(room: &WaitingRoom, queue: &str, kind: &str) {
        room.offered(TenantId::DEFAULT, queue, &demand(kind));
    }

    fn is_woken(worker: &mut WaitingWorker) -> bool {
        worker.woken().now_or_never().is_some()
    }

    #[test]
    fn an_offer_wakes_the_first_worker_that_it_suits() {
        let room = WaitingRoom::default();
        let [mut other, mut elsewhere, mut first, mut second] =
            [("remote", "http"), ("remote-gpu", "bash"), ("remote", "bash"), ("remote", "bash")]
                .map(|(queue, kind)| room.add(wanted(queue, kind)).unwrap());
        offer(&room, "remote", "bash");
        assert_eq!(
            [&mut other, &mut elsewhere, &mut first, &mut second].map(is_woken),
            [false, false, true, false]
        );
    }

    #[test]
    fn an_offer_that_comes_while_a_worker_reads_wakes_it_again() {
        let room = WaitingRoom::default();
        let mut worker = room.add(wanted("remote", "bash")).unwrap();
        offer(&room, "remote", "bash");
        assert!(is_woken(&mut worker));
        offer(&room, "remote", "bash");
        worker.tried();
        assert!(is_woken(&mut worker));
        assert!(!is_woken(&mut worker));
    }

    #[test]
    fn two_offers_wake_two_workers() {
        let room = WaitingRoom::default();
        let mut workers = [0, 1, 2].map(|_| room.add(wanted("remote", "bash")).unwrap());
        offer(&room, "remote", "bash");
        offer(&room, "remote", "bash");
        assert_eq!(workers.each_mut().map(is_woken), [true, true, false]);
    }

    #[test]
    fn what_a_worker_was_woken_for_goes_to_the_next_if_it_leaves() {
        let room = WaitingRoom::default();
        let [first, mut second, mut third] = [0, 1, 2].map(|_| room.add(wanted("remote", "bash")).unwrap());
        offer(&room, "remote", "bash");
        drop(first);
        assert!(is_woken(&mut second), "it left before it tried");
        drop(second);
        assert!(is_woken(&mut third), "it left while it tried");
        third.tried();
        drop(third);
        assert!(room.workers().waiting.is_empty());
    }

    #[test]
    fn every_worker_reads_if_offers_may_have_been_missed() {
        let room = WaitingRoom::default();
        let mut workers = [0, 1].map(|_| room.add(wanted("remote", "bash")).unwrap());
        room.wake_all();
        assert_eq!(workers.each_mut().map(is_woken), [true, true]);
    }

    #[test]
    fn a_tenant_and_a_process_have_a_maximum_of_waiting_workers() {
        let room = WaitingRoom::default();
        let enter = |tenant| room.add(Wanted { tenant: TenantId(tenant), ..wanted("remote", "bash") });
        let mut own: Vec<_> = (0..MAX_WAITING_OF_A_TENANT).map(|_| enter(1).unwrap()).collect();
        assert!(enter(1).is_none());
        let others: Vec<_> = (0..MAX_WAITING_OF_A_TENANT).map(|_| enter(2).unwrap()).collect();
        assert!(enter(3).is_none());
        assert_eq!(own.len() + others.len(), MAX_WAITING);
        own.pop();
        let third = enter(3).unwrap();
        assert!(enter(1).is_none(), "all places are taken");
        drop(third);
        assert!(enter(1).is_some());
    }
}
