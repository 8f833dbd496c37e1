//! A database that is restored to an earlier moment: everything goes on from there.

use std::sync::Arc;

use bus::{Endpoint, Subscription};
use chrono::TimeDelta;
use execute::{Executor, Worker};
use language::FileKind;
use model::message::{TaskDispatched, TaskResult};
use model::{EventKind, RunState, TaskIndex, TaskKey, TenantId, Topic, WorkerId};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;

use crate::timers::{Standing, another};
use crate::world::{AUDIENCE, World};

const PAYS: &str = "
name: pays
tasks:
  - {name: wait, type: wait_for_signal, config: {signal: paid}}
  - {name: ship, type: noop, depends_on: [wait]}
";

/// Work of a queue that nobody listens to yet.
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

/// Replaces a database by a copy of another one, whoever is connected.
async fn copy(url: &str, from: &str, to: &str) {
    let (server, _) = url.rsplit_once('/').unwrap();
    let mut connection = PgConnection::connect(&format!("{server}/postgres")).await.unwrap();
    for statement in [
        format!("select pg_terminate_backend(pid) from pg_stat_activity where datname in ('{from}', '{to}')"),
        format!("drop database if exists {to}"),
        format!("create database {to} template {from}"),
    ] {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
    }
}

/// Each connection that was cut says so once.
async fn reconnect(world: &World) {
    for _ in 0..20 {
        let _ = world.runtime.store().ping().await;
    }
}

/// A world whose database was restored after something had been done that is forgotten now.
async fn restore(world: &World, forgotten: impl AsyncFnOnce(&World)) {
    let url = world.database.url.clone();
    let name = url.rsplit('/').next().unwrap().replace("%5F", "_");
    let backup = format!("{name}_backup");
    copy(&url, &name, &backup).await;
    reconnect(world).await;
    forgotten(world).await;
    copy(&url, &backup, &name).await;
    reconnect(world).await;
}

/// The functions that carry out work of the queue begin to listen.
fn listen(world: &World) {
    let runtime = world.runtime.clone();
    let executor = Executor::new(runtime.clone(), Worker::new(runtime), ".");
    let endpoint = Endpoint::Router(execute::router_with(world.app.clone(), executor), "/push".into());
    let topic = Topic::Work("heavy".into());
    world.broker.subscribe(&topic, Subscription::new(topic.id(), endpoint, AUDIENCE));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_sent_is_announced_again_and_what_an_unknown_worker_held_is_lost_and_done_anew() {
    let world = World::new().await;
    world.write(&[(FileKind::Workflow, WORKS)]).await;
    let run = world.trigger("works").await;
    world.broker.idle().await;
    let claim =
        engine::Command::Claim { task: TaskIndex(1), attempt: 1, worker: WorkerId(Uuid::from_u128(1)) };
    assert_eq!(world.runtime.settle(run, claim).await.unwrap(), runtime::Settled::Applied);
    restore(&world, async |world: &World| {
        let cancel = engine::Command::Cancel { actor: "test".into(), reason: None };
        assert_eq!(world.runtime.settle(run, cancel).await.unwrap(), runtime::Settled::Applied);
    })
    .await;
    assert_eq!(world.states(run).await, ["dispatched", "running"], "what came after is forgotten");

    listen(&world);
    world.broker.idle().await;
    assert_eq!(world.states(run).await, ["dispatched", "running"], "no message is left of that time");
    // Two minutes later the scheduler ticks.
    let clock = Arc::new(Standing(std::sync::Mutex::new(world.app.now() + TimeDelta::minutes(2))));
    let sweep = sweep::Sweep::new(another(&world, &clock).await);
    sweep.run().await.unwrap();
    assert_eq!(world.state(run).await, RunState::Succeeded);
    let events = world.events(run).await;
    let of = |task: u32, kind: EventKind| {
        events.iter().filter(|event| event.task == Some(TaskIndex(task)) && event.kind == kind).count()
    };
    // Once more where nobody has taken it by the time that the sweep looks for what is wrong.
    assert!(of(0, EventKind::TaskRedispatched) >= 1, "said again");
    assert_eq!(of(0, EventKind::TaskDispatched), 1, "and only said");
    let lost =
        events.iter().find(|event| event.data["class"] == "worker_lost").expect("the attempt was lost");
    assert_eq!((lost.task, lost.attempt), (Some(TaskIndex(1)), 1));
    assert_eq!((of(1, EventKind::TaskDispatched), of(1, EventKind::TaskSucceeded)), (2, 1), "and done anew");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_goes_on_from_where_a_restored_database_has_it() {
    let world = World::new().await;
    world.write(&[(FileKind::Workflow, PAYS)]).await;
    let run = world.trigger("pays").await;
    world.broker.idle().await;
    restore(&world, async |world: &World| {
        world.signal(run, "paid").await;
        assert_eq!(world.state(run).await, RunState::Succeeded);
    })
    .await;
    assert_eq!(world.states(run).await, ["sleeping", "pending"], "what came after is forgotten");
    // Whoever lived through the lost time still talks of it.
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
    bus::Bus::publish(&world.broker, &[model::Message::TaskDispatched(work)]).await.unwrap();
    let started_at = world.app.now();
    let result = TaskResult::Succeeded(Value::Null);
    let report = engine::Command::Report { task: key.task, attempt: 1, worker: None, started_at, result };
    assert_eq!(world.runtime.settle(run, report).await.unwrap(), runtime::Settled::Stale);
    world.broker.idle().await;
    assert_eq!(world.states(run).await, ["sleeping", "pending"]);

    world.signal(run, "paid").await;
    assert_eq!(world.state(run).await, RunState::Succeeded);
}
