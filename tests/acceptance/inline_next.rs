//! What takes no time is carried out by whoever settled what it waited for, without a message.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use bus::{Endpoint, Subscription};
use model::{RunState, TaskKind, Topic, Workflow};
use serde_json::json;

use crate::world::{AUDIENCE, World};

/// How a run of the workflow ended, and how many messages about its tasks there were on a queue.
async fn played(workflow: Workflow, queue: &str) -> (RunState, usize) {
    let world = World::new().await;
    let heard = Arc::new(AtomicUsize::new(0));
    let counter = heard.clone();
    let count = move || async move {
        counter.fetch_add(1, Ordering::Relaxed);
        StatusCode::NO_CONTENT
    };
    let endpoint = Endpoint::Router(Router::new().route("/push", post(count)), "/push".into());
    world.broker.subscribe(&Topic::Work(queue.into()), Subscription::new("counter", endpoint, AUDIENCE));
    world.register(workflow).await;
    let run = world.trigger("example").await;
    (world.state(run).await, heard.load(Ordering::Relaxed))
}

#[tokio::test]
async fn a_chain_of_tasks_that_take_no_time_needs_one_message() {
    let chain = testkit::workflow("a -> b -> c -> d -> e");
    assert_eq!(played(chain, "light").await, (RunState::Succeeded, 1));
}

#[tokio::test]
async fn after_many_in_a_row_the_next_is_left_to_a_message() {
    let names: Vec<String> = (0..60).map(|index| format!("t{index}")).collect();
    let chain = testkit::workflow(&names.join(" -> "));
    assert_eq!(played(chain, "light").await, (RunState::Succeeded, 2));
}

#[tokio::test]
async fn of_several_one_is_taken_over_and_the_others_are_announced() {
    let fork = testkit::workflow("a -> b, a -> c, a -> d");
    assert_eq!(played(fork, "light").await, (RunState::Succeeded, 3));
}

#[tokio::test]
async fn work_of_another_queue_is_announced() {
    let mut chain = testkit::workflow("a -> b");
    chain.tasks[1].queue = "nobody".into();
    assert_eq!(played(chain, "nobody").await, (RunState::Running, 1));
}

#[tokio::test]
async fn work_that_takes_time_is_announced() {
    let mut chain = testkit::workflow("a -> b");
    chain.tasks[1].kind = TaskKind::Bash;
    chain.tasks[1].config = json!({"command": "true"});
    assert_eq!(played(chain, "light").await, (RunState::Succeeded, 2));
}
