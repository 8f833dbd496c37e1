use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use ebbflow_bus::local::Faults;
use ebbflow_bus::{Bus, Endpoint, Error, Subscription};
use model::Topic;
use tokio::sync::{Notify, Semaphore};

use crate::messages::{nudge, work};
use crate::receiver::{AUDIENCE, Receiver, broker, check_token};

#[tokio::test]
async fn a_push_carries_a_token_for_its_audience_and_the_token_is_used_again() {
    let (broker, mut receiver) = (broker(Faults::default()), Receiver::content());
    broker.subscribe(&Topic::Evaluations, receiver.subscription("evaluate"));
    broker.publish(&[nudge(1), nudge(2)]).await.unwrap();
    let (one, two) = (receiver.next().await, receiver.next().await);
    check_token(one.authorization.as_deref()).await;
    assert_eq!(one.authorization, two.authorization);
    assert_eq!(one.delivery.subscription.as_deref(), Some("projects/local/subscriptions/evaluate"));
    assert_eq!(one.delivery.attempt, Some(1));
    assert_ne!(one.delivery.id, two.delivery.id);
}

#[tokio::test]
async fn every_subscription_of_a_topic_gets_the_message_and_other_topics_do_not() {
    let broker = broker(Faults::default());
    let [mut one, mut two, mut other] = [(); 3].map(|()| Receiver::content());
    broker.subscribe(&Topic::Work("light".into()), one.subscription("one"));
    broker.subscribe(&Topic::Work("light".into()), two.subscription("two"));
    broker.subscribe(&Topic::Work("light".into()), two.subscription("two"));
    broker.subscribe(&Topic::Work("heavy".into()), other.subscription("other"));
    broker.publish(&[work("light", 1), work("nobody", 1)]).await.unwrap();
    broker.idle().await;
    let counts = [&mut one, &mut two, &mut other].map(|receiver| receiver.so_far().len());
    assert_eq!(counts, [1, 1, 0]);
}

#[tokio::test]
async fn a_message_is_redelivered_with_its_id_until_it_is_acknowledged() {
    let refuse_twice = |delivery: &ebbflow_bus::envelope::Delivery| match delivery.attempt {
        Some(3) => StatusCode::ACCEPTED,
        _ => StatusCode::CONFLICT,
    };
    let (broker, mut receiver) = (broker(Faults::default()), Receiver::answering(refuse_twice));
    broker.subscribe(&Topic::Evaluations, receiver.subscription("evaluate"));
    broker.publish(&[nudge(1)]).await.unwrap();
    broker.idle().await;
    let seen = receiver.so_far();
    assert_eq!(
        seen.iter().map(|seen| seen.delivery.attempt).collect::<Vec<_>>(),
        [Some(1), Some(2), Some(3)]
    );
    assert!(seen.iter().all(|again| again.delivery.id == seen[0].delivery.id));
    assert!(broker.dead_letters(&Topic::Evaluations).is_empty());
}

#[tokio::test]
async fn only_the_acknowledging_statuses_acknowledge() {
    for status in [200, 201, 202, 204, 203, 206, 301, 400, 404, 429, 500, 503] {
        let answer = move |_: &_| StatusCode::from_u16(status).unwrap();
        let (broker, receiver) = (broker(Faults::default()), Receiver::answering(answer));
        let once = Subscription { max_delivery_attempts: 1, ..receiver.subscription("evaluate") };
        broker.subscribe(&Topic::Evaluations, once);
        broker.publish(&[nudge(1)]).await.unwrap();
        broker.idle().await;
        let refused = broker.dead_letters(&Topic::Evaluations).len() == 1;
        assert_eq!(refused, ![200, 201, 202, 204].contains(&status), "{status}");
    }
}

#[tokio::test]
async fn an_undeliverable_message_becomes_a_dead_letter_that_can_be_subscribed_to() {
    let broker = broker(Faults::default());
    let sick = Receiver::answering(|_| StatusCode::SERVICE_UNAVAILABLE);
    let mut undertaker = Receiver::content();
    let topic = Topic::Work("light".into());
    broker.subscribe(&topic, Subscription { max_delivery_attempts: 5, ..sick.subscription("execute") });
    broker.subscribe_dead_letters(&topic, undertaker.subscription("undertaker"));
    broker.publish(&[work("light", 1)]).await.unwrap();

    let seen = undertaker.next().await;
    assert_eq!((seen.delivery.message, seen.delivery.attempt), (work("light", 1), None));
    broker.idle().await;
    let dead = broker.dead_letters(&topic);
    assert_eq!(dead.len(), 1);
    let source = |name| &*dead[0].attributes[&format!("CloudPubSubDeadLetterSource{name}")];
    assert_eq!(source("Subscription"), "execute");
    assert_eq!(source("SubscriptionProject"), "local");
    assert_eq!(source("DeliveryCount"), "5");
    assert!(source("TopicPublishTime").ends_with('Z'));
}

#[tokio::test]
async fn a_handler_that_panics_has_not_acknowledged() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    let handler = async move || {
        assert_ne!(counter.fetch_add(1, Ordering::SeqCst), 0, "the first call panics");
        StatusCode::NO_CONTENT
    };
    let endpoint = Endpoint::Router(Router::new().route("/", post(handler)), "/".into());
    let broker = broker(Faults::default());
    let subscription =
        Subscription { min_backoff: Duration::ZERO, ..Subscription::new("s", endpoint, AUDIENCE) };
    broker.subscribe(&Topic::Evaluations, subscription);
    broker.publish(&[nudge(1)]).await.unwrap();
    broker.idle().await;
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_handler_past_the_deadline_continues_while_the_message_is_redelivered() {
    let (calls, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (counter, signal) = (calls.clone(), done.clone());
    let second_came = Arc::new(Notify::new());
    let handler = async move || {
        match counter.fetch_add(1, Ordering::SeqCst) {
            0 => {
                second_came.notified().await;
                signal.notify_one();
            }
            _ => second_came.notify_one(),
        }
        StatusCode::NO_CONTENT
    };
    let endpoint = Endpoint::Router(Router::new().route("/", post(handler)), "/".into());
    let broker = broker(Faults::default());
    let deadline = Duration::from_millis(20);
    broker.subscribe(
        &Topic::Evaluations,
        Subscription { ack_deadline: deadline, ..Subscription::new("s", endpoint, AUDIENCE) },
    );
    broker.publish(&[nudge(1)]).await.unwrap();
    done.notified().await;
    broker.idle().await;
    // On a busy machine a later delivery may miss the deadline, too.
    assert!(calls.load(Ordering::SeqCst) >= 2);
}

#[tokio::test]
async fn publishing_does_not_wait_for_receivers_and_deliveries_stay_within_the_window() {
    let (doors, held) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let (entry, counter) = (doors.clone(), held.clone());
    let handler = async move || {
        counter.fetch_add(1, Ordering::SeqCst);
        entry.acquire().await.unwrap().forget();
        assert!(counter.fetch_sub(1, Ordering::SeqCst) <= 3);
        StatusCode::NO_CONTENT
    };
    let endpoint = Endpoint::Router(Router::new().route("/", post(handler)), "/".into());
    let broker = broker(Faults::default());
    broker.subscribe(
        &Topic::Evaluations,
        Subscription { window: 3, max_delivery_attempts: 1, ..Subscription::new("s", endpoint, AUDIENCE) },
    );
    broker.publish(&(0..20).map(nudge).collect::<Vec<_>>()).await.unwrap();
    doors.add_permits(20);
    broker.idle().await;
    assert_eq!(held.load(Ordering::SeqCst), 0);
    assert!(broker.dead_letters(&Topic::Evaluations).is_empty());
}

#[tokio::test]
async fn a_closed_broker_finishes_deliveries_and_accepts_no_messages() {
    let (inside, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (entered, exit, finished) = (inside.clone(), leave.clone(), Arc::new(AtomicUsize::new(0)));
    let counter = finished.clone();
    let handler = async move || {
        entered.notify_one();
        exit.notified().await;
        counter.fetch_add(1, Ordering::SeqCst);
        StatusCode::NO_CONTENT
    };
    let endpoint = Endpoint::Router(Router::new().route("/", post(handler)), "/".into());
    let broker = broker(Faults::default());
    let subscription = Subscription { window: 1, ..Subscription::new("s", endpoint, AUDIENCE) };
    broker.subscribe(&Topic::Evaluations, subscription);
    broker.publish(&[nudge(1), nudge(2)]).await.unwrap();
    inside.notified().await;
    let closing = tokio::spawn({
        let broker = broker.clone();
        async move { broker.close().await }
    });
    while broker.ping().await.is_ok() {
        tokio::task::yield_now().await;
    }
    leave.notify_one();
    closing.await.unwrap();
    assert_eq!(finished.load(Ordering::SeqCst), 1);
    assert!(matches!(broker.publish(&[nudge(3)]).await, Err(Error::Unavailable(_))));
}

#[tokio::test]
async fn closing_does_not_wait_for_redeliveries() {
    let mut receiver = Receiver::answering(|_| StatusCode::SERVICE_UNAVAILABLE);
    let broker = broker(Faults::default());
    let mut subscription = receiver.subscription("evaluate");
    (subscription.min_backoff, subscription.max_backoff) =
        (Duration::from_secs(600), Duration::from_secs(600));
    broker.subscribe(&Topic::Evaluations, subscription);
    broker.publish(&[nudge(1)]).await.unwrap();
    receiver.next().await;
    broker.close().await;
    broker.idle().await;
}
