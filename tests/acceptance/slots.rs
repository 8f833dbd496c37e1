//! Places on a real Postgres: no more tasks are under way than there may be, and whoever waits gets a turn.

use language::FileKind;
use model::{EventKind, Limit, RunId, RunState, TenantId};

use crate::world::World;

const POOLED: &str = "
name: pooled
tasks:
  - name: split
    type: fan_out
    for_each: range(60)
    task: {type: noop, pool: dock}
";

const PLAIN: &str = "
name: plain
tasks:
  - {name: split, type: fan_out, for_each: range(100), task: {type: noop}}
  - {name: after, type: noop, depends_on: [split]}
";

fn dock() -> Limit {
    Limit::Pool(TenantId::DEFAULT, "dock".into())
}

/// The most tasks of a run that were under way at the same time, as its events tell.
async fn most_under_way(world: &World, run: RunId) -> i32 {
    let (mut now, mut most) = (0, 0);
    for event in world.events(run).await.into_iter().filter(|event| event.child.is_some()) {
        match event.kind {
            EventKind::TaskDispatched => now += 1,
            EventKind::TaskSucceeded => now -= 1,
            _ => {}
        }
        most = most.max(now);
    }
    most
}

async fn assert_all_slots_are_free(world: &World) {
    for limit in world.runtime.store().limits(TenantId::DEFAULT).await.unwrap() {
        assert_eq!((limit.used, limit.waiting), (0, 0), "{:?}", limit.limit);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_tasks_of_a_pool_are_under_way_than_it_has_slots() {
    let world = World::new().await;
    world.runtime.slots().resize(&dock(), Some(3)).await.unwrap();
    world.write(&[(FileKind::Workflow, POOLED)]).await;
    let run = world.trigger("pooled").await;
    assert_eq!(world.state(run).await, RunState::Succeeded);
    assert_eq!(most_under_way(&world, run).await, 3);
    assert_all_slots_are_free(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_that_come_together_share_a_queue_of_few_slots() {
    let world = World::new().await;
    world.runtime.slots().resize(&Limit::Queue("light".into()), Some(5)).await.unwrap();
    world.write(&[(FileKind::Workflow, PLAIN)]).await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(world.trigger("plain").await);
    }
    for run in runs {
        assert_eq!(world.state(run).await, RunState::Succeeded);
    }
    assert_all_slots_are_free(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_run_gives_back_its_slots_and_leaves_its_lines() {
    let world = World::new().await;
    world.runtime.slots().resize(&dock(), Some(0)).await.unwrap();
    world.write(&[(FileKind::Workflow, POOLED)]).await;
    let run = world.trigger("pooled").await;
    let waiting = world.runtime.store().limits(TenantId::DEFAULT).await.unwrap();
    assert_eq!(waiting.iter().find(|limit| limit.limit == dock()).unwrap().waiting, 60);
    let cancel = engine::Command::Cancel { actor: "test".into(), reason: None };
    world.runtime.settle(run, cancel).await.unwrap();
    assert_eq!(world.state(run).await, RunState::Cancelled);
    assert_all_slots_are_free(&world).await;
}
