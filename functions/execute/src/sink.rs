//! Where the records of an attempt go: into the store, or over HTTP to a server.

use std::sync::Arc;

use async_trait::async_trait;
use model::{Instant, ProgressReport, TaskKey};
use serde_json::Value;
use store::{Checkpoint, LogChunk, LogLine, Store};

/// Receives the records of one attempt.
#[async_trait]
pub trait AttemptSink: Send + Sync {
    /// Appends lines to the attempt's log; `first` is the number of the first one. Appending the same lines again changes
    /// nothing.
    async fn append_log(&self, first: u32, lines: &[LogLine]) -> Result<(), SinkError>;

    /// Keeps a checkpoint in place of an earlier one.
    async fn save_checkpoint(&self, at: Instant, data: &Value) -> Result<(), SinkError>;

    /// Adds a report to the attempt's progress.
    async fn report_progress(&self, report: &ProgressReport) -> Result<(), SinkError>;
}

/// Why records were not stored.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SinkError {
    /// A retry may succeed.
    #[error("{0}")]
    Unavailable(String),
    /// No retry can succeed.
    #[error("{0}")]
    Refused(String),
}

impl From<store::Error> for SinkError {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Unavailable(_) | store::Error::Conflict => Self::Unavailable(error.to_string()),
            other => Self::Refused(other.to_string()),
        }
    }
}

/// Writes the records of an attempt to the store.
pub(crate) struct StoreSink {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) key: TaskKey,
    pub(crate) attempt: u32,
}

#[async_trait]
impl AttemptSink for StoreSink {
    async fn append_log(&self, first: u32, lines: &[LogLine]) -> Result<(), SinkError> {
        let Self { store, key, attempt } = self;
        let chunk = LogChunk { key: *key, attempt: *attempt, first, lines: lines.to_vec() };
        Ok(store.append_log(&chunk).await?)
    }

    async fn save_checkpoint(&self, at: Instant, data: &Value) -> Result<(), SinkError> {
        let checkpoint = Checkpoint { attempt: self.attempt, at, data: data.clone() };
        self.store.keep_checkpoint(self.key, &checkpoint).await?;
        Ok(())
    }

    async fn report_progress(&self, report: &ProgressReport) -> Result<(), SinkError> {
        Ok(self.store.report_progress(self.key, report).await?)
    }
}
