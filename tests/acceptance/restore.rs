//! A database is restored to an earlier moment, and every run continues from there.

use bus::{Endpoint, Subscription};
use chrono::TimeDelta;
use execute::{Executor, Runner, Worker};
use model::message::{TaskDispatched, TaskResult};
use model::{EventKind, RunState, TaskIndex, TaskKey, TenantId, Topic, WorkerId};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use testkit::{ManualClock, eventually};
use uuid::Uuid;

use crate::world::{AUDIENCE, World};

const PAYS: &str = "
name: pays
tasks:
  - {name: wait, type: wait_for_signal, config: {signal: paid}}
  - {name: ship, type: noop, depends_on: [wait]}
";

/// Tasks of a queue without a subscription.
const WORKS: &str = "
name: works
tasks:
  - {name: sent, type: bash, queue: heavy, config: {command: 'true'}}
  - name: held
    type: bash
    queue: heavy
    config: {command: 'true'}
    retry_policy: {max_retries: 1, initial_delay_seconds: 0}
";

/// Replaces a database with a copy of another one. Pools may hold connections to both, and open new ones at any time.
async fn copy(url: &str, from: &str, to: &str) {
    let (server, _) = url.rsplit_once('/').unwrap();
    let mut connection = PgConnection::connect(&format!("{server}/postgres")).await.unwrap();
    let mut execute = async |statement: String| {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.map(drop)
    };
    execute(format!("drop database if exists {to} with (force)")).await.unwrap();
    execute(format!("alter database {from} with allow_connections false")).await.unwrap();
    // Connections that are terminated take their time, and Postgres waits for them for five seconds.
    eventually("the database is copied", async || {
        let end = format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{from}'");
        execute(end).await.unwrap();
        execute(format!("create database {to} template {from}")).await.ok()
    })
    .await;
    execute(format!("alter database {from} with allow_connections true")).await.unwrap();
}

/// Every connection that was cut fails once.
async fn reconnect(world: &World) {
    for _ in 0..20 {
        let _ = world.store().ping().await;
    }
}

/// Takes a backup, does something, and restores the backup, so that it is undone.
async fn restore(world: &World, undone: impl AsyncFnOnce(&World)) {
    let url = world.database_url().to_owned();
    let name = url.rsplit('/').next().unwrap().replace("%5F", "_");
    let backup = format!("{name}_backup");
    copy(&url, &name, &backup).await;
    reconnect(world).await;
    undone(world).await;
    copy(&url, &backup, &name).await;
    reconnect(world).await;
}

/// Subscribes an executor to the queue.
fn subscribe_executor(world: &World) {
    let runtime = world.runtime.clone();
    let executor = Executor::new(
        runtime.clone(),
        Worker::new(runtime.clone()),
        Runner::new(runtime.clock().clone(), "."),
    );
    let endpoint = Endpoint::Router(execute::router_with(world.app.clone(), executor), "/push".into());
    let topic = Topic::Work("heavy".into());
    world.bus.subscribe(&topic, Subscription::new(topic.id(), endpoint, AUDIENCE));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dispatched_tasks_are_published_again_and_attempts_of_unknown_workers_are_retried() {
    let world = World::new().await;
    world.write(WORKS).await;
    let run = world.start("works").await;
    world.bus.idle().await;
    let claim =
        engine::Command::Claim { task: TaskIndex(1), attempt: 1, worker: WorkerId(Uuid::from_u128(1)) };
    world.apply(run, claim).await;
    restore(&world, async |world: &World| {
        world.cancel(run).await;
    })
    .await;
    assert_eq!(world.states(run).await, ["dispatched", "running"], "the cancellation is undone");

    subscribe_executor(&world);
    world.bus.idle().await;
    assert_eq!(world.states(run).await, ["dispatched", "running"], "the messages of that time are lost");
    // The scheduler ticks two minutes later.
    let clock = ManualClock::at(&(world.now() + TimeDelta::minutes(2)).to_rfc3339());
    let sweep = sweep::Sweep::new(world.process(clock).await);
    // By its clock the executor is silent: it waits for a heartbeat, and is not needed once the run has succeeded.
    let sweeping = tokio::spawn(async move { sweep.run().await });
    eventually("the run succeeds", async || {
        (world.run(run).await.run.state == RunState::Succeeded).then_some(())
    })
    .await;
    sweeping.abort();
    let events = world.events(run).await;
    let of = |task: u32, kind: EventKind| {
        events.iter().filter(|event| event.task == Some(TaskIndex(task)) && event.kind == kind).count()
    };
    // Twice if no executor has claimed it by the time the sweep inspects everything.
    assert!(of(0, EventKind::TaskRedispatched) >= 1, "its message is published again");
    assert_eq!(of(0, EventKind::TaskDispatched), 1, "for the same attempt");
    let lost =
        events.iter().find(|event| event.data["class"] == "worker_lost").expect("the attempt was lost");
    assert_eq!((lost.task, lost.attempt), (Some(TaskIndex(1)), 1));
    assert_eq!(
        (of(1, EventKind::TaskDispatched), of(1, EventKind::TaskSucceeded)),
        (2, 1),
        "the task is retried"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_continues_from_its_state_in_the_restored_database() {
    let world = World::new().await;
    world.write(PAYS).await;
    let run = world.start("pays").await;
    world.bus.idle().await;
    restore(&world, async |world: &World| {
        world.signal(run, "paid").await;
        assert_eq!(world.state(run).await, RunState::Succeeded);
    })
    .await;
    assert_eq!(world.states(run).await, ["sleeping", "pending"], "the signal is undone");
    // Messages and reports of the lost time still arrive.
    let key = TaskKey { run, task: TaskIndex(1) };
    let record = world.run(run).await.run;
    let work = TaskDispatched {
        key,
        tenant: TenantId::DEFAULT,
        attempt: 1,
        version: record.version,
        queue: "light".into(),
        child: None,
        give_up_at: None,
    };
    bus::Bus::publish(&world.bus, &[model::Message::TaskDispatched(work)]).await.unwrap();
    let started_at = world.now();
    let result = TaskResult::Succeeded(Value::Null);
    let report = engine::Command::Report { task: key.task, attempt: 1, worker: None, started_at, result };
    assert_eq!(world.runtime.settle(run, report).await.unwrap(), runtime::Settled::Stale);
    world.bus.idle().await;
    assert_eq!(world.states(run).await, ["sleeping", "pending"]);

    world.signal(run, "paid").await;
    assert_eq!(world.state(run).await, RunState::Succeeded);
}
