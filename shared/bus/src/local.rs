//! An in-process broker that behaves like Pub/Sub.
//!
//! Each subscription has a queue, and up to `window` workers that push from it until it is empty. A message that is not
//! acknowledged in time is redelivered after a pause, and finally dead-lettered. Nothing outlives the process: publishers
//! must be able to publish again.

mod faults;
mod pusher;
mod queue;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use auth::Issuer;
use chrono::SecondsFormat;
use model::{Clock, Instant, Message, Topic};
use tokio::sync::watch;

use crate::envelope::BusMessage;
use crate::{Bus, Error, Subscription};
use faults::Dice;
pub use faults::Faults;
use pusher::Pusher;
use queue::{PendingDelivery, SubscriptionQueue, Ticket};

/// The project id in the names of local subscriptions.
pub(crate) const PROJECT: &str = "local";

/// How long `close` waits for deliveries in progress.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// How many messages of each dead-letter topic are kept for inspection.
const MAX_DEAD_LETTERS: usize = 1000;

/// A broker. Clones are the same broker.
#[derive(Clone)]
pub struct Broker(Arc<Shared>);

struct Shared {
    clock: Arc<dyn Clock>,
    pusher: Pusher,
    dice: Option<Dice>,
    queues: RwLock<BTreeMap<String, Vec<Arc<SubscriptionQueue>>>>,
    dead_letters: Mutex<BTreeMap<String, VecDeque<BusMessage>>>,
    first_id: u64,
    next_id: AtomicU64,
    /// How many messages are queued, being delivered or waiting for their next delivery.
    pending: Arc<watch::Sender<usize>>,
    closed: watch::Sender<bool>,
}

impl Broker {
    /// A broker that pushes as this account, with tokens of this issuer.
    pub fn new(
        clock: Arc<dyn Clock>,
        issuer: Arc<Issuer>,
        service_account: impl Into<String>,
        faults: Faults,
    ) -> Self {
        // Ids must not repeat after a restart: receivers may remember them.
        let first_id = clock.now().timestamp_micros().unsigned_abs();
        Self(Arc::new(Shared {
            pusher: Pusher::new(clock.clone(), issuer, service_account.into()),
            clock,
            dice: Dice::new(faults),
            queues: RwLock::default(),
            dead_letters: Mutex::default(),
            first_id,
            next_id: AtomicU64::new(first_id),
            pending: Arc::new(watch::Sender::new(0)),
            closed: watch::Sender::new(false),
        }))
    }

    /// Pushes what is published to the topic from now on. A second subscription of the same name changes nothing.
    pub fn subscribe(&self, topic: &Topic, subscription: Subscription) {
        self.add_queue(topic.id(), SubscriptionQueue::new(subscription, Some(topic.dead_letter_id())));
    }

    /// Pushes the topic's dead letters, without a limit on deliveries.
    pub fn subscribe_dead_letters(&self, topic: &Topic, subscription: Subscription) {
        self.add_queue(topic.dead_letter_id(), SubscriptionQueue::new(subscription, None));
    }

    /// The topic's latest dead letters.
    pub fn dead_letters(&self, topic: &Topic) -> Vec<BusMessage> {
        let dead = self.0.dead_letters.lock().expect("no holder panics");
        dead.get(&topic.dead_letter_id()).into_iter().flatten().cloned().collect()
    }

    /// Publishes any data to a topic by its id and returns the message's id. The data is dropped if no subscription exists.
    pub fn post(
        &self,
        topic: &str,
        attributes: BTreeMap<String, String>,
        data: Vec<u8>,
    ) -> Result<String, Error> {
        self.check_open()?;
        let (id, published_at) = self.next_stamp();
        self.spread(topic, BusMessage { id: id.clone(), published_at, attributes, data });
        Ok(id)
    }

    /// The number of messages published so far.
    pub fn published(&self) -> u64 {
        self.0.next_id.load(Ordering::Relaxed) - self.0.first_id
    }

    /// Returns once nothing is queued, being delivered or waiting for its next delivery.
    pub async fn idle(&self) {
        let waited = self.0.pending.subscribe().wait_for(|pending| *pending == 0).await.is_ok();
        debug_assert!(waited, "the sender lives as long as the broker");
    }

    /// Stops delivering, drops queued messages and waits a while for deliveries in progress.
    pub async fn close(&self) {
        self.0.closed.send_replace(true);
        for queue in self.0.queues.read().expect("no holder panics").values().flatten() {
            queue.close();
        }
        tokio::select! {
            () = self.idle() => (),
            () = self.0.clock.wait_until(self.0.clock.now() + CLOSE_TIMEOUT) => (),
        }
    }

    fn check_open(&self) -> Result<(), Error> {
        match *self.0.closed.borrow() {
            true => Err(Error::Unavailable("the local broker is closed".into())),
            false => Ok(()),
        }
    }

    fn next_stamp(&self) -> (String, Instant) {
        (self.0.next_id.fetch_add(1, Ordering::Relaxed).to_string(), self.0.clock.now())
    }

    fn add_queue(&self, topic: String, queue: SubscriptionQueue) {
        let mut queues = self.0.queues.write().expect("no holder panics");
        let queues = queues.entry(topic).or_default();
        if !queues.iter().any(|other| other.subscription.name == queue.subscription.name) {
            queues.push(Arc::new(queue));
        }
    }

    /// Whether any subscription takes messages of that type.
    fn is_wanted(&self, topic: &str, kind: &str) -> bool {
        let queues = self.0.queues.read().expect("no holder panics");
        let wants =
            |queue: &Arc<SubscriptionQueue>| queue.subscription.only.as_ref().is_none_or(|only| only == kind);
        queues.get(topic).is_some_and(|queues| queues.iter().any(wants))
    }

    /// Puts a message into every queue of its topic.
    fn spread(&self, topic: &str, message: BusMessage) {
        let queues = self.0.queues.read().expect("no holder panics");
        let Some(queues) = queues.get(topic) else { return };
        let message = Arc::new(message);
        for queue in queues.iter().filter(|queue| queue.wants(&message)) {
            for delay in self.0.dice.as_ref().map_or_else(|| vec![None], Dice::copies) {
                let pending = PendingDelivery {
                    message: message.clone(),
                    attempts: 0,
                    ticket: Ticket::new(&self.0.pending),
                };
                match delay {
                    None => self.enqueue(queue, pending),
                    Some(delay) => self.enqueue_after(delay, queue, pending),
                }
            }
        }
    }

    fn enqueue(&self, queue: &Arc<SubscriptionQueue>, pending: PendingDelivery) {
        let position = |length| self.0.dice.as_ref().map_or(length, |dice| dice.position(length));
        if queue.add(pending, position) {
            tokio::spawn(self.clone().work(queue.clone()));
        }
    }

    fn enqueue_after(&self, pause: Duration, queue: &Arc<SubscriptionQueue>, pending: PendingDelivery) {
        let (broker, queue, at) = (self.clone(), queue.clone(), self.0.clock.now() + pause);
        tokio::spawn(async move {
            let mut closed = broker.0.closed.subscribe();
            tokio::select! {
                () = broker.0.clock.wait_until(at) => broker.enqueue(&queue, pending),
                _ = closed.wait_for(|closed| *closed) => (),
            }
        });
    }

    async fn work(self, queue: Arc<SubscriptionQueue>) {
        while let Some(pending) = queue.next() {
            self.deliver(&queue, pending).await;
        }
    }

    async fn deliver(&self, queue: &Arc<SubscriptionQueue>, mut pending: PendingDelivery) {
        pending.attempts += 1;
        if self.0.pusher.push(queue, &pending).await {
            return;
        }
        let (name, id, attempts) = (&queue.subscription.name, &pending.message.id, pending.attempts);
        match &queue.dead_letter_topic {
            Some(topic) if attempts >= queue.subscription.max_delivery_attempts => {
                tracing::warn!(%name, %id, "Message {id} of `{name}` was dead-lettered after {attempts} deliveries");
                self.dead_letter(topic, queue, &pending);
            }
            _ => {
                tracing::debug!(%name, %id, "Delivery {attempts} of message {id} of `{name}` failed");
                self.enqueue_after(queue.subscription.backoff(attempts), queue, pending);
            }
        }
    }

    /// Forwards a message to the dead-letter topic, with a new id and its origin.
    fn dead_letter(&self, topic: &str, queue: &SubscriptionQueue, pending: &PendingDelivery) {
        let (id, published_at) = self.next_stamp();
        let mut message = BusMessage { id, published_at, ..BusMessage::clone(&pending.message) };
        let since = pending.message.published_at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        message.attributes.extend(
            [
                ("Subscription", queue.subscription.name.clone()),
                ("SubscriptionProject", PROJECT.into()),
                ("DeliveryCount", pending.attempts.to_string()),
                ("TopicPublishTime", since),
            ]
            .map(|(name, value)| (format!("CloudPubSubDeadLetterSource{name}"), value)),
        );
        self.keep(topic, message.clone());
        self.spread(topic, message);
    }

    fn keep(&self, topic: &str, message: BusMessage) {
        let mut dead = self.0.dead_letters.lock().expect("no holder panics");
        let dead = dead.entry(topic.into()).or_default();
        dead.push_back(message);
        if dead.len() > MAX_DEAD_LETTERS {
            dead.pop_front();
        }
    }
}

#[async_trait]
impl Bus for Broker {
    async fn publish(&self, messages: &[Message]) -> Result<(), Error> {
        self.check_open()?;
        for message in messages {
            let (topic, (id, now)) = (message.topic().id(), self.next_stamp());
            // Messages that no subscription takes need not be serialized.
            if self.is_wanted(&topic, message.kind()) {
                self.spread(&topic, BusMessage::new(message, id, now));
            }
        }
        Ok(())
    }

    async fn ping(&self) -> Result<(), Error> {
        self.check_open()
    }
}
