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

use super::problems::Reporter;
use crate::files;

/// How long to wait for further changes: editors write files in several steps.
const DEBOUNCE: TimeDelta = TimeDelta::milliseconds(200);

/// Watches the folder until it is dropped.
pub(super) struct Watcher {
    _notify: Option<RecommendedWatcher>,
}

/// Registers everything in the folder, and again whenever it changes. A file that is invalid or cannot be read is reported, and
/// the active version stays in place.
pub(super) async fn load_and_watch(
    folder: &Path,
    runtime: Arc<Runtime>,
    queues: Arc<dyn Queues>,
    reporter: Reporter,
) -> anyhow::Result<Watcher> {
    let loaded = BTreeMap::new();
    let mut loader = Loader { folder: folder.to_owned(), runtime, queues, reporter, loaded };
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
    reporter: Reporter,
    /// The workflows whose files were there last time, by name.
    loaded: BTreeMap<String, Loaded>,
}

/// What is known of a workflow's file.
#[derive(Default)]
struct Loaded {
    path: String,
    /// The hash that was registered. If it is unchanged, the workflow is left alone: it may have been rolled back.
    hash: Option<String>,
}

impl Loader {
    async fn load(&mut self) {
        let now = self.runtime.clock().now();
        let definitions = match files::read(&self.folder) {
            Ok(definitions) => definitions,
            Err(error) => {
                warn!("{error:#}");
                return self.reporter.report(Vec::new(), now).await;
            }
        };
        let compilation = definitions.compile();
        self.reporter.report(compilation.diagnostics, now).await;
        let present = definitions.workflows();
        for definition in compilation.definitions {
            self.register(definition).await;
        }
        // A file that cannot be read is not gone.
        let is_gone = |(name, loaded): &(&String, &Loaded)| {
            !present.contains_key(*name) && !definitions.hides(&loaded.path)
        };
        let gone: Vec<String> = self.loaded.iter().filter(is_gone).map(|(name, _)| name.clone()).collect();
        for name in gone {
            self.archive(&name).await;
        }
        for (name, path) in present {
            self.loaded.entry(name).or_default().path = path;
        }
    }

    /// Registers one at a time, so that one that fails does not block the others.
    async fn register(&mut self, definition: language::Definition) {
        let (name, hash) = (definition.workflow.name.clone(), definition.hash.clone());
        if self.loaded.get(&name).is_some_and(|loaded| loaded.hash.as_ref() == Some(&hash)) {
            return;
        }
        let child = |task: &TaskSpec| task.fan_out.as_ref().map(|fan| fan.task.push_queue().to_owned());
        let tasks = definition.workflow.tasks.iter();
        let queues = tasks.flat_map(|task| [Some(task.push_queue().to_owned()), child(task)]).flatten();
        if let Err(error) = self.queues.open(queues.collect()).await {
            return warn!("Cannot create the queues of {name}: {error:#}");
        }
        match self.runtime.definitions().register(TenantId::DEFAULT, vec![definition], "ebb dev").await {
            Ok(registered) => {
                self.loaded.entry(name.clone()).or_default().hash = Some(hash);
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
