//! Loads the folder of workflows at start, and again when a file changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use chrono::TimeDelta;
use model::{TaskSpec, TenantId};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use runtime::Runtime;
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::files;

/// How long to wait for further changes: editors write files in several steps.
const DEBOUNCE: TimeDelta = TimeDelta::milliseconds(200);

/// Watches the folder until it is dropped.
pub(super) struct Watcher {
    _notify: Option<RecommendedWatcher>,
}

/// Registers everything in the folder, and again whenever it changes. A file with errors is reported, and the active version
/// stays in place.
pub(super) async fn load_and_watch(
    folder: &Path,
    runtime: Arc<Runtime>,
    queues: Arc<dyn Queues>,
) -> anyhow::Result<Watcher> {
    let mut loader = Loader { folder: folder.to_owned(), runtime, queues, loaded: BTreeMap::new() };
    loader.load().await;
    if !folder.is_dir() {
        warn!(
            "There is no folder {}: create it and start again, or name another with --workflows",
            folder.display()
        );
        return Ok(Watcher { _notify: None });
    }
    let (changed, mut changes) = mpsc::unbounded_channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| !event.kind.is_access()) {
            let _ = changed.send(());
        }
    })?;
    watcher.watch(folder, RecursiveMode::Recursive)?;
    tokio::spawn(async move {
        while changes.recv().await.is_some() {
            let clock = loader.runtime.clock().clone();
            clock.wait_until(clock.now() + DEBOUNCE).await;
            while changes.try_recv().is_ok() {}
            loader.load().await;
        }
    });
    Ok(Watcher { _notify: Some(watcher) })
}

/// Prepares queues before tasks can be sent to them.
#[async_trait]
pub(super) trait Queues: Send + Sync {
    /// Creates what these queues need.
    async fn open(&self, queues: BTreeSet<String>) -> anyhow::Result<()>;
}

struct Loader {
    folder: PathBuf,
    runtime: Arc<Runtime>,
    queues: Arc<dyn Queues>,
    /// The workflows whose files were there last time, with the hash that was registered. Unchanged ones are left alone: they
    /// may have been rolled back.
    loaded: BTreeMap<String, Option<String>>,
}

impl Loader {
    async fn load(&mut self) {
        let sources = match files::read(&self.folder) {
            Ok(sources) => sources,
            Err(error) => return warn!("{error:#}"),
        };
        let compilation = language::compile(&sources);
        for diagnostic in &compilation.diagnostics {
            warn!("{diagnostic}");
        }
        let present: BTreeSet<String> = sources.iter().filter_map(files::workflow_name).collect();
        for definition in compilation.definitions {
            self.register(definition).await;
        }
        let gone: Vec<String> = self.loaded.keys().filter(|name| !present.contains(*name)).cloned().collect();
        for name in gone {
            self.archive(&name).await;
        }
        for name in present {
            self.loaded.entry(name).or_default();
        }
    }

    /// Registers one at a time, so that one that fails does not block the others.
    async fn register(&mut self, definition: language::Definition) {
        let (name, hash) = (definition.workflow.name.clone(), definition.hash.clone());
        if self.loaded.get(&name) == Some(&Some(hash.clone())) {
            return;
        }
        let children = |task: &TaskSpec| task.fan_out.as_ref().map(|fan| fan.task.queue.clone());
        let tasks = definition.workflow.tasks.iter();
        let queues = tasks.flat_map(|task| std::iter::once(task.queue.clone()).chain(children(task)));
        if let Err(error) = self.queues.open(queues.collect()).await {
            return warn!("Cannot create the queues of {name}: {error:#}");
        }
        match self.runtime.definitions().register(TenantId::DEFAULT, vec![definition], "ebb dev").await {
            Ok(registered) => {
                self.loaded.insert(name.clone(), Some(hash));
                for registered in registered.iter().filter(|registered| registered.changed) {
                    info!("Registered {name}, version {}", registered.number);
                }
            }
            Err(error) => warn!("Cannot register {name}: {error}"),
        }
    }

    async fn archive(&mut self, name: &str) {
        match self.runtime.store().archive(TenantId::DEFAULT, name, self.runtime.clock().now()).await {
            Ok(_) => {
                self.loaded.remove(name);
                info!("Archived {name}: its file is gone");
            }
            Err(error) => warn!("Cannot archive {name}: {error}"),
        }
    }
}
