//! The folder of workflows: loaded at start, watched, and registered again when a file changes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::TimeDelta;
use model::TenantId;
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use runtime::Runtime;
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::files;

/// An editor writes a file in several steps: changes are taken together for so long.
const SETTLING: TimeDelta = TimeDelta::milliseconds(200);

/// Keeps watching for as long as it lives.
pub(super) struct Watcher {
    _notify: Option<RecommendedWatcher>,
}

/// Registers everything in the folder and keeps doing so when it changes. A file with problems is reported and
/// leaves the version that is active as it is.
pub(super) async fn load_and_watch(folder: &Path, runtime: Arc<Runtime>) -> anyhow::Result<Watcher> {
    let mut loader = Loader { folder: folder.to_owned(), runtime, loaded: BTreeSet::new() };
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
            clock.wait_until(clock.now() + SETTLING).await;
            while changes.try_recv().is_ok() {}
            loader.load().await;
        }
    });
    Ok(Watcher { _notify: Some(watcher) })
}

struct Loader {
    folder: PathBuf,
    runtime: Arc<Runtime>,
    /// The workflows whose files were there last time.
    loaded: BTreeSet<String>,
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
        for definition in compilation.definitions {
            if let Err(error) = self.register(definition).await {
                warn!("{error}");
            }
        }
        let present: BTreeSet<String> = sources.iter().filter_map(files::workflow_name).collect();
        for gone in self.loaded.difference(&present) {
            match self.runtime.store().archive(TenantId::DEFAULT, gone, self.runtime.clock().now()).await {
                Ok(_) => info!("Archived {gone}: its file is gone"),
                Err(error) => warn!("{gone} could not be archived: {error}"),
            }
        }
        self.loaded = present;
    }

    /// Each on its own: one that the store refuses does not hold up the others.
    async fn register(&self, definition: language::Definition) -> runtime::Result<()> {
        let name = definition.workflow.name.clone();
        for registered in self.runtime.register(TenantId::DEFAULT, vec![definition], "ebb dev").await? {
            if registered.new {
                info!("Registered {name}, version {}", registered.number);
            }
        }
        Ok(())
    }
}
