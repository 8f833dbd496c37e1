//! Runs that tasks start count toward the quota of their tenant.

use std::sync::Arc;

use model::{Parent, TaskIndex, TaskKey};
use runtime::{Runtime, Settings};

use super::*;

const OUTER: &str = "{name: outer, tasks: [{name: a, type: workflow, config: {workflow: inner}}]}";
const INNER: &str = "{name: inner, tasks: [{name: b, type: sleep, config: {duration: 1h}}]}";

fn limited(run_quota: u32) -> Settings {
    Settings { run_quota: Some(run_quota), ..Settings::default() }
}

/// The request of the first task of a run for a run of `inner`.
fn child_of(run: RunId, waits: bool) -> Message {
    let key = TaskKey { run, task: TaskIndex(0) };
    let parent = Some(Parent { key, attempt: 1, waits, depth: 1 });
    let request = testkit::run_requested("inner", &json!({}));
    Message::RunRequested(RunRequested { run: RunId::of_task(key, 1), parent, ..request })
}

#[tokio::test]
async fn a_task_starts_no_run_beyond_the_quota() {
    for (quota, started) in [(1, false), (2, true)] {
        let world = World::in_memory(SilentBus, SystemClock);
        world.write_all(&[INNER, OUTER]).await;
        let runtime = Runtime::new(world.store().clone(), Arc::new(SilentBus), Arc::new(SystemClock));
        let app = App::new(Arc::new(runtime.with(limited(quota))), PushAuth::None);
        let outer = world.start("outer").await;
        assert_eq!(push(&app, &child_of(outer, true)).await, StatusCode::NO_CONTENT);
        assert_eq!(world.runs("inner").await.len(), usize::from(started), "quota {quota}");
        let task = world.tasks(outer).await.remove(0).task;
        let failure = task.failure.map(|failure| failure.message).unwrap_or_default();
        assert_eq!(failure.contains("EBB_QUOTA_RUNS"), !started, "the task learns why: {failure}");
    }
}

#[tokio::test]
async fn a_run_that_nobody_waits_for_is_asked_for_again_until_there_is_room() {
    let world = World::in_memory(SilentBus, SystemClock);
    world.write_all(&[INNER, OUTER]).await;
    let runtime = Runtime::new(world.store().clone(), Arc::new(SilentBus), Arc::new(SystemClock));
    let app = App::new(Arc::new(runtime.with(limited(1))), PushAuth::None);
    let outer = world.start("outer").await;
    assert!(push(&app, &child_of(outer, false)).await.is_server_error(), "the bus delivers it again");
    assert_eq!(world.runs("inner").await.len(), 0);
    assert_eq!(reasons(&app).await, [""; 0], "it is not lost");
}
