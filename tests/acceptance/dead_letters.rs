//! A message that can never be handled becomes a dead letter, and can be replayed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use bus::{Bus, Endpoint, Subscription};
use model::message::{RunNudged, TimerArmed};
use model::{Message, RunId, Topic};
use runtime::Replayed;
use store::DeadLetter;
use uuid::Uuid;

use crate::world::{AUDIENCE, World};

/// A receiver that counts pushes, and panics until the test repairs it.
#[derive(Clone, Default)]
struct Brittle(Arc<(AtomicU32, AtomicU32)>);

impl Brittle {
    fn router(&self) -> Router {
        let brittle = self.clone();
        Router::new().route("/push", post(async move || brittle.handle()))
    }

    fn handle(&self) -> StatusCode {
        self.0.0.fetch_add(1, Ordering::Relaxed);
        assert!(self.0.1.load(Ordering::Relaxed) > 0, "the receiver is broken");
        StatusCode::NO_CONTENT
    }

    fn pushes(&self) -> u32 {
        self.0.0.load(Ordering::Relaxed)
    }
}

impl World {
    /// Delivers a topic to the receiver, at most three times each, and its dead letters to evaluate.
    fn subscribe(&self, topic: &Topic, brittle: &Brittle) {
        let (min_backoff, max_backoff) = (Duration::from_millis(1), Duration::from_millis(2));
        let receiver = Endpoint::Router(brittle.router(), "/push".into());
        let subscription = Subscription::new("brittle", receiver, AUDIENCE);
        self.bus.subscribe(
            topic,
            Subscription { max_delivery_attempts: 3, min_backoff, max_backoff, ..subscription },
        );
        let keeper = Endpoint::Router(evaluate::router(self.app.clone()), "/dead-letters".into());
        self.bus.subscribe_dead_letters(topic, Subscription::new(topic.dead_letter_id(), keeper, AUDIENCE));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_breaks_its_receiver_is_dead_lettered_after_the_last_delivery_and_can_be_replayed() {
    let (world, brittle) = (World::new().await, Brittle::default());
    let topic = Topic::Named("poison".into());
    world.subscribe(&topic, &brittle);
    let run = RunId(Uuid::now_v7());
    let body = serde_json::json!({"sent": true});
    let notice = Message::Notice(model::message::Notice { topic: "poison".into(), run, body });
    world.bus.publish(std::slice::from_ref(&notice)).await.unwrap();
    world.bus.idle().await;
    let letters = world.dead_letters().await;
    assert_eq!((letters.len(), brittle.pushes()), (1, 3), "{letters:?}");
    assert_eq!(
        (letters[0].reason.as_str(), letters[0].source.as_str()),
        ("undeliverable after 3 deliveries", "brittle")
    );
    assert_eq!(runtime::message_of(&letters[0]), Ok(notice));

    brittle.0.1.store(1, Ordering::Relaxed);
    assert_eq!(world.runtime.dead_letters().replay(&letters[0]).await.unwrap(), Replayed::Sent);
    world.bus.idle().await;
    assert_eq!((world.dead_letters().await, brittle.pushes()), (vec![], 4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_that_is_not_a_message_is_dead_lettered_at_the_first_delivery() {
    let world = World::new().await;
    world.bus.post(&Topic::Evaluations.id(), BTreeMap::new(), b"no message".to_vec()).unwrap();
    world.bus.idle().await;
    let letters = world.dead_letters().await;
    assert_eq!(letters.len(), 1);
    assert!(letters[0].reason.contains("not a CloudEvent"), "{letters:?}");
    assert!(matches!(
        world.runtime.dead_letters().replay(&letters[0]).await.unwrap(),
        Replayed::NoMessage(_)
    ));
    assert_eq!(world.dead_letters().await, letters);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_about_a_missing_run_can_be_replayed() {
    let world = World::new().await;
    let nudge = Message::RunNudged(RunNudged { run: RunId(Uuid::now_v7()) });
    world.bus.publish(std::slice::from_ref(&nudge)).await.unwrap();
    world.bus.idle().await;
    let letters = world.dead_letters().await;
    assert_eq!(runtime::message_of(&letters[0]), Ok(nudge));
    // The run is still missing: the copy becomes a new dead letter, and the first one is deleted.
    assert_eq!(world.runtime.dead_letters().replay(&letters[0]).await.unwrap(), Replayed::Sent);
    world.bus.idle().await;
    let again = world.dead_letters().await;
    assert_eq!((again.len(), again[0].id == letters[0].id), (1, false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_is_kept_while_the_bus_is_unavailable() {
    let world = World::new().await;
    let armed = Message::TimerArmed(TimerArmed { wake_at: world.app.now() });
    let letter = DeadLetter {
        id: "1".into(),
        source: "test".into(),
        reason: "test".into(),
        body: bus::envelope::structured(&armed, "1"),
        at: world.app.now(),
    };
    world.store().insert_dead_letter(&letter).await.unwrap();
    world.bus.close().await;
    assert!(world.runtime.dead_letters().replay(&letter).await.is_err());
    assert_eq!(world.dead_letters().await.len(), 1);
}
