//! Expired data is archived and then deleted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::TimeDelta;
use host::config::RetentionConfig;
use model::{BreakerKey, BreakerRead, Clock, Instant, Opening, RunId, TaskKind, TenantId};
use serde_json::Value;
use sqlx::Connection;
use sweep::{Archive, Folder, Retention, Sweep};
use testkit::ManualClock;

use crate::world::World;

/// An archive folder whose disk can be full.
struct FullableFolder(Folder, Arc<AtomicBool>);

#[async_trait::async_trait]
impl Archive for FullableFolder {
    async fn store(&self, kind: &str, now: Instant, documents: Vec<Value>) -> std::io::Result<()> {
        match self.1.load(Ordering::Relaxed) {
            true => Err(std::io::Error::other("the disk is full")),
            false => self.0.store(kind, now, documents).await,
        }
    }
}

/// Whether a run exists, and whether it has outputs.
async fn exists(world: &World, run: RunId) -> (bool, bool) {
    let store = world.store();
    let outputs = store.outputs(run, &[model::TaskIndex(0)]).await.unwrap();
    (store.run(TenantId::DEFAULT, run).await.unwrap().is_some(), !outputs.is_empty())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_outputs_and_runs_are_archived_and_then_deleted() {
    let world = World::new().await;
    let mut workflow = testkit::workflow("a -> b");
    workflow.tasks[0].kind = TaskKind::Echo;
    workflow.tasks[0].config = serde_json::json!({"value": "hello"});
    world.register(workflow).await;
    let run = world.start("example").await;
    world.finished(run).await;
    assert_eq!(exists(&world, run).await, (true, true));

    let clock = ManualClock::at(&world.now().to_rfc3339());
    let runtime = world.process(clock.clone()).await;
    let (folder, full) = (tempfile::tempdir().unwrap(), Arc::new(AtomicBool::new(true)));
    let archive = FullableFolder(Folder(folder.path().join("archive")), full.clone());
    let retention = Retention::new(RetentionConfig::default()).archived_by(Arc::new(archive));
    let sweep = Sweep::new(runtime).with_retention(retention);
    let tick_after = async |days: i64| {
        clock.set(clock.now() + TimeDelta::days(days));
        sweep.run().await.unwrap();
    };
    tick_after(0).await;
    assert_eq!(exists(&world, run).await, (true, true), "nothing has expired");
    tick_after(8).await;
    assert_eq!(exists(&world, run).await, (true, true), "what is not archived is kept");
    full.store(false, Ordering::Relaxed);
    clock.set(clock.now() + TimeDelta::minutes(1));
    sweep.run().await.unwrap();
    assert_eq!(exists(&world, run).await, (true, false), "outputs are kept for a week");
    let by = engine::By { actor: "ana".into(), reason: None };
    let operation = engine::Operation::Clear(model::TaskIndex(1));
    let refused = world.runtime.settle(run, engine::Command::Operate { operation, by }).await;
    assert!(matches!(refused, Err(runtime::Error::OutputsForgotten(of)) if of == run), "{refused:?}");
    tick_after(90).await;
    assert_eq!(exists(&world, run).await, (false, false));

    let mut archived: Vec<(String, String)> = std::fs::read_dir(folder.path().join("archive"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(path).unwrap())
        })
        .collect();
    archived.sort();
    let runs = archived.iter().find(|(name, _)| name.starts_with("runs-")).unwrap();
    let document: Value = serde_json::from_str(runs.1.lines().next().unwrap()).unwrap();
    assert_eq!(document["run"]["id"], serde_json::json!(run));
    assert!(document["events"].as_array().is_some_and(|events| !events.is_empty()));
    let outputs = archived.iter().find(|(name, _)| name.starts_with("outputs-")).unwrap();
    let output: Value = serde_json::from_str(outputs.1.trim()).unwrap();
    assert_eq!(output, serde_json::json!({"run": run, "task": 0, "output": {"value": "hello"}}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_breaker_is_deleted_a_day_after_its_last_failure_and_pause() {
    let world = World::new().await;
    let clock = ManualClock::at(&world.now().to_rfc3339());
    let sweep = Sweep::new(world.process(clock.clone()).await);
    let (now, store) = (clock.now(), world.store());
    let key = BreakerKey::of_host(TenantId::DEFAULT, "gone.example", 443);
    let mut transaction = store.begin().await.unwrap();
    let failed = BreakerRead::Happened(vec![(key.clone(), true)]);
    let mut found = transaction.lock_breakers(&failed).await.unwrap();
    // The pause ends after the first sweep, which would otherwise wait for it.
    let until = now + TimeDelta::hours(1);
    found[0].open = Some(Opening { since: now, until, pause_seconds: 3600, probing: false });
    transaction.save_breakers(&found).await.unwrap();
    transaction.commit().await.unwrap();
    for (days, kept) in [(0, 1), (1, 1), (1, 0)] {
        clock.set(clock.now() + TimeDelta::days(days));
        sweep.run().await.unwrap();
        assert_eq!(store.breakers(std::slice::from_ref(&key)).await.unwrap().len(), kept);
    }
    assert_eq!(store.load().await.unwrap().breakers, 0);
}

async fn tables(world: &World, like: &str) -> Vec<String> {
    let mut connection = sqlx::PgConnection::connect(world.database_url()).await.unwrap();
    let names = sqlx::query_scalar(
        "select relname::text from pg_class where relkind = 'r' and relname like $1 order by 1",
    );
    names.bind(like).fetch_all(&mut connection).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_are_created_in_advance_and_dropped_as_a_whole() {
    let world = World::new().await;
    world.register(testkit::workflow("a")).await;
    let clock = ManualClock::at(&world.now().to_rfc3339());
    let runtime = world.process(clock.clone()).await;
    let sweep = Sweep::new(runtime.clone());
    let tick_after = async |days: i64| {
        clock.set(clock.now() + TimeDelta::days(days));
        sweep.run().await.unwrap();
    };
    tick_after(0).await;
    assert_eq!((tables(&world, "events_2%").await.len(), tables(&world, "logs_2%").await.len()), (3, 3));
    // The events of a run are in the partition of its id.
    clock.set(clock.now() + TimeDelta::days(28));
    let run = runtime.start(testkit::start_run("example")).await.unwrap().record.run.id;
    let cancel = engine::Command::Cancel { actor: "test".into(), reason: None };
    runtime.settle(run, cancel).await.unwrap();
    assert!(!world.events(run).await.is_empty());
    let first = tables(&world, "events_2%").await.remove(0);
    let mut connection = sqlx::PgConnection::connect(world.database_url()).await.unwrap();
    let count = sqlx::AssertSqlSafe(format!("select count(*) from {first}"));
    let rows: i64 = sqlx::query_scalar(count).fetch_one(&mut connection).await.unwrap();
    assert!(rows > 0, "the run's events are in {first}");

    tick_after(60).await;
    assert!(tables(&world, "events_2%").await.contains(&first), "the run is kept");
    assert!(!world.events(run).await.is_empty());
    tick_after(366).await;
    tick_after(31).await;
    assert!(!tables(&world, "events_2%").await.contains(&first), "all of its runs are deleted");
    assert!(world.store().run(TenantId::DEFAULT, run).await.unwrap().is_none());
}
