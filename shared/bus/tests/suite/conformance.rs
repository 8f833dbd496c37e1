//! One list of promises for every bus: the local broker, the same reached over HTTP, and Pub/Sub itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::StatusCode;
use ebbflow_bus::envelope::Delivery;
use ebbflow_bus::local::{Broker, Faults};
use ebbflow_bus::pubsub::PubSub;
use ebbflow_bus::remote::Remote;
use ebbflow_bus::{Bus, Error, Subscription, broker_http};
use model::{Message, Topic};
use serde_json::{Value, json};
use testkit::Emulator;

use crate::messages::{nudge, one_of_each, work};
use crate::receiver::{ACCOUNT, AUDIENCE, Receiver, broker, serve};

/// A bus under test.
enum Rig {
    Local(Broker),
    Remote(Broker, Remote),
    PubSub(PubSub, Emulator),
}

impl Rig {
    async fn remote() -> Self {
        let broker = broker(Faults::default());
        let url = serve(broker_http::router(broker.clone())).await;
        Self::Remote(broker, Remote::new(url, "local").unwrap())
    }

    fn bus(&self) -> &dyn Bus {
        match self {
            Self::Local(broker) => broker,
            Self::Remote(_, remote) => remote,
            Self::PubSub(pubsub, _) => pubsub,
        }
    }

    /// Pushes the topic's messages to the receiver, five times at most.
    async fn subscribe(&self, topic: &Topic, receiver: &Receiver) {
        let name = format!("{}-push", topic.id());
        match self {
            Self::Local(broker) | Self::Remote(broker, _) => broker
                .subscribe(topic, Subscription { max_delivery_attempts: 5, ..receiver.subscription(&name) }),
            Self::PubSub(pubsub, _) => {
                let url = format!("{}/push", serve(receiver.router.clone()).await);
                let mut subscription = Subscription::new(name, url, AUDIENCE);
                subscription.max_delivery_attempts = 5;
                // Twice, since making what is there already must change nothing.
                pubsub.provision(topic, &subscription, ACCOUNT).await.unwrap();
                pubsub.provision(topic, &subscription, ACCOUNT).await.unwrap();
            }
        }
    }

    /// The attributes of the first dead letter of the topic.
    async fn dead_letter(&self, topic: &Topic) -> Value {
        match self {
            Self::Local(broker) | Self::Remote(broker, _) => {
                broker.idle().await;
                json!(broker.dead_letters(topic)[0].attributes)
            }
            Self::PubSub(_, emulator) => {
                let name = format!("projects/test/subscriptions/{}:pull", topic.dead_letter_id());
                loop {
                    let pull = reqwest::Client::new().post(format!("{}/v1/{name}", emulator.url));
                    let pulled = pull.json(&json!({ "maxMessages": 1 })).send().await.unwrap();
                    let pulled: Value = pulled.json().await.unwrap();
                    if let Some(received) = pulled.get("receivedMessages") {
                        return received[0]["message"]["attributes"].clone();
                    }
                }
            }
        }
    }
}

/// The topic of a queue that only one promise uses.
fn topic_of(queue: &str) -> (Topic, Message) {
    (Topic::Work(queue.into()), work(queue, 1))
}

async fn a_message_of_each_type_arrives_at_its_topic(rig: &Rig) {
    let messages = one_of_each("each");
    let mut topics: BTreeMap<Topic, Receiver> = BTreeMap::new();
    for message in &messages {
        topics.entry(message.topic()).or_insert_with(Receiver::content);
    }
    for (topic, receiver) in &topics {
        rig.subscribe(topic, receiver).await;
    }
    rig.bus().publish(&messages).await.unwrap();
    for (topic, receiver) in &mut topics {
        let mut missing: Vec<_> = messages.iter().filter(|message| message.topic() == *topic).collect();
        while !missing.is_empty() {
            let arrived = receiver.next().await.delivery.message;
            assert_eq!(arrived.topic(), *topic);
            missing.retain(|message| **message != arrived);
        }
    }
}

async fn one_call_publishes_to_many_topics(rig: &Rig) {
    let mut receivers = ["one", "two", "three"].map(|queue| (queue, Receiver::content()));
    for (queue, receiver) in &receivers {
        rig.subscribe(&topic_of(queue).0, receiver).await;
    }
    let messages: Vec<_> = receivers.iter().map(|(queue, _)| topic_of(queue).1).collect();
    rig.bus().publish(&messages).await.unwrap();
    for ((_, receiver), message) in receivers.iter_mut().zip(messages) {
        let delivery = receiver.next().await.delivery;
        assert_eq!(delivery.message, message);
        assert!(delivery.subscription.is_some());
        let trace = message.run().unwrap().trace_id();
        assert!(delivery.traceparent.unwrap().contains(&trace));
    }
}

async fn a_rejected_message_is_redelivered_with_the_same_id(rig: &Rig) {
    let (topic, message) = topic_of("refused");
    let calls = AtomicUsize::new(0);
    let answer = move |_: &Delivery| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::NO_CONTENT,
    };
    let mut receiver = Receiver::answering(answer);
    rig.subscribe(&topic, &receiver).await;
    rig.bus().publish(std::slice::from_ref(&message)).await.unwrap();
    let (first, second) = (receiver.next().await, receiver.next().await);
    assert_eq!([first.answer, second.answer].map(|status| status.as_u16()), [503, 204]);
    assert_eq!(first.delivery.id, second.delivery.id);
    assert_eq!(second.delivery.message, message);
}

async fn a_message_rejected_five_times_becomes_a_dead_letter(rig: &Rig) {
    let (topic, message) = topic_of("poison");
    let mut receiver = Receiver::answering(|_| StatusCode::INTERNAL_SERVER_ERROR);
    rig.subscribe(&topic, &receiver).await;
    rig.bus().publish(std::slice::from_ref(&message)).await.unwrap();
    for _ in 0..5 {
        assert_eq!(receiver.next().await.delivery.message, message);
    }
    let attributes = rig.dead_letter(&topic).await;
    assert_eq!(attributes["CloudPubSubDeadLetterSourceDeliveryCount"], "5");
    assert_eq!(attributes["CloudPubSubDeadLetterSourceSubscription"], format!("{}-push", topic.id()));
    assert_eq!(attributes["ce-type"], message.kind());
    assert!(receiver.so_far().is_empty());
}

async fn many_messages_at_once_all_arrive(rig: &Rig) {
    let topic = Topic::Work("many".into());
    let mut receiver = Receiver::content();
    rig.subscribe(&topic, &receiver).await;
    let messages: Vec<_> = (0..1500).map(|n| work("many", n)).collect();
    rig.bus().publish(&messages).await.unwrap();
    let mut missing: BTreeSet<_> = messages.iter().map(|message| message.run()).collect();
    while !missing.is_empty() {
        missing.remove(&receiver.next().await.delivery.message.run());
    }
}

async fn it_responds_to_a_ping(rig: &Rig) {
    rig.subscribe(&Topic::Evaluations, &Receiver::content()).await;
    rig.bus().ping().await.unwrap();
}

macro_rules! promises {
    ($rig:expr; $($promise:ident)*) => {
        $(#[tokio::test]
        async fn $promise() {
            super::$promise(&$rig).await;
        })*
    };
}

mod local {
    use super::*;

    promises! { Rig::Local(broker(Faults::default()));
        a_message_of_each_type_arrives_at_its_topic
        one_call_publishes_to_many_topics
        a_rejected_message_is_redelivered_with_the_same_id
        a_message_rejected_five_times_becomes_a_dead_letter
        many_messages_at_once_all_arrive
        it_responds_to_a_ping
    }
}

mod remote {
    use super::*;

    promises! { Rig::remote().await;
        a_message_of_each_type_arrives_at_its_topic
        one_call_publishes_to_many_topics
        a_rejected_message_is_redelivered_with_the_same_id
        a_message_rejected_five_times_becomes_a_dead_letter
        many_messages_at_once_all_arrive
        it_responds_to_a_ping
    }
}

/// All at the same time, since the emulator takes long to start and to deliver again.
#[tokio::test]
async fn pubsub_keeps_the_same_promises() {
    let Some(emulator) = Emulator::start().await else { return };
    let pubsub = PubSub::connect("test", Some(emulator.url.clone())).await.unwrap();
    let rig = &Rig::PubSub(pubsub, emulator);
    tokio::join!(
        a_message_of_each_type_arrives_at_its_topic(rig),
        one_call_publishes_to_many_topics(rig),
        a_rejected_message_is_redelivered_with_the_same_id(rig),
        a_message_rejected_five_times_becomes_a_dead_letter(rig),
        many_messages_at_once_all_arrive(rig),
    );
    it_responds_to_a_ping(rig).await;
}

#[tokio::test]
async fn an_unreachable_bus_is_unavailable() {
    let nowhere = String::from("http://127.0.0.1:9");
    let closed = broker(Faults::default());
    closed.close().await;
    let buses: [Arc<dyn Bus>; 3] = [
        Arc::new(closed),
        Arc::new(Remote::new(&*nowhere, "local").unwrap()),
        Arc::new(PubSub::connect("test", Some(nowhere)).await.unwrap()),
    ];
    for bus in buses {
        assert!(matches!(bus.ping().await, Err(Error::Unavailable(_))));
        let published = testkit::within_deadline("it is refused", bus.publish(&[nudge(1)])).await;
        assert!(matches!(published, Err(Error::Unavailable(_))));
    }
}
