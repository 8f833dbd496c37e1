//! Attempts: those that are over, the logs they write and their checkpoints.

use async_trait::async_trait;
use model::{AttemptRecord, Progress, ProgressReport, TaskKey};

use super::Memory;
use crate::chunks::{self, LogEnd};
use crate::{Attempts, Checkpoint, LogChunk, LogLine, Result};

#[async_trait]
impl Attempts for Memory {
    async fn attempts(&self, key: TaskKey) -> Result<Vec<AttemptRecord>> {
        let tables = self.shared.tables();
        Ok(tables.attempts.range((key, 0)..=(key, u32::MAX)).map(|(_, attempt)| attempt.clone()).collect())
    }

    async fn log(&self, key: TaskKey, attempt: u32, from: u32, limit: u32) -> Result<Vec<(u32, LogLine)>> {
        let tables = self.shared.tables();
        let rows = tables.logs.range((key, attempt, 0)..=(key, attempt, u32::MAX));
        let rows = rows.map(|((_, _, first), (lines, _))| (i64::from(*first), lines.clone()));
        let lines = chunks::numbered(rows, from.into(), limit);
        Ok(lines.into_iter().map(|(number, line)| (number as u32, line)).collect())
    }

    async fn append_log(&self, chunk: &LogChunk) -> Result<()> {
        let mut tables = self.shared.tables();
        let mut all = tables.logs.range((chunk.key, chunk.attempt, 0)..=(chunk.key, chunk.attempt, u32::MAX));
        let last = all.next_back().filter(|_| chunk.first > 0);
        let last = last.map(|((_, _, first), (_, bytes))| LogEnd { first: *first, bytes: *bytes });
        if let Some((lines, bytes)) = chunks::kept(chunk, last) {
            let row = (chunk.key, chunk.attempt, chunk.first);
            tables.logs.entry(row).or_insert_with(|| (lines.into_owned(), bytes));
        }
        Ok(())
    }

    async fn keep_checkpoint(&self, key: TaskKey, checkpoint: &Checkpoint) -> Result<bool> {
        let later = {
            let mut tables = self.shared.tables();
            let later = tables.checkpoints.get(&key).is_some_and(|kept| kept.attempt > checkpoint.attempt);
            if !later {
                tables.checkpoints.insert(key, checkpoint.clone());
            }
            later
        };
        if let Some(report) = checkpoint.phase().filter(|_| !later) {
            self.report_progress(key, &report).await?;
        }
        Ok(!later)
    }

    async fn checkpoint(&self, key: TaskKey) -> Result<Option<Checkpoint>> {
        let tables = self.shared.tables();
        let voided = tables.tasks.get(&key).map_or(0, |task| task.voided);
        Ok(tables.checkpoints.get(&key).filter(|checkpoint| checkpoint.attempt > voided).cloned())
    }

    async fn report_progress(&self, key: TaskKey, report: &ProgressReport) -> Result<()> {
        let mut tables = self.shared.tables();
        if tables.runs.contains_key(&key.run) {
            let new = || Progress::new(report.attempt, report.at);
            tables.progress.entry((key, report.attempt)).or_insert_with(new).apply(report);
        }
        Ok(())
    }

    async fn progress(&self, key: TaskKey) -> Result<Vec<Progress>> {
        let tables = self.shared.tables();
        Ok(tables.progress.range((key, 0)..=(key, u32::MAX)).map(|(_, progress)| progress.clone()).collect())
    }
}
