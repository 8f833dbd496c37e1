//! A database that is restored to an earlier moment: everything goes on from there.

use language::FileKind;
use model::message::{TaskDispatched, TaskResult};
use model::{RunState, TaskIndex, TaskKey, TenantId};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::world::World;

const PAYS: &str = "
name: pays
tasks:
  - {name: wait, type: wait_for_signal, config: {signal: paid}}
  - {name: ship, type: noop, depends_on: [wait]}
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_goes_on_from_where_a_restored_database_has_it() {
    let world = World::new().await;
    world.write(&[(FileKind::Workflow, PAYS)]).await;
    let run = world.trigger("pays").await;
    world.broker.idle().await;
    let url = world.database.url.clone();
    let name = url.rsplit('/').next().unwrap().replace("%5F", "_");
    let backup = format!("{name}_backup");
    copy(&url, &name, &backup).await;
    reconnect(&world).await;
    world.signal(run, "paid").await;
    assert_eq!(world.state(run).await, RunState::Succeeded);

    copy(&url, &backup, &name).await;
    reconnect(&world).await;
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
