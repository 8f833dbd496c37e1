//! An in-process broker that behaves like Pub/Sub.
//!
//! Each subscription has a lane: a queue, and up to `window` workers that push from it until it is empty. A message that is
//! not acknowledged in time is redelivered after a pause, and dead-lettered in the end. Nothing outlives the process:
//! publishers must be able to publish again.

mod faults;
mod lane;
mod pusher;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use auth::Issuer;
use chrono::SecondsFormat;
use model::{Clock, Instant, Message, Topic};
use tokio::sync::watch;

use crate::envelope::Letter;
use crate::{Bus, Error, Subscription};
use faults::Dice;
pub use faults::Faults;
use lane::{Lane, Parcel, Ticket};
use pusher::Pusher;

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
    lanes: RwLock<BTreeMap<String, Vec<Arc<Lane>>>>,
    dead_letters: Mutex<BTreeMap<String, VecDeque<Letter>>>,
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
            lanes: RwLock::default(),
            dead_letters: Mutex::default(),
            first_id,
            next_id: AtomicU64::new(first_id),
            pending: Arc::new(watch::Sender::new(0)),
            closed: watch::Sender::new(false),
        }))
    }

    /// Pushes what is published to the topic from now on. A second subscription of the same name changes nothing.
    pub fn subscribe(&self, topic: &Topic, subscription: Subscription) {
        self.add_lane(topic.id(), Lane::new(subscription, Some(topic.dead_letter_id())));
    }

    /// Pushes the topic's dead letters, without a limit on deliveries.
    pub fn subscribe_dead_letters(&self, topic: &Topic, subscription: Subscription) {
        self.add_lane(topic.dead_letter_id(), Lane::new(subscription, None));
    }

    /// The topic's latest dead letters.
    pub fn dead_letters(&self, topic: &Topic) -> Vec<Letter> {
        let letters = self.0.dead_letters.lock().expect("no holder panics");
        letters.get(&topic.dead_letter_id()).into_iter().flatten().cloned().collect()
    }

    /// Publishes any data to a topic by its id and returns the message's id. Without a subscription it is dropped.
    pub fn post(
        &self,
        topic: &str,
        attributes: BTreeMap<String, String>,
        data: Vec<u8>,
    ) -> Result<String, Error> {
        self.check_open()?;
        let (id, published_at) = self.next_stamp();
        self.spread(topic, Letter { id: id.clone(), published_at, attributes, data });
        Ok(id)
    }

    /// How many messages were published so far.
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
        for lane in self.0.lanes.read().expect("no holder panics").values().flatten() {
            lane.close();
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

    fn add_lane(&self, topic: String, lane: Lane) {
        let mut lanes = self.0.lanes.write().expect("no holder panics");
        let lanes = lanes.entry(topic).or_default();
        if !lanes.iter().any(|other| other.subscription.name == lane.subscription.name) {
            lanes.push(Arc::new(lane));
        }
    }

    /// Whether any subscription takes messages of that type.
    fn is_wanted(&self, topic: &str, kind: &str) -> bool {
        let lanes = self.0.lanes.read().expect("no holder panics");
        let wants = |lane: &Arc<Lane>| lane.subscription.only.as_ref().is_none_or(|only| only == kind);
        lanes.get(topic).is_some_and(|lanes| lanes.iter().any(wants))
    }

    /// Puts a letter into every lane of its topic.
    fn spread(&self, topic: &str, letter: Letter) {
        let lanes = self.0.lanes.read().expect("no holder panics");
        let Some(lanes) = lanes.get(topic) else { return };
        let letter = Arc::new(letter);
        for lane in lanes.iter().filter(|lane| lane.wants(&letter)) {
            for delay in self.0.dice.as_ref().map_or_else(|| vec![None], Dice::copies) {
                let parcel =
                    Parcel { letter: letter.clone(), attempts: 0, ticket: Ticket::new(&self.0.pending) };
                match delay {
                    None => self.enqueue(lane, parcel),
                    Some(delay) => self.enqueue_after(delay, lane, parcel),
                }
            }
        }
    }

    fn enqueue(&self, lane: &Arc<Lane>, parcel: Parcel) {
        let place = |length| self.0.dice.as_ref().map_or(length, |dice| dice.place(length));
        if lane.add(parcel, place) {
            tokio::spawn(self.clone().work(lane.clone()));
        }
    }

    fn enqueue_after(&self, pause: Duration, lane: &Arc<Lane>, parcel: Parcel) {
        let (broker, lane, at) = (self.clone(), lane.clone(), self.0.clock.now() + pause);
        tokio::spawn(async move {
            let mut closed = broker.0.closed.subscribe();
            tokio::select! {
                () = broker.0.clock.wait_until(at) => broker.enqueue(&lane, parcel),
                _ = closed.wait_for(|closed| *closed) => (),
            }
        });
    }

    async fn work(self, lane: Arc<Lane>) {
        while let Some(parcel) = lane.next() {
            self.deliver(&lane, parcel).await;
        }
    }

    async fn deliver(&self, lane: &Arc<Lane>, mut parcel: Parcel) {
        parcel.attempts += 1;
        if self.0.pusher.push(lane, &parcel).await {
            return;
        }
        let (name, id, attempts) = (&lane.subscription.name, &parcel.letter.id, parcel.attempts);
        match &lane.dead_letter_topic {
            Some(topic) if attempts >= lane.subscription.max_delivery_attempts => {
                tracing::warn!(%name, %id, "Message {id} of `{name}` was dead-lettered after {attempts} deliveries");
                self.dead_letter(topic, lane, &parcel);
            }
            _ => {
                tracing::debug!(%name, %id, "Delivery {attempts} of message {id} of `{name}` failed");
                self.enqueue_after(lane.subscription.backoff(attempts), lane, parcel);
            }
        }
    }

    /// Forwards a message to the dead-letter topic, with a new id and its origin.
    fn dead_letter(&self, topic: &str, lane: &Lane, parcel: &Parcel) {
        let (id, published_at) = self.next_stamp();
        let mut letter = Letter { id, published_at, ..Letter::clone(&parcel.letter) };
        let since = parcel.letter.published_at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        letter.attributes.extend(
            [
                ("Subscription", lane.subscription.name.clone()),
                ("SubscriptionProject", PROJECT.into()),
                ("DeliveryCount", parcel.attempts.to_string()),
                ("TopicPublishTime", since),
            ]
            .map(|(name, value)| (format!("CloudPubSubDeadLetterSource{name}"), value)),
        );
        self.keep(topic, letter.clone());
        self.spread(topic, letter);
    }

    fn keep(&self, topic: &str, letter: Letter) {
        let mut letters = self.0.dead_letters.lock().expect("no holder panics");
        let letters = letters.entry(topic.into()).or_default();
        letters.push_back(letter);
        if letters.len() > MAX_DEAD_LETTERS {
            letters.pop_front();
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
                self.spread(&topic, Letter::new(message, id, now));
            }
        }
        Ok(())
    }

    async fn ping(&self) -> Result<(), Error> {
        self.check_open()
    }
}
