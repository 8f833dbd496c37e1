//! Attempts that are over, and what attempts report while they run.

use async_trait::async_trait;
use model::{AttemptRecord, Instant, TaskKey};
use serde_json::Value;

use crate::{LogChunk, LogLine, Result};

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

/// Attempts that are over, and what attempts report while they run.
#[async_trait]
pub trait Attempts: Send + Sync {
    /// The attempts of a task that are over, oldest first.
    async fn attempts(&self, key: TaskKey) -> Result<Vec<AttemptRecord>>;

    /// Lines of an attempt's log with a number of `from` or higher, oldest first, with their numbers.
    async fn log(&self, key: TaskKey, attempt: u32, from: u32, limit: u32) -> Result<Vec<(u32, LogLine)>>;

    /// Appends lines to an attempt's log. Lines are numbered from 0; the same first line again changes nothing.
    async fn append_log(&self, chunk: &LogChunk) -> Result<()>;

    /// Keeps how far an attempt at a task has come, in place of what was kept before; what a later attempt said stays.
    /// Returns whether it was kept.
    async fn keep_checkpoint(&self, key: TaskKey, checkpoint: &Checkpoint) -> Result<bool>;

    /// How far the attempts at a task have come, if one said so.
    async fn checkpoint(&self, key: TaskKey) -> Result<Option<Checkpoint>>;
}
