use std::collections::BTreeMap;
use std::time::Duration;

use ebbflow_bus::Bus;
use ebbflow_bus::local::Faults;
use model::{RunId, Topic};

use crate::messages::nudge;
use crate::receiver::{Receiver, broker};

/// How often each of 200 messages arrives under these faults, in order of arrival.
async fn arrivals(faults: Faults) -> Vec<RunId> {
    let (broker, mut receiver) = (broker(faults), Receiver::content());
    let mut subscription = receiver.subscription("evaluate");
    subscription.window = 1;
    broker.subscribe(&Topic::Evaluations, subscription);
    broker.publish(&(0..200).map(nudge).collect::<Vec<_>>()).await.unwrap();
    broker.idle().await;
    receiver.so_far().into_iter().map(|seen| seen.delivery.message.run().unwrap()).collect()
}

fn counts(arrivals: &[RunId]) -> BTreeMap<RunId, usize> {
    let mut counts = BTreeMap::new();
    for run in arrivals {
        *counts.entry(*run).or_default() += 1;
    }
    counts
}

#[tokio::test]
async fn without_faults_each_message_comes_once_and_in_order() {
    let arrived = arrivals(Faults::default()).await;
    assert_eq!(arrived.len(), 200);
    assert!(arrived.is_sorted());
}

#[tokio::test]
async fn some_messages_come_twice() {
    let counts = counts(&arrivals(Faults { duplicate: 0.5, seed: 1, ..Faults::default() }).await);
    assert_eq!(counts.len(), 200);
    let twice = counts.values().filter(|count| **count == 2).count();
    assert!((50..150).contains(&twice), "{twice}");
}

#[tokio::test]
async fn some_messages_never_come() {
    let arrived = arrivals(Faults { drop: 0.5, seed: 1, ..Faults::default() }).await;
    assert!((50..150).contains(&arrived.len()), "{}", arrived.len());
}

#[tokio::test]
async fn messages_overtake_each_other() {
    let arrived = arrivals(Faults { reorder: true, seed: 1, ..Faults::default() }).await;
    assert_eq!(counts(&arrived).len(), 200);
    assert!(!arrived.is_sorted());
}

#[tokio::test]
async fn delayed_messages_all_arrive() {
    let delay = Some(Duration::from_millis(1)..Duration::from_millis(50));
    let arrived = arrivals(Faults { delay, seed: 1, ..Faults::default() }).await;
    assert_eq!(counts(&arrived).len(), 200);
    assert!(!arrived.is_sorted());
}

#[tokio::test]
async fn the_same_seed_gives_the_same_faults() {
    let faults = |seed| Faults { duplicate: 0.3, drop: 0.3, reorder: true, seed, ..Faults::default() };
    assert_eq!(arrivals(faults(7)).await, arrivals(faults(7)).await);
    assert_ne!(arrivals(faults(7)).await, arrivals(faults(8)).await);
}
