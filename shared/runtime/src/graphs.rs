//! Compiled graphs by version. A version never changes, so what is cached is never wrong.

use std::sync::Arc;

use engine::Graph;
use model::VersionId;
use store::VersionRecord;

use crate::kept::{Kept, weigh};
use crate::{Error, Result, Runtime};

/// The maximum weight of the graphs that are kept, in bytes.
const MAX_WEIGHT: usize = 40 * 1024 * 1024;

pub(crate) struct Graphs(Kept<VersionId, Graph>);

impl Default for Graphs {
    fn default() -> Self {
        Self(Kept::new(MAX_WEIGHT))
    }
}

impl Graphs {
    pub(crate) fn get(&self, version: VersionId) -> Option<Arc<Graph>> {
        self.0.get(&version)
    }

    /// Compiles a version, or takes what was compiled before.
    pub(crate) fn compile(&self, record: VersionRecord) -> Result<Arc<Graph>> {
        if let Some(graph) = self.get(record.id) {
            return Ok(graph);
        }
        let unusable = |cycle: engine::Cycle| Error::Unusable { version: record.id, why: cycle.to_string() };
        let weight = weigh(&record.workflow);
        Ok(self.0.keep(record.id, Graph::compile(record.workflow).map_err(unusable)?, weight))
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
