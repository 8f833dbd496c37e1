//! The one task that moves an attempt's lines from memory to the store.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use model::{Clock, TaskKey};
use store::{LogChunk, LogLine};

use super::LogSink;

/// A chunk goes out with this many lines at the latest.
const CHUNK: usize = 100;
/// A line waits for others no longer than this; also the pause before a failed chunk is tried again.
const FLUSH_INTERVAL: Duration = Duration::from_millis(250);
/// How often a chunk is tried once the log is to end.
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

    /// Stores lines until there will be no more, or the log is to end and the store is away.
    pub(super) async fn run(mut self) {
        while let Some(lines) = self.gather().await {
            let chunk = LogChunk { key: self.key, attempt: self.attempt, first: self.next, lines };
            self.next += chunk.lines.len() as u32;
            if !self.deliver(&chunk).await {
                warn!(run.id = %self.key.run, task.index = self.key.task.0, task.attempt = self.attempt,
                    "The log of run {} ends at line {}: the store was away", self.key.run, chunk.first);
                return;
            }
        }
    }

    /// The lines of the next chunk; none once there will be no more.
    async fn gather(&mut self) -> Option<Vec<LogLine>> {
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

    /// Takes the lines that are there, or waits for one. Zero means that there will be no more.
    async fn receive(&mut self, lines: &mut Vec<LogLine>) -> usize {
        let room = CHUNK - lines.len();
        if !self.closing.is_cancelled() {
            tokio::select! {
                biased;
                received = self.lines.recv_many(lines, room) => return received,
                () = self.closing.cancelled() => {}
            }
        }
        // What was sent before the end still comes out; nothing new goes in.
        self.lines.close();
        self.lines.recv_many(lines, room).await
    }

    /// Stores one chunk; false where it was given up on together with everything after it.
    ///
    /// It is the very same chunk at each try: one that seemed to fail may have been stored, and
    /// the store tells a repetition by its first line.
    async fn deliver(&self, chunk: &LogChunk) -> bool {
        let mut last_tries = 0;
        for tries in 0.. {
            let Err(error) = self.sink.append(chunk).await else { return true };
            if tries == 0 {
                warn!(run.id = %self.key.run, task.index = self.key.task.0, task.attempt = self.attempt,
                    "Lines from {} of the log of run {} were not stored: {error}", chunk.first, self.key.run);
            }
            if is_refusal(&error) {
                // It would be refused for ever, and everything behind it would wait as long.
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

fn is_refusal(error: &store::Error) -> bool {
    !matches!(error, store::Error::Unavailable(_) | store::Error::Conflict)
}
