//! Runs of every origin count toward the quota of their tenant, and what is refused is not lost.

use model::message::RunFinished;
use model::{Parent, RunState, TaskIndex, TaskKey};
use runtime::{Replayed, Settings};
use testkit::ManualClock;

use super::*;

const OUTER: &str = "{name: outer, tasks: [{name: a, type: workflow, config: {workflow: inner}}]}";
const INNER: &str = "{name: inner, tasks: [{name: b, type: sleep, config: {duration: 1h}}]}";
const FOLLOWING: &str = "
name: following
triggers:
  - {name: after, workflow: inner, state: finished}
  - {name: noted, event: noted}
  - {name: calm, event: edited, debounce_seconds: 30}
tasks: [{name: b, type: sleep, config: {duration: 1h}}]
";

async fn limited(run_quota: u32) -> (World, App) {
    let world = World::in_memory(SilentBus, ManualClock::at("2027-01-15T08:00:00Z"));
    let world = world.with(Settings { run_quota: Some(run_quota), ..Settings::default() });
    let app = app_of(&world, &[INNER, OUTER, FOLLOWING]).await;
    (world, app)
}

/// The request of the first task of a run for a run of `inner`.
fn child_of(run: RunId, waits: bool) -> Message {
    let key = TaskKey { run, task: TaskIndex(0) };
    let parent = Some(Parent { key, attempt: 1, waits, depth: 1 });
    let request = testkit::run_requested("inner", &json!({}));
    Message::RunRequested(RunRequested { run: RunId::of_task(key, 1), parent, ..request })
}

/// Ends a run, and lets the quota be counted again.
async fn make_room(world: &World, run: RunId) {
    world.cancel(run).await;
    world.clock.advance(chrono::TimeDelta::seconds(2));
}

async fn replay(world: &World, app: &App) -> Replayed {
    let letter = world.dead_letters().await.remove(0);
    app.runtime.dead_letters().replay(&letter).await.unwrap()
}

#[tokio::test]
async fn a_task_starts_no_run_beyond_the_quota() {
    for (quota, started) in [(1, false), (2, true)] {
        let (world, app) = limited(quota).await;
        let outer = world.start("outer").await;
        assert_eq!(push(&app, &child_of(outer, true)).await, StatusCode::NO_CONTENT);
        assert_eq!(world.runs("inner").await.len(), usize::from(started), "quota {quota}");
        let task = world.tasks(outer).await.remove(0).task;
        let failure = task.failure.map(|failure| failure.message).unwrap_or_default();
        assert_eq!(failure.contains("EBB_QUOTA_RUNS"), !started, "the task learns why: {failure}");
    }
}

#[tokio::test]
async fn a_message_beyond_the_quota_becomes_a_dead_letter_and_holds_up_no_other() {
    let (world, app) = limited(1).await;
    let outer = world.start("outer").await;
    let other = Message::RunRequested(request("inner", json!({})));
    for message in [child_of(outer, false), other] {
        // A redelivery would slow down the subscription for everyone.
        assert_eq!(push(&app, &message).await, StatusCode::NO_CONTENT);
        let reasons = reasons(&app).await;
        assert!(reasons.len() == 1 && reasons[0].contains("EBB_QUOTA_RUNS"), "{reasons:?}");
    }
    assert_eq!(world.runs("inner").await.len(), 0);
}

#[tokio::test]
async fn an_event_beyond_the_quota_waits_as_a_dead_letter_and_its_copy_needs_no_room() {
    let (world, app) = limited(1).await;
    let noted =
        |id: &str| json!({"specversion": "1.0", "id": id, "source": "//x", "type": "noted", "data": {}});
    assert_eq!(events::send(&app, &noted("1")).await, StatusCode::NO_CONTENT);
    assert_eq!(events::send(&app, &noted("1")).await, StatusCode::NO_CONTENT);
    assert_eq!((world.runs("following").await.len(), reasons(&app).await.len()), (1, 0));
    assert_eq!(events::send(&app, &noted("2")).await, StatusCode::NO_CONTENT);
    let reasons = reasons(&app).await;
    assert!(reasons.len() == 1 && reasons[0].contains("EBB_QUOTA_RUNS"), "{reasons:?}");
    let refused = replay(&world, &app).await;
    assert!(matches!(&refused, Replayed::NoMessage(why) if why.contains("EBB_QUOTA_RUNS")), "{refused:?}");
    make_room(&world, world.runs("following").await[0].run.id).await;
    assert_eq!(replay(&world, &app).await, Replayed::Sent);
    assert_eq!((world.runs("following").await.len(), world.dead_letters().await.len()), (2, 0));
}

#[tokio::test]
async fn a_debounced_event_is_held_for_ten_more_minutes_beyond_the_quota() {
    let (world, app) = limited(1).await;
    let outer = world.start("outer").await;
    let edited = json!({"specversion": "1.0", "id": "1", "source": "//x", "type": "edited", "data": {}});
    assert_eq!(events::send(&app, &edited).await, StatusCode::NO_CONTENT);
    let fire_in = async |seconds| {
        world.clock.advance(chrono::TimeDelta::seconds(seconds));
        app.runtime.triggers().fire_due(app.now(), 10).await.unwrap();
        world.runs("following").await.len()
    };
    assert_eq!(fire_in(30).await, 0, "there is no room");
    make_room(&world, outer).await;
    assert_eq!(fire_in(597).await, 0, "it is held until ten minutes have passed");
    assert_eq!(fire_in(1).await, 1);
    assert_eq!((fire_in(600).await, reasons(&app).await.len()), (1, 0), "once, and nothing is lost");
}

#[tokio::test]
async fn a_run_that_follows_another_waits_as_a_dead_letter_beyond_the_quota() {
    let (world, app) = limited(1).await;
    let inner = world.start("inner").await;
    make_room(&world, inner).await;
    let outer = world.start("outer").await;
    let (tenant, workflow, finished_at) = (TenantId::DEFAULT, "inner".to_owned(), app.now());
    let state = RunState::Cancelled;
    let finished = RunFinished { run: inner, tenant, workflow, state, created_at: None, finished_at };
    assert_eq!(push(&app, &Message::RunFinished(finished.clone())).await, StatusCode::NO_CONTENT);
    let reasons = reasons(&app).await;
    assert!(reasons.len() == 1 && reasons[0].contains("EBB_QUOTA_RUNS"), "{reasons:?}");
    assert_eq!(world.runs("following").await.len(), 0);
    make_room(&world, outer).await;
    assert_eq!(push(&app, &Message::RunFinished(finished)).await, StatusCode::NO_CONTENT);
    assert_eq!(world.runs("following").await.len(), 1);
}
