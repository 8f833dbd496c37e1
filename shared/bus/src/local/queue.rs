//! The queue of one subscription, and its workers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use super::pusher::Pass;
use crate::Subscription;
use crate::envelope::BusMessage;

/// The messages of one subscription that are not acknowledged yet.
pub(super) struct SubscriptionQueue {
    pub(super) subscription: Subscription,
    pub(super) dead_letter_topic: Option<String>,
    /// The current token of its pushes.
    pub(super) pass: Mutex<Option<Pass>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<PendingDelivery>,
    workers: usize,
    closed: bool,
}

/// A message on its way to one subscription.
pub(super) struct PendingDelivery {
    pub(super) message: Arc<BusMessage>,
    /// How often it was delivered.
    pub(super) attempts: u32,
    /// Counts it as pending in the broker until it is dropped.
    #[expect(dead_code, reason = "it works by being dropped")]
    pub(super) ticket: Ticket,
}

impl SubscriptionQueue {
    pub(super) fn new(subscription: Subscription, dead_letter_topic: Option<String>) -> Self {
        Self { subscription, dead_letter_topic, pass: Mutex::default(), state: Mutex::default() }
    }

    /// Whether the subscription takes messages of that type.
    pub(super) fn wants(&self, message: &BusMessage) -> bool {
        self.subscription.only.as_ref().is_none_or(|only| message.attributes.get("ce-type") == Some(only))
    }

    /// Queues a delivery at the position that `position` picks for the queue's length. If it returns `true`, the caller must
    /// start a worker.
    pub(super) fn add(&self, pending: PendingDelivery, position: impl FnOnce(usize) -> usize) -> bool {
        let mut state = self.state.lock().expect("no holder panics");
        if state.closed {
            return false;
        }
        let position = position(state.queue.len());
        state.queue.insert(position, pending);
        let wanted = state.workers < self.subscription.window.max(1);
        state.workers += usize::from(wanted);
        wanted
    }

    /// The next delivery for a worker; if there is none, the worker ends.
    pub(super) fn next(&self) -> Option<PendingDelivery> {
        let mut state = self.state.lock().expect("no holder panics");
        let next = state.queue.pop_front();
        state.workers -= usize::from(next.is_none());
        next
    }

    /// Drops the queue and accepts no more.
    pub(super) fn close(&self) {
        let mut state = self.state.lock().expect("no holder panics");
        state.closed = true;
        state.queue.clear();
    }
}

/// Counts one up, and down again when dropped.
pub(super) struct Ticket(Arc<watch::Sender<usize>>);

impl Ticket {
    pub(super) fn new(counter: &Arc<watch::Sender<usize>>) -> Self {
        counter.send_if_modified(|count| {
            *count += 1;
            false // nobody waits for more
        });
        Self(counter.clone())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.send_if_modified(|count| {
            *count -= 1;
            *count == 0
        });
    }
}
