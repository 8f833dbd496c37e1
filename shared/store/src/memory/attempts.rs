//! How far attempts have come.

use async_trait::async_trait;
use model::TaskKey;

use super::Memory;
use crate::{Attempts, Checkpoint, LogChunk, Result};

#[async_trait]
impl Attempts for Memory {
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
