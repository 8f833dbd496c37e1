//! Where handlers stop, so that the world decides by its seed which one continues and where faults are injected.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use model::Instant;

use crate::faults::{Fault, FaultInjector, Point};

tokio::task_local! {
    /// The call that a handler serves; background work has none.
    pub(crate) static CALL: u64;
}

/// The result of a future that does not wait.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("what is asked here does not wait"),
    }
}

/// The callee was unavailable, or its response was lost.
#[derive(Debug)]
pub(crate) struct Interrupted;

/// A handler that stopped at a point.
pub(crate) struct Stop {
    pub(crate) instance: u64,
    pub(crate) call: Option<u64>,
    pub(crate) point: Point,
    pub(crate) not_before: Option<Instant>,
    answer: Option<Result<(), Interrupted>>,
    waker: Option<Waker>,
}

#[derive(Default)]
struct State {
    next: u64,
    stops: BTreeMap<u64, Stop>,
    /// How many transactions are open: they take turns.
    open: u32,
    store_away: bool,
    bus_away: bool,
}

/// The points that the handlers of one instance stop at. Clones share them, and all instances the one list of stops.
#[derive(Clone)]
pub(crate) struct Points {
    pub(crate) faults: FaultInjector,
    instance: u64,
    state: Arc<Mutex<State>>,
}

struct SlotRelease<'a>(&'a Points, u64);

impl Drop for SlotRelease<'_> {
    fn drop(&mut self) {
        self.0.state().stops.remove(&self.1);
    }
}

impl Points {
    pub(crate) fn new(faults: FaultInjector) -> Self {
        Self { faults, instance: 0, state: Arc::default() }
    }

    pub(crate) fn of_instance(&self, instance: u64) -> Self {
        Self { instance, ..self.clone() }
    }

    /// Lets other handlers run. The caller may be dropped here, or get an error.
    pub(crate) async fn stop(&self, point: Point) -> Result<(), Interrupted> {
        self.faults.pass(point);
        if self.faults.is_fault_free() {
            return Ok(());
        }
        let id = {
            let mut state = self.state();
            state.next += 1;
            let (id, call) = (state.next, CALL.try_with(|call| *call).ok());
            let stop =
                Stop { instance: self.instance, call, point, not_before: None, answer: None, waker: None };
            state.stops.insert(id, stop);
            id
        };
        let _leave = SlotRelease(self, id);
        poll_fn(|context| {
            let mut state = self.state();
            let stop = state.stops.get_mut(&id).expect("it leaves only at the end");
            match stop.answer.take() {
                Some(answer) => Poll::Ready(answer),
                None => {
                    stop.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Passes a point without letting others run.
    pub(crate) fn pass(&self, point: Point) -> Result<(), Interrupted> {
        self.faults.pass(point);
        let away = self.is_away(point);
        if away || self.faults.inject(Fault::Fail, Some(point)) { Err(Interrupted) } else { Ok(()) }
    }

    pub(crate) fn is_away(&self, point: Point) -> bool {
        let state = self.state();
        if point.is_bus() { state.bus_away } else { state.store_away && point != Point::Turn }
    }

    pub(crate) fn set_away(&self, store: bool, bus: bool) {
        let mut state = self.state();
        (state.store_away, state.bus_away) = (store, bus);
    }

    pub(crate) fn opened(&self) {
        self.state().open += 1;
    }

    pub(crate) fn closed(&self) {
        self.state().open -= 1;
    }

    /// The stops that can continue now.
    pub(crate) fn ready(&self, now: Instant, stands_still: impl Fn(u64) -> bool) -> Vec<u64> {
        let state = self.state();
        let free = state.open == 0;
        let ready = |stop: &Stop| {
            stop.answer.is_none()
                && stop.not_before.is_none_or(|at| at <= now)
                && (free || stop.point != Point::Turn)
                && !stands_still(stop.instance)
        };
        state.stops.iter().filter(|(_, stop)| ready(stop)).map(|(id, _)| *id).collect()
    }

    /// The next instant at which a slow call continues.
    pub(crate) fn next_at(&self, now: Instant) -> Option<Instant> {
        let state = self.state();
        state.stops.values().filter_map(|stop| stop.not_before).filter(|at| *at > now).min()
    }

    /// The instance, call and point of a stop.
    pub(crate) fn place(&self, id: u64) -> (u64, Option<u64>, Point) {
        let state = self.state();
        let stop = &state.stops[&id];
        (stop.instance, stop.call, stop.point)
    }

    pub(crate) fn is_slow(&self, id: u64) -> bool {
        self.state().stops[&id].not_before.is_some()
    }

    pub(crate) fn slow_down(&self, id: u64, until: Instant) {
        self.state().stops.get_mut(&id).expect("it stands there").not_before = Some(until);
    }

    /// Continues a stopped handler.
    pub(crate) fn release(&self, id: u64, answer: Result<(), Interrupted>) {
        let waker = {
            let mut state = self.state();
            let stop = state.stops.get_mut(&id).expect("it stands there");
            stop.answer = Some(answer);
            stop.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.state().stops.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}
