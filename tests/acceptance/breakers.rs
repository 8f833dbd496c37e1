//! Circuit breakers of tasks on a real Postgres, with several processes that share their state.

use std::sync::Arc;

use chrono::TimeDelta;
use engine::Command;
use model::message::TaskResult;
use model::{BreakerKey, Failure, Limit, RunId, TaskIndex, TaskKey, TaskState, TenantId, WorkerId};
use runtime::Runtime;
use store::SlotWait;
use testkit::{ManualClock, SilentBus};
use tracing_subscriber::layer::SubscriberExt;
use uuid::Uuid;

use crate::timers::Statements;

const FRAGILE: &str = "
name: fragile
tasks:
  - {name: load, type: noop, pool: dock, breaker: {failures: 2, window: 1m, pause: 30s}}
";

type World = testkit::World<SilentBus, ManualClock>;

/// A world in which nothing happens by itself.
async fn world(text: &str) -> World {
    let world = World::on_postgres(SilentBus, ManualClock::at("2026-01-01T00:00:00Z")).await;
    world.write(text).await;
    world
}

async fn start(process: &Runtime, workflow: &str) -> RunId {
    process.start(testkit::start_run(workflow)).await.unwrap().record.run.id
}

async fn report(process: &Runtime, run: RunId, result: TaskResult) {
    let record = process.store().run_tasks(run, None, None, 1).await.unwrap().remove(0).task;
    let report = Command::Report {
        task: record.index,
        attempt: record.attempt,
        worker: record.worker,
        started_at: process.clock().now(),
        result,
    };
    assert_eq!(process.settle(run, report).await.unwrap(), runtime::Settled::Applied);
}

async fn fail(process: &Runtime, run: RunId) {
    report(process, run, TaskResult::Failed(Failure::transient("the warehouse is closed"))).await;
}

async fn succeed(process: &Runtime, run: RunId) {
    report(process, run, TaskResult::Succeeded(serde_json::Value::Null)).await;
}

async fn state(world: &World, run: RunId) -> TaskState {
    world.tasks(run).await[0].task.state
}

async fn wait_of(world: &World, run: RunId) -> Option<SlotWait> {
    world.store().slot_wait(TaskKey { run, task: TaskIndex(0) }).await.unwrap()
}

/// Claims the current attempt, as the worker that got its message or its offer. Returns whether it is the worker's.
async fn claim(process: &Runtime, run: RunId) -> bool {
    let record = process.store().run_tasks(run, None, None, 1).await.unwrap().remove(0).task;
    let worker = WorkerId(Uuid::from_u128(u128::from(record.attempt) ^ run.0.as_u128()));
    let claim = Command::Claim { task: record.index, attempt: record.attempt, worker };
    process.settle(run, claim).await.unwrap() == runtime::Settled::Applied
}

async fn used(world: &World, limit: &Limit) -> u32 {
    let limits = world.store().limits(TenantId::DEFAULT).await.unwrap();
    limits.iter().find(|found| found.limit == *limit).unwrap().used
}

fn breaker() -> Limit {
    Limit::Breaker(TenantId::DEFAULT, "fragile/load".into())
}

fn dock() -> Limit {
    Limit::Pool(TenantId::DEFAULT, "dock".into())
}

/// Starts runs until the breaker is open: two that fail, and as many more before that.
async fn open_after(world: &World, more: usize) -> Vec<RunId> {
    let mut runs = Vec::new();
    for _ in 0..2 + more {
        runs.push(start(&world.runtime, "fragile").await);
    }
    for run in runs.drain(..2).collect::<Vec<_>>() {
        assert!(claim(&world.runtime, run).await);
        fail(&world.runtime, run).await;
    }
    runs
}

#[tokio::test]
async fn what_was_dispatched_before_a_breaker_opened_waits_as_well() {
    let world = world(FRAGILE).await;
    let held = open_after(&world, 3).await;
    for run in &held {
        assert_eq!(state(&world, *run).await, TaskState::Dispatched);
        assert!(!claim(&world.runtime, *run).await, "no attempt begins");
        assert_eq!(state(&world, *run).await, TaskState::Queued);
        assert_eq!(wait_of(&world, *run).await.unwrap().limit, breaker());
    }
    assert_eq!((used(&world, &breaker()).await, used(&world, &dock()).await), (0, 0), "no slot leaks");
    let sweep = sweep::Sweep::new(world.runtime.clone());
    world.clock.advance(TimeDelta::seconds(30));
    sweep.run().await.unwrap();
    let mut probes = Vec::new();
    for run in &held {
        if state(&world, *run).await == TaskState::Dispatched {
            probes.push(*run);
        }
    }
    assert_eq!(probes.len(), 1, "one probe");
    assert!(claim(&world.runtime, probes[0]).await);
    succeed(&world.runtime, probes[0]).await;
    for run in held.into_iter().filter(|run| *run != probes[0]) {
        assert!(claim(&world.runtime, run).await, "it is closed");
        succeed(&world.runtime, run).await;
        let row = world.tasks(run).await.remove(0).task;
        assert_eq!((row.state, row.tries()), (TaskState::Succeeded, 1), "no retry was used");
    }
    assert_eq!((used(&world, &breaker()).await, used(&world, &dock()).await), (0, 0));
}

#[tokio::test]
async fn what_waited_for_a_pool_when_a_breaker_opened_does_not_begin() {
    let world = world(FRAGILE).await;
    world.runtime.slots().resize(&dock(), Some(2)).await.unwrap();
    let held = open_after(&world, 2).await;
    for run in &held {
        assert_eq!(state(&world, *run).await, TaskState::Dispatched, "the pool has room now");
        assert!(!claim(&world.runtime, *run).await);
        assert_eq!(wait_of(&world, *run).await.unwrap().limit, breaker());
    }
    assert_eq!((used(&world, &breaker()).await, used(&world, &dock()).await), (0, 0));
}

#[tokio::test]
async fn of_several_that_were_dispatched_before_one_is_the_probe() {
    let world = world(FRAGILE).await;
    let held = open_after(&world, 2).await;
    world.clock.advance(TimeDelta::seconds(30));
    sweep::Sweep::new(world.runtime.clone()).run().await.unwrap();
    assert!(!claim(&world.runtime, held[0]).await, "another one has a slot as well");
    assert_eq!(state(&world, held[0]).await, TaskState::Queued);
    assert!(claim(&world.runtime, held[1]).await, "it has the slot alone");
    assert_eq!(state(&world, held[0]).await, TaskState::Queued, "one probe at a time");
    succeed(&world.runtime, held[1]).await;
    assert!(claim(&world.runtime, held[0]).await);
}

/// Opens the breaker from one process, and starts two runs in another.
async fn open(world: &World) -> (Arc<Runtime>, [RunId; 2]) {
    let other = world.process(world.clock.clone()).await;
    for run in [start(&world.runtime, "fragile").await, start(&other, "fragile").await] {
        assert_eq!(state(world, run).await, TaskState::Dispatched);
        fail(&world.runtime, run).await;
    }
    let held = [start(&other, "fragile").await, start(&world.runtime, "fragile").await];
    for run in held {
        assert_eq!(state(world, run).await, TaskState::Queued, "no attempt begins");
    }
    (other, held)
}

#[tokio::test]
async fn after_enough_failures_attempts_wait_in_every_process_and_one_probe_decides() {
    let world = world(FRAGILE).await;
    let (other, [first, second]) = open(&world).await;
    let until = world.now() + TimeDelta::seconds(30);
    let wait = wait_of(&world, first).await.unwrap();
    assert_eq!(wait.limit, Limit::Breaker(TenantId::DEFAULT, "fragile/load".into()));
    assert_eq!(wait.until, Some(until));
    let pool = Limit::Pool(TenantId::DEFAULT, "dock".into());
    let limits = world.store().limits(TenantId::DEFAULT).await.unwrap();
    let used = limits.iter().find(|limit| limit.limit == pool).unwrap().used;
    assert_eq!(used, 0, "what waits for a breaker holds no slot of anything else");

    let sweep = sweep::Sweep::new(other.clone());
    world.clock.advance(TimeDelta::seconds(30));
    sweep.run().await.unwrap();
    assert_eq!(state(&world, first).await, TaskState::Dispatched, "the probe");
    assert_eq!(state(&world, second).await, TaskState::Queued);
    fail(&other, first).await;
    assert_eq!(state(&world, second).await, TaskState::Queued, "it is open again");
    assert_eq!(wait_of(&world, second).await.unwrap().until, Some(world.now() + TimeDelta::seconds(30)));

    world.clock.advance(TimeDelta::seconds(30));
    sweep.run().await.unwrap();
    let third = start(&other, "fragile").await;
    assert_eq!(state(&world, third).await, TaskState::Queued);
    succeed(&other, second).await;
    assert_eq!(state(&world, third).await, TaskState::Dispatched, "it is closed");
    let key = BreakerKey::of_task(TenantId::DEFAULT, "fragile", "load");
    assert_eq!(world.runtime.slots().breakers().read(&[key]).await.unwrap(), []);
}

#[tokio::test]
async fn a_person_who_resets_a_breaker_lets_everything_begin() {
    let world = world(FRAGILE).await;
    let (other, held) = open(&world).await;
    let key = BreakerKey::of_task(TenantId::DEFAULT, "fragile", "load");
    let breaker = other.slots().breakers().read(&[key]).await.unwrap().remove(0);
    assert_eq!(breaker.message, "the warehouse is closed");
    assert!(other.slots().breakers().reset(TenantId::DEFAULT, breaker.id).await.unwrap().is_some());
    for run in held {
        assert_eq!(state(&world, run).await, TaskState::Dispatched);
    }
    assert!(
        other.slots().breakers().reset(TenantId::DEFAULT, breaker.id).await.unwrap().is_none(),
        "it is closed"
    );
}

#[tokio::test]
async fn a_request_to_wait_opens_no_breaker() {
    let world = world(FRAGILE).await;
    for _ in 0..5 {
        let run = start(&world.runtime, "fragile").await;
        assert_eq!(state(&world, run).await, TaskState::Dispatched);
        let busy = Failure { retry_after_seconds: Some(5), ..Failure::transient("429 Too Many Requests") };
        report(&world.runtime, run, TaskResult::Failed(busy)).await;
    }
}

#[tokio::test]
async fn the_children_of_a_fan_out_share_one_breaker() {
    let text = "
name: many
tasks:
  - name: each
    type: fan_out
    for_each: range(5)
    max_parallel: 1
    tolerated_failures: 5
    task: {type: noop, breaker: {failures: 2, window: 1m, pause: 30s}}
";
    let world = world(text).await;
    let run = start(&world.runtime, "many").await;
    let children = async || world.store().run_tasks(run, Some(TaskIndex(0)), None, 99).await.unwrap();
    for _ in 0..2 {
        let active = children().await.into_iter().find(|row| row.task.state == TaskState::Dispatched);
        let failed = TaskResult::Failed(Failure::transient("no"));
        world.report(run, active.unwrap().task.index.0, 1, failed).await;
    }
    let states: Vec<TaskState> = children().await.iter().map(|row| row.task.state).collect();
    assert!(states.contains(&TaskState::Queued) && !states.contains(&TaskState::Dispatched), "{states:?}");
    let key = BreakerKey::of_task(TenantId::DEFAULT, "many", "each");
    assert!(world.runtime.slots().breakers().read(&[key]).await.unwrap()[0].open.is_some());
}

#[tokio::test]
async fn a_task_without_a_breaker_pays_nothing_for_those_of_others() {
    let world = world("{name: plain, tasks: [{name: load, type: noop}]}").await;
    world.write(FRAGILE).await;
    let statements = Statements::default();
    let _guard = testkit::subscribe(tracing_subscriber::registry().with(statements.clone()));
    let (mut claims, mut ends) = (Vec::new(), Vec::new());
    for workflow in ["plain", "fragile"] {
        // The first run of each creates its limits.
        let warm = start(&world.runtime, workflow).await;
        succeed(&world.runtime, warm).await;
        let run = start(&world.runtime, workflow).await;
        claims.push(statements.of(async { assert!(claim(&world.runtime, run).await) }).await);
        ends.push(statements.of(succeed(&world.runtime, run)).await);
    }
    for sent in [claims, ends] {
        assert_eq!(sent[1], sent[0] + 1, "a task with one asks whether it is open");
    }
}
