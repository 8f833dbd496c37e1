//! A message that can never be handled comes to rest as a dead letter, and can be sent again from there.

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
use store::{DeadLetter, DeadLetterFilter};
use uuid::Uuid;

use crate::world::{AUDIENCE, World};

/// Counts what is pushed to it, and breaks down over it until it is told to behave.
#[derive(Clone, Default)]
struct Brittle(Arc<(AtomicU32, AtomicU32)>);

impl Brittle {
    fn router(&self) -> Router {
        let brittle = self.clone();
        Router::new().route("/push", post(async move || brittle.handle()))
    }

    fn handle(&self) -> StatusCode {
        self.0.0.fetch_add(1, Ordering::Relaxed);
        assert!(self.0.1.load(Ordering::Relaxed) > 0, "it breaks down");
        StatusCode::NO_CONTENT
    }

    fn pushes(&self) -> u32 {
        self.0.0.load(Ordering::Relaxed)
    }
}

impl World {
    async fn letters(&self) -> Vec<DeadLetter> {
        self.runtime.store().dead_letters(&DeadLetterFilter::newest(10)).await.unwrap()
    }

    /// Lets all that is published to a topic go to that receiver, three times at most, and then to evaluate.
    fn subscribe(&self, topic: &Topic, brittle: &Brittle) {
        let (min_backoff, max_backoff) = (Duration::from_millis(1), Duration::from_millis(2));
        let receiver = Endpoint::Router(brittle.router(), "/push".into());
        let subscription = Subscription::new("brittle", receiver, AUDIENCE);
        self.broker.subscribe(
            topic,
            Subscription { max_delivery_attempts: 3, min_backoff, max_backoff, ..subscription },
        );
        let keeper = Endpoint::Router(evaluate::router(self.app.clone()), "/dead-letters".into());
        self.broker
            .subscribe_dead_letters(topic, Subscription::new(topic.dead_letter_id(), keeper, AUDIENCE));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_breaks_its_receiver_is_kept_after_its_last_delivery_and_can_be_replayed() {
    let (world, brittle) = (World::new().await, Brittle::default());
    let topic = Topic::Named("poison".into());
    world.subscribe(&topic, &brittle);
    let run = RunId(Uuid::now_v7());
    let body = serde_json::json!({"told": true});
    let notice = Message::Notice(model::message::Notice { topic: "poison".into(), run, body });
    world.broker.publish(std::slice::from_ref(&notice)).await.unwrap();
    world.broker.idle().await;
    let letters = world.letters().await;
    assert_eq!((letters.len(), brittle.pushes()), (1, 3), "{letters:?}");
    assert_eq!(
        (letters[0].reason.as_str(), letters[0].source.as_str()),
        ("undeliverable after 3 deliveries", "brittle")
    );
    assert_eq!(runtime::message_of(&letters[0]), Ok(notice));

    brittle.0.1.store(1, Ordering::Relaxed);
    assert_eq!(world.runtime.replay(&letters[0]).await.unwrap(), Replayed::Sent);
    world.broker.idle().await;
    assert_eq!((world.letters().await, brittle.pushes()), (vec![], 4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_message_is_kept_at_its_first_delivery() {
    let world = World::new().await;
    world.broker.post(&Topic::Evaluations.id(), BTreeMap::new(), b"no message".to_vec()).unwrap();
    world.broker.idle().await;
    let letters = world.letters().await;
    assert_eq!(letters.len(), 1);
    assert!(letters[0].reason.contains("no CloudEvent"), "{letters:?}");
    assert!(matches!(world.runtime.replay(&letters[0]).await.unwrap(), Replayed::NoMessage(_)));
    assert_eq!(world.letters().await, letters);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_ours_that_came_to_the_wrong_place_or_too_late_can_be_replayed() {
    let world = World::new().await;
    let nudge = Message::RunNudged(RunNudged { run: RunId(Uuid::now_v7()) });
    world.broker.publish(std::slice::from_ref(&nudge)).await.unwrap();
    world.broker.idle().await;
    let letters = world.letters().await;
    assert_eq!(runtime::message_of(&letters[0]), Ok(nudge));
    // There still is no such run: the copy becomes a letter of its own, and the first one is gone.
    assert_eq!(world.runtime.replay(&letters[0]).await.unwrap(), Replayed::Sent);
    world.broker.idle().await;
    let again = world.letters().await;
    assert_eq!((again.len(), again[0].id == letters[0].id), (1, false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_letter_stays_while_the_bus_is_away() {
    let world = World::new().await;
    let armed = Message::TimerArmed(TimerArmed { wake_at: world.app.now() });
    let letter = DeadLetter {
        id: "1".into(),
        source: "test".into(),
        reason: "test".into(),
        body: bus::envelope::structured(&armed, "1"),
        at: world.app.now(),
    };
    world.runtime.store().insert_dead_letter(&letter).await.unwrap();
    world.broker.close().await;
    assert!(world.runtime.replay(&letter).await.is_err());
    assert_eq!(world.letters().await.len(), 1);
}
