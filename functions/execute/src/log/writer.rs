//! The task that moves an attempt's lines from memory to the store.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use model::{Clock, RunId};
use store::LogLine;

use crate::job::Job;
use crate::sink::{AttemptSink, SinkError};

/// The maximum number of lines in a chunk.
const CHUNK: usize = 100;
/// How long a line waits for others; also the pause before a failed chunk is retried.
const FLUSH_INTERVAL: Duration = Duration::from_millis(250);
/// How often a chunk is tried once the log is closing.
const MAX_LAST_TRIES: u32 = 5;
/// The pause before such a try, times its number: together about 15 seconds, in which a server can restart.
const LAST_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(super) struct Writer {
    sink: Arc<dyn AttemptSink>,
    clock: Arc<dyn Clock>,
    /// The attempt, for warnings about its log.
    run: RunId,
    task: String,
    attempt: u32,
    closing: CancellationToken,
}

impl Writer {
    pub(super) fn new(
        sink: Arc<dyn AttemptSink>,
        clock: Arc<dyn Clock>,
        job: &Job,
        closing: CancellationToken,
    ) -> Self {
        Self { sink, clock, run: job.run, task: job.task.clone(), attempt: job.attempt, closing }
    }

    /// Stores lines until the log ends, or gives up if the log is closing and the store is unavailable.
    pub(super) async fn run(self, mut waiting: mpsc::Receiver<LogLine>) {
        let mut next = 0;
        while let Some(lines) = self.next_chunk(&mut waiting).await {
            let first = next;
            next += lines.len() as u32;
            if !self.deliver(first, &lines).await {
                warn!(run.id = %self.run, task = self.task, task.attempt = self.attempt,
                    "The log of run {} ends at line {first}: the store was unavailable", self.run);
                return;
            }
        }
    }

    /// The lines of the next chunk; none at the end of the log.
    async fn next_chunk(&self, waiting: &mut mpsc::Receiver<LogLine>) -> Option<Vec<LogLine>> {
        let mut lines = Vec::new();
        self.receive(waiting, &mut lines).await;
        if lines.is_empty() {
            return None;
        }
        let clock = self.clock.clone();
        let mut due = pin!(clock.wait_until(clock.now() + FLUSH_INTERVAL));
        while lines.len() < CHUNK {
            tokio::select! {
                biased;
                received = self.receive(waiting, &mut lines) => if received == 0 { break },
                () = &mut due => break,
            }
        }
        Some(lines)
    }

    /// Takes the waiting lines, or waits for one. Returns zero at the end of the log.
    async fn receive(&self, waiting: &mut mpsc::Receiver<LogLine>, lines: &mut Vec<LogLine>) -> usize {
        let room = CHUNK - lines.len();
        if !self.closing.is_cancelled() {
            tokio::select! {
                biased;
                received = waiting.recv_many(lines, room) => return received,
                () = self.closing.cancelled() => {}
            }
        }
        // Lines sent before the end are still received; new ones are not accepted.
        waiting.close();
        waiting.recv_many(lines, room).await
    }

    /// Stores one chunk. Returns false if it gives up on this chunk and all later ones.
    ///
    /// Each try sends the same chunk: one that seemed to fail may have been stored, and the store recognizes a repetition by
    /// its first line.
    async fn deliver(&self, first: u32, lines: &[LogLine]) -> bool {
        let mut last_tries = 0;
        for tries in 0.. {
            let Err(error) = self.sink.append_log(first, lines).await else { return true };
            if tries == 0 {
                warn!(run.id = %self.run, task = self.task, task.attempt = self.attempt,
                    "Lines from {first} on of the log of run {} were not stored: {error}", self.run);
            }
            if matches!(error, SinkError::Refused(_)) {
                // Retries would never succeed, and would block all later lines.
                return true;
            }
            if self.closing.is_cancelled() {
                last_tries += 1;
                if last_tries == MAX_LAST_TRIES {
                    break;
                }
                self.wait(LAST_PAUSE * (last_tries + 1)).await;
            } else {
                self.closing.run_until_cancelled(self.wait(FLUSH_INTERVAL)).await;
            }
        }
        false
    }

    /// Waits for a duration, by the attempt's clock.
    async fn wait(&self, duration: Duration) {
        self.clock.wait_until(self.clock.now() + duration).await;
    }
}
