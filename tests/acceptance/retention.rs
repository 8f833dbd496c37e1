//! What has been kept long enough is deleted, and never before it is archived.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::TimeDelta;
use clock::{Clock, SystemClock};
use model::{Instant, RunId, TenantId};
use runtime::Runtime;
use serde_json::Value;
use service::config::RetentionConfig;
use store::Postgres;
use sweep::{Archive, Folder, Retention, Sweep};
use testkit::ManualClock;

use crate::world::World;

/// A folder that can be full.
struct Moody(Folder, Arc<AtomicBool>);

#[async_trait::async_trait]
impl Archive for Moody {
    async fn keep(&self, kind: &str, now: Instant, documents: Vec<Value>) -> std::io::Result<()> {
        match self.1.load(Ordering::Relaxed) {
            true => Err(std::io::Error::other("the disk is full")),
            false => self.0.keep(kind, now, documents).await,
        }
    }
}

async fn is_there(world: &World, run: RunId) -> (bool, bool) {
    let store = world.runtime.store();
    let outputs = store.outputs(run, &[model::TaskIndex(0)]).await.unwrap();
    (store.run(TenantId::DEFAULT, run).await.unwrap().is_some(), !outputs.is_empty())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_been_kept_long_enough_is_archived_and_then_deleted() {
    let world = World::new().await;
    let mut workflow = testkit::workflow("a");
    workflow.tasks[0].kind = "echo".into();
    workflow.tasks[0].config = serde_json::json!({"value": "hello"});
    world.register(workflow).await;
    let run = world.trigger("example").await;
    world.finished(run).await;
    assert_eq!(is_there(&world, run).await, (true, true));

    let clock = ManualClock::at(&SystemClock.now().to_rfc3339());
    let store = Arc::new(Postgres::connect(&world.database.url, 4).await.unwrap());
    let runtime = Arc::new(Runtime::new(store, Arc::new(world.broker.clone()), Arc::new(clock.clone())));
    let (folder, full) = (tempfile::tempdir().unwrap(), Arc::new(AtomicBool::new(true)));
    let archive = Moody(Folder(folder.path().join("archive")), full.clone());
    let retention = Retention::new(RetentionConfig::default()).archived_by(Arc::new(archive));
    let sweep = Sweep::new(runtime).keeping(retention);
    let tick_after = async |days: i64| {
        clock.set(clock.now() + TimeDelta::days(days));
        sweep.run().await.unwrap();
    };
    tick_after(0).await;
    assert_eq!(is_there(&world, run).await, (true, true), "it is young");
    tick_after(8).await;
    assert_eq!(is_there(&world, run).await, (true, true), "the archive did not take it");
    full.store(false, Ordering::Relaxed);
    clock.set(clock.now() + TimeDelta::minutes(1));
    sweep.run().await.unwrap();
    assert_eq!(is_there(&world, run).await, (true, false), "outputs are kept for a week");
    tick_after(90).await;
    assert_eq!(is_there(&world, run).await, (false, false));

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
