//! Attempts that are over, and what attempts report while they run.

use async_trait::async_trait;
use model::progress::phase_of;
use model::{AttemptRecord, Instant, Progress, ProgressReport, TaskKey};
use serde_json::Value;

use crate::{LogChunk, LogLine, Result};

/// The maximum size of the log of one attempt, in bytes: that of its lines, each with its end.
pub const MAX_LOG_BYTES: usize = 10 * 1024 * 1024;

/// The maximum number of lines in the log of one attempt. Even an empty line takes a row.
pub const MAX_LOG_LINES: usize = 100_000;

/// The progress that an attempt reported.
#[derive(Clone, PartialEq, Debug)]
pub struct Checkpoint {
    /// The attempt that reported it.
    pub attempt: u32,
    /// When it was reported.
    pub at: Instant,
    /// The data that the attempt attached.
    pub data: Value,
}

impl Checkpoint {
    /// The phase that it names, as a report.
    pub(crate) fn phase(&self) -> Option<ProgressReport> {
        let phase = phase_of(&self.data)?;
        Some(ProgressReport { phase: Some(phase), ..ProgressReport::new(self.attempt, self.at) })
    }
}

/// Attempts that are over, and what attempts report while they run.
#[async_trait]
pub trait Attempts: Send + Sync {
    /// The attempts of a task that are over, oldest first.
    async fn attempts(&self, key: TaskKey) -> Result<Vec<AttemptRecord>>;

    /// Lines of an attempt's log with a number of `from` or higher, oldest first, with their numbers.
    async fn log(&self, key: TaskKey, attempt: u32, from: u32, limit: u32) -> Result<Vec<(u32, LogLine)>>;

    /// Appends lines to an attempt's log. Lines are numbered from 0 and come in order: the same first line again, or an
    /// earlier one, changes nothing. Lines beyond [`MAX_LOG_BYTES`] or [`MAX_LOG_LINES`] are cut, and a last line says so.
    async fn append_log(&self, chunk: &LogChunk) -> Result<()>;

    /// Keeps how far an attempt at a task has come, in place of what was kept before; the checkpoint of a later attempt stays. The
    /// phase that it names becomes part of the attempt's progress. Returns whether it was kept.
    async fn keep_checkpoint(&self, key: TaskKey, checkpoint: &Checkpoint) -> Result<bool>;

    /// The last checkpoint of a task. One from before the task was cleared does not count.
    async fn checkpoint(&self, key: TaskKey) -> Result<Option<Checkpoint>>;

    /// Adds a report to the progress of an attempt. One about a deleted run changes nothing.
    async fn report_progress(&self, key: TaskKey, report: &ProgressReport) -> Result<()>;

    /// The progress of the attempts at a task, oldest attempt first.
    async fn progress(&self, key: TaskKey) -> Result<Vec<Progress>>;
}
