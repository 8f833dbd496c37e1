//! How a worker waits for attempts.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};
use testkit::within_deadline;
use tokio::task::JoinSet;

use super::{is_registered, lease, leased, register, remote};
use crate::world::World;

#[tokio::test]
async fn a_waiting_lease_returns_once_another_process_dispatches_a_task() {
    // Its time stands still, so the worker does not look by itself: it is woken or waits forever.
    let world = World::new().await;
    let other = world.another_process().await;
    register(&other, &remote("far", "queue: remote")).await;
    let waiting = lease(&world, json!({"worker": "patient", "limit": 4, "wait_seconds": 55}));
    let start = async {
        is_registered(&world, "patient").await;
        other.start_of("far", json!({})).await
    };
    let both = async { tokio::join!(waiting, start) };
    let (answer, run) = within_deadline("it is woken", both).await;
    assert_eq!(answer["items"][0]["run"], json!(run));
    assert_eq!(answer["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn leases_beyond_the_limit_keep_nobody_waiting() {
    // Its time stands still, so those that may wait do so until the test ends.
    let world = Arc::new(World::new().await);
    let waits = |number: usize| {
        let world = world.clone();
        async move { lease(&world, json!({"worker": format!("w{number}"), "wait_seconds": 55})).await }
    };
    // Tasks, which go on while the test awaits something else: one that holds a connection returns it.
    let mut waiting: JoinSet<Value> = (0..129).map(waits).collect();
    let refused = within_deadline("one of them does not wait", waiting.join_next()).await.unwrap().unwrap();
    assert_eq!((&refused["items"], &refused["retry_after_seconds"]), (&json!([]), &json!(10)));
    // What there is, it gets.
    register(&world, &remote("far", "queue: remote-far")).await;
    world.start_of("far", json!({})).await;
    assert_eq!(leased(&world, json!({"queue": "remote-far", "wait_seconds": 55})).await, ["far"]);
    let last = lease(&world, json!({"queue": "remote-far", "wait_seconds": 55})).await;
    assert_eq!((&last["items"], &last["retry_after_seconds"]), (&json!([]), &json!(10)));
    assert!(waiting.try_join_next().is_none(), "the others wait");
}

#[tokio::test]
async fn tasks_that_become_ready_together_wake_as_many_workers() {
    let world = World::new().await;
    let fan = "
name: fan
tasks:
  - {name: wide, type: fan_out, for_each: range(6), task: {type: echo, queue: remote, config: {value: 1}}}
";
    register(&world, fan).await;
    let waiting = join_all(
        (0..6).map(|number| lease(&world, json!({"worker": format!("w{number}"), "wait_seconds": 55}))),
    );
    let start = async {
        for number in 0..6 {
            is_registered(&world, &format!("w{number}")).await;
        }
        world.start_of("fan", json!({})).await
    };
    let both = async { tokio::join!(waiting, start).0 };
    let answers = within_deadline("each is woken", both).await;
    let tasks: BTreeSet<&str> =
        answers.iter().map(|answer| answer["items"][0]["task"].as_str().unwrap()).collect();
    assert_eq!(tasks.len(), 6, "{answers:?}");
}

#[tokio::test]
async fn a_client_that_hangs_up_while_it_waits_is_leased_nothing() {
    let world = World::on_machine_time().await;
    register(&world, &remote("far", "queue: remote")).await;
    let waiting = lease(&world, json!({"worker": "gone", "wait_seconds": 55}));
    tokio::select! {
        answer = waiting => panic!("there is nothing to lease: {answer}"),
        _ = is_registered(&world, "gone") => {}
    }
    world.start_of("far", json!({})).await;
    // Should it have looked at that very moment, it hands back what it took.
    let there = testkit::eventually("another worker gets the task", async || {
        let answer = lease(&world, json!({"worker": "there"})).await;
        answer["items"].as_array().unwrap().first().cloned()
    });
    assert_eq!(there.await["workflow"], "far");
    let held = world.post("/execution/heartbeat", r#"{"worker": "gone"}"#).await.body;
    assert_eq!(held["held"], json!([]));
}

#[tokio::test]
async fn a_wait_without_work_ends_with_nothing() {
    let world = World::on_machine_time().await;
    let answer = lease(&world, json!({"wait_seconds": 1})).await;
    assert_eq!((&answer["items"], &answer["command"]), (&json!([]), &json!(null)));
}
