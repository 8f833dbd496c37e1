//! The time of the simulated world, and the skewed clock of each instance.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};

use async_trait::async_trait;
use chrono::TimeDelta;
use model::{Clock, Instant};

/// The true time; clones show the same.
#[derive(Clone)]
pub(crate) struct Time(Arc<Mutex<State>>);

struct State {
    now: Instant,
    next: u64,
    /// The waiters in order of arrival: the true time each waits for.
    waiting: BTreeMap<u64, (Instant, Waker)>,
}

impl Time {
    pub(crate) fn at(now: Instant) -> Self {
        Self(Arc::new(Mutex::new(State { now, next: 0, waiting: BTreeMap::new() })))
    }

    pub(crate) fn now(&self) -> Instant {
        self.state().now
    }

    /// Moves on and wakes the waiters that are due.
    pub(crate) fn set(&self, now: Instant) {
        let mut state = self.state();
        state.now = now;
        let due: Vec<Waker> =
            state.waiting.values().filter(|(at, _)| *at <= now).map(|(_, waker)| waker.clone()).collect();
        drop(state);
        due.into_iter().for_each(Waker::wake);
    }

    /// The next instant that a waiter waits for.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let state = self.state();
        state.waiting.values().map(|(at, _)| *at).filter(|at| *at > state.now).min()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

/// How a clock differs from the true time: an initial offset, and a drift in thousandths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skew {
    pub(crate) since: Instant,
    pub(crate) offset: TimeDelta,
    pub(crate) drift: i64,
}

impl Skew {
    pub(crate) fn none(since: Instant) -> Self {
        Self { since, offset: TimeDelta::zero(), drift: 0 }
    }

    fn shown(&self, truth: Instant) -> Instant {
        let passed = (truth - self.since).num_microseconds().unwrap_or_default();
        truth + self.offset + TimeDelta::microseconds(passed * self.drift / 10_000)
    }

    /// When the clock will show an instant, or a moment after.
    fn truth(&self, shown: Instant) -> Instant {
        let passed = (shown - self.offset - self.since).num_microseconds().unwrap_or_default();
        self.since + TimeDelta::microseconds(passed * 10_000 / (10_000 + self.drift) + 1)
    }
}

/// The clock of one instance.
#[derive(Clone)]
pub(crate) struct SkewedClock {
    pub(crate) time: Time,
    pub(crate) skew: Skew,
}

/// The registration of a waiter, removed when it is dropped.
struct Place<'a>(&'a Time, Option<u64>);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.1 {
            self.0.state().waiting.remove(&id);
        }
    }
}

#[async_trait]
impl Clock for SkewedClock {
    fn now(&self) -> Instant {
        self.skew.shown(self.time.now())
    }

    async fn wait_until(&self, instant: Instant) {
        let mut place = Place(&self.time, None);
        poll_fn(|context| {
            if self.now() >= instant {
                return Poll::Ready(());
            }
            let mut state = self.time.state();
            let at = self.skew.truth(instant).max(state.now + TimeDelta::microseconds(1));
            let id = *place.1.get_or_insert(state.next);
            state.next = state.next.max(id + 1);
            state.waiting.insert(id, (at, context.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}
