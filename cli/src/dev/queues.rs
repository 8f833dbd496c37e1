//! The queues of `ebb dev`: every queue that a workflow uses gets an executor at once. In production, terraform creates the
//! topic and the executor of each queue.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use bus::local::Broker;
use bus::{Bus, Endpoint, Error, Subscription};
use model::{Message, Topic};

use super::functions::dead_letters;
use super::issuer::PUSH_AUDIENCE;
use super::workflows::Queues;

/// As long as the maximum duration of an attempt: the handler responds when the attempt has ended.
const ACK_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);

/// As many as a queue has slots: messages that come together share transactions, and the executor itself limits how many
/// programs run concurrently.
const WINDOW: usize = 512;

/// The local broker, which subscribes an executor to each queue on its first message.
pub(super) struct EveryQueue {
    broker: Broker,
    /// Runs attempts, and stores dead letters.
    functions: OnceLock<(Router, Router)>,
    known: Mutex<BTreeSet<String>>,
}

impl EveryQueue {
    pub(super) fn new(broker: Broker) -> Arc<Self> {
        Arc::new(Self { broker, functions: OnceLock::new(), known: Mutex::default() })
    }

    /// Sets the functions that run attempts and store dead letters, once they are mounted.
    pub(super) fn deliver_to(&self, execute: Router, evaluate: Router) {
        let _ = self.functions.set((execute, evaluate));
    }

    fn subscribe(&self, queue: &str) {
        let Some((execute, evaluate)) = self.functions.get() else { return };
        let mut known = self.known.lock().expect("no holder panics");
        if known.insert(queue.to_owned()) {
            let endpoint = Endpoint::Router(execute.clone(), "/push".into());
            let name = format!("execute-{queue}");
            let subscription = Subscription {
                ack_deadline: ACK_DEADLINE,
                window: WINDOW,
                ..Subscription::new(name, endpoint, PUSH_AUDIENCE)
            };
            let topic = Topic::Work(queue.to_owned());
            self.broker.subscribe_dead_letters(&topic, dead_letters(&topic, evaluate));
            self.broker.subscribe(&topic, subscription);
        }
    }
}

/// A queue is created on its first message.
#[async_trait]
impl Queues for EveryQueue {
    async fn open(&self, _: BTreeSet<String>) -> anyhow::Result<()> {
        Ok(())
    }
}

#[async_trait]
impl Bus for EveryQueue {
    async fn publish(&self, messages: &[Message]) -> Result<(), Error> {
        for message in messages {
            if let Topic::Work(queue) = message.topic() {
                self.subscribe(&queue);
            }
        }
        self.broker.publish(messages).await
    }

    async fn ping(&self) -> Result<(), Error> {
        self.broker.ping().await
    }
}
