//! Compiled graphs by version. A version never changes, so what is cached is never wrong.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use engine::Graph;
use model::VersionId;
use store::VersionRecord;

use crate::{Error, Result, Runtime};

/// How many graphs are kept; beyond that the oldest version goes first.
const MAX_GRAPHS: usize = 1_000;

#[derive(Default)]
pub(crate) struct Graphs(Mutex<BTreeMap<VersionId, Arc<Graph>>>);

impl Graphs {
    pub(crate) fn get(&self, version: VersionId) -> Option<Arc<Graph>> {
        self.0.lock().expect("nothing panics while it is held").get(&version).cloned()
    }

    /// Compiles a version, or takes what was compiled before.
    pub(crate) fn compile(&self, record: VersionRecord) -> Result<Arc<Graph>> {
        if let Some(graph) = self.get(record.id) {
            return Ok(graph);
        }
        let unusable = |cycle: engine::Cycle| Error::Unusable { version: record.id, why: cycle.to_string() };
        let graph = Arc::new(Graph::compile(record.workflow).map_err(unusable)?);
        let mut graphs = self.0.lock().expect("nothing panics while it is held");
        graphs.insert(record.id, graph.clone());
        if graphs.len() > MAX_GRAPHS {
            graphs.pop_first();
        }
        Ok(graph)
    }
}

/// A version that cannot be read cannot be used.
pub(crate) fn readable(
    version: VersionId,
    found: store::Result<Option<VersionRecord>>,
) -> Result<Option<VersionRecord>> {
    match found {
        Err(store::Error::Unreadable { why, .. }) => Err(Error::Unusable { version, why }),
        other => Ok(other?),
    }
}

impl Runtime {
    /// The graph of a version, from the cache or the store.
    pub async fn graph(&self, version: VersionId) -> Result<Option<Arc<Graph>>> {
        if let Some(graph) = self.graphs.get(version) {
            return Ok(Some(graph));
        }
        match readable(version, self.store.version(version).await)? {
            Some(record) => self.graphs.compile(record).map(Some),
            None => Ok(None),
        }
    }
}
