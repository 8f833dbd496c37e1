//! Attempts: those that are over, the logs they write and their checkpoints.

use async_trait::async_trait;
use model::{AttemptRecord, TaskKey};

use super::Memory;
use crate::{Attempts, Checkpoint, LogChunk, LogLine, Result, chunks};

#[async_trait]
impl Attempts for Memory {
    async fn attempts(&self, key: TaskKey) -> Result<Vec<AttemptRecord>> {
        let tables = self.shared.tables();
        Ok(tables.attempts.range((key, 0)..=(key, u32::MAX)).map(|(_, attempt)| attempt.clone()).collect())
    }

    async fn log(&self, key: TaskKey, attempt: u32, from: u32, limit: u32) -> Result<Vec<(u32, LogLine)>> {
        let tables = self.shared.tables();
        let rows = tables.logs.range((key, attempt, 0)..=(key, attempt, u32::MAX));
        let rows = rows.map(|((_, _, first), lines)| (i64::from(*first), lines.clone()));
        let lines = chunks::numbered(rows, from.into(), limit);
        Ok(lines.into_iter().map(|(number, line)| (number as u32, line)).collect())
    }

    async fn append_log(&self, chunk: &LogChunk) -> Result<()> {
        let mut tables = self.shared.tables();
        if !chunk.lines.is_empty() {
            tables.logs.entry((chunk.key, chunk.attempt, chunk.first)).or_insert_with(|| chunk.lines.clone());
        }
        Ok(())
    }

    async fn keep_checkpoint(&self, key: TaskKey, checkpoint: &Checkpoint) -> Result<bool> {
        let mut tables = self.shared.tables();
        let later = tables.checkpoints.get(&key).is_some_and(|kept| kept.attempt > checkpoint.attempt);
        if !later {
            tables.checkpoints.insert(key, checkpoint.clone());
        }
        Ok(!later)
    }

    async fn checkpoint(&self, key: TaskKey) -> Result<Option<Checkpoint>> {
        Ok(self.shared.tables().checkpoints.get(&key).cloned())
    }
}
