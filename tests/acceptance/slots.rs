//! Slots on a real Postgres: no more tasks run than a limit allows, and every waiting task gets a slot.

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

/// The maximum number of tasks that were active at the same time, according to the run's events.
async fn max_active(world: &World, run: RunId) -> i32 {
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
    for limit in world.store().limits(TenantId::DEFAULT).await.unwrap() {
        assert_eq!((limit.used, limit.waiting), (0, 0), "{:?}", limit.limit);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_never_has_more_active_tasks_than_slots() {
    let world = World::new().await;
    world.runtime.slots().resize(&dock(), Some(3)).await.unwrap();
    world.write(POOLED).await;
    let run = world.start("pooled").await;
    assert_eq!(world.state(run).await, RunState::Succeeded);
    assert_eq!(max_active(&world, run).await, 3);
    assert_all_slots_are_free(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_that_start_together_share_the_slots_of_a_queue() {
    let world = World::new().await;
    world.runtime.slots().resize(&Limit::Queue("light".into()), Some(5)).await.unwrap();
    world.write(PLAIN).await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(world.start("plain").await);
    }
    for run in runs {
        assert_eq!(world.state(run).await, RunState::Succeeded);
    }
    assert_all_slots_are_free(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_run_leaves_the_wait_queues_and_holds_no_slot() {
    let world = World::new().await;
    world.runtime.slots().resize(&dock(), Some(0)).await.unwrap();
    world.write(POOLED).await;
    let run = world.start("pooled").await;
    let waiting = world.store().limits(TenantId::DEFAULT).await.unwrap();
    assert_eq!(waiting.iter().find(|limit| limit.limit == dock()).unwrap().waiting, 60);
    world.cancel(run).await;
    assert_eq!(world.state(run).await, RunState::Cancelled);
    assert_all_slots_are_free(&world).await;
}
