//! The process that settles a task runs the next inline task itself, without a message.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use bus::{Endpoint, Subscription};
use model::{RunState, TaskKind, Topic, Workflow};
use serde_json::json;

use crate::world::{AUDIENCE, World};

/// The state of a run of the workflow once no message is in flight, and how many of its messages a queue received.
async fn run_and_count(workflow: Workflow, queue: &str) -> (RunState, usize) {
    let world = World::new().await;
    let received = Arc::new(AtomicUsize::new(0));
    let counter = received.clone();
    let count = move || async move {
        counter.fetch_add(1, Ordering::Relaxed);
        StatusCode::NO_CONTENT
    };
    let endpoint = Endpoint::Router(Router::new().route("/push", post(count)), "/push".into());
    world.bus.subscribe(&Topic::Work(queue.into()), Subscription::new("counter", endpoint, AUDIENCE));
    world.register(workflow).await;
    let run = world.start("example").await;
    (world.state(run).await, received.load(Ordering::Relaxed))
}

#[tokio::test]
async fn a_chain_of_inline_tasks_needs_one_message() {
    let chain = testkit::workflow("a -> b -> c -> d -> e");
    assert_eq!(run_and_count(chain, "light").await, (RunState::Succeeded, 1));
}

#[tokio::test]
async fn after_the_maximum_number_of_inline_tasks_the_next_one_is_published() {
    let names: Vec<String> = (0..60).map(|index| format!("t{index}")).collect();
    let chain = testkit::workflow(&names.join(" -> "));
    assert_eq!(run_and_count(chain, "light").await, (RunState::Succeeded, 2));
}

#[tokio::test]
async fn of_several_inline_tasks_one_is_run_at_once_and_the_others_are_published() {
    let fork = testkit::workflow("a -> b, a -> c, a -> d");
    assert_eq!(run_and_count(fork, "light").await, (RunState::Succeeded, 3));
}

#[tokio::test]
async fn a_task_of_another_queue_is_published() {
    let mut chain = testkit::workflow("a -> b");
    chain.tasks[1].queue = "nobody".into();
    assert_eq!(run_and_count(chain, "nobody").await, (RunState::Running, 1));
}

#[tokio::test]
async fn a_task_with_side_effects_is_published() {
    let mut chain = testkit::workflow("a -> b");
    chain.tasks[1].kind = TaskKind::Bash;
    chain.tasks[1].config = json!({"command": "true"});
    assert_eq!(run_and_count(chain, "light").await, (RunState::Succeeded, 2));
}
