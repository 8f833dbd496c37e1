//! The task that moves an attempt's lines from memory to the store.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use model::{Clock, TaskKey};
use store::{LogChunk, LogLine};

use super::LogSink;

/// The maximum number of lines in a chunk.
const CHUNK: usize = 100;
/// How long a line waits for others; also the pause before a failed chunk is retried.
const FLUSH_INTERVAL: Duration = Duration::from_millis(250);
/// How often a chunk is tried once the log is closing.
const MAX_LAST_TRIES: u32 = 3;

pub(super) struct Writer<S: ?Sized> {
    sink: Arc<S>,
    clock: Arc<dyn Clock>,
    key: TaskKey,
    attempt: u32,
    next: u32,
    lines: mpsc::Receiver<LogLine>,
    closing: CancellationToken,
}

impl<S: LogSink + ?Sized> Writer<S> {
    pub(super) fn new(
        sink: Arc<S>,
        clock: Arc<dyn Clock>,
        key: TaskKey,
        attempt: u32,
        lines: mpsc::Receiver<LogLine>,
        closing: CancellationToken,
    ) -> Self {
        Self { sink, clock, key, attempt, next: 0, lines, closing }
    }

    /// Stores lines until the log ends, or gives up if the log is closing and the store is unavailable.
    pub(super) async fn run(mut self) {
        while let Some(lines) = self.next_chunk().await {
            let chunk = LogChunk { key: self.key, attempt: self.attempt, first: self.next, lines };
            self.next += chunk.lines.len() as u32;
            if !self.deliver(&chunk).await {
                warn!(run.id = %self.key.run, task.index = self.key.task.0, task.attempt = self.attempt,
                    "The log of run {} ends at line {}: the store was unavailable", self.key.run, chunk.first);
                return;
            }
        }
    }

    /// The lines of the next chunk; none at the end of the log.
    async fn next_chunk(&mut self) -> Option<Vec<LogLine>> {
        let mut lines = Vec::new();
        self.receive(&mut lines).await;
        if lines.is_empty() {
            return None;
        }
        let clock = self.clock.clone();
        let mut due = pin!(clock.wait_until(clock.now() + FLUSH_INTERVAL));
        while lines.len() < CHUNK {
            tokio::select! {
                biased;
                received = self.receive(&mut lines) => if received == 0 { break },
                () = &mut due => break,
            }
        }
        Some(lines)
    }

    /// Takes the waiting lines, or waits for one. Returns zero at the end of the log.
    async fn receive(&mut self, lines: &mut Vec<LogLine>) -> usize {
        let room = CHUNK - lines.len();
        if !self.closing.is_cancelled() {
            tokio::select! {
                biased;
                received = self.lines.recv_many(lines, room) => return received,
                () = self.closing.cancelled() => {}
            }
        }
        // Lines sent before the end are still received; new ones are not accepted.
        self.lines.close();
        self.lines.recv_many(lines, room).await
    }

    /// Stores one chunk. Returns false if it gives up on this chunk and all later ones.
    ///
    /// Each try sends the same chunk: one that seemed to fail may have been stored, and the store recognizes a repetition by
    /// its first line.
    async fn deliver(&self, chunk: &LogChunk) -> bool {
        let mut last_tries = 0;
        for tries in 0.. {
            let Err(error) = self.sink.append(chunk).await else { return true };
            if tries == 0 {
                warn!(run.id = %self.key.run, task.index = self.key.task.0, task.attempt = self.attempt,
                    "Lines from {} on of the log of run {} were not stored: {error}", chunk.first, self.key.run);
            }
            if is_permanent(&error) {
                // Retries would never succeed, and would block all later lines.
                return true;
            }
            if self.closing.is_cancelled() {
                last_tries += 1;
                if last_tries == MAX_LAST_TRIES {
                    break;
                }
            } else {
                self.closing
                    .run_until_cancelled(self.clock.wait_until(self.clock.now() + FLUSH_INTERVAL))
                    .await;
            }
        }
        false
    }
}

fn is_permanent(error: &store::Error) -> bool {
    !matches!(error, store::Error::Unavailable(_) | store::Error::Conflict)
}
