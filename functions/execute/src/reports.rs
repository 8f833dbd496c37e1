//! What an attempt reports while it runs: checkpoints, progress and metrics.
//!
//! Invariants: reports are stored at a bounded rate however many there are, and only the newest of each kind; an unavailable
//! store neither fails the task nor makes memory grow; secrets are redacted. An attempt that reports nothing costs nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use model::progress::MAX_METRICS;
use model::{Clock, Done, ProgressReport};
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::warn;

use crate::log::Log;
use crate::sink::{AttemptSink, SinkError};

/// How long reports wait for newer ones before they are stored; also the pause before a failed write is retried.
const INTERVAL: Duration = Duration::from_millis(500);

/// How often the last reports are tried once the attempt has ended.
const MAX_LAST_TRIES: u32 = 5;

/// The pause before such a try, times its number: together about 15 seconds, in which a server can restart.
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// A handle to the reports of one attempt; clones write to the same.
#[derive(Clone)]
pub struct Reports(Arc<Inner>);

struct Inner {
    log: Log,
    writer: Writer,
    /// Set once the writer was started, which is with the first report.
    started: OnceLock<()>,
    closed: CancellationToken,
    /// Once the last handle is dropped, the writer must end.
    _close_on_drop: DropGuard,
}

/// The newest reports that are not stored.
#[derive(Clone, PartialEq, Debug, Default)]
struct Pending {
    checkpoint: Option<Value>,
    done: Option<Done>,
    metrics: BTreeMap<String, f64>,
}

impl Reports {
    /// Opens the reports of an attempt, whose log knows which secrets to redact.
    pub fn open(sink: Arc<dyn AttemptSink>, clock: Arc<dyn Clock>, log: Log, attempt: u32) -> Self {
        let closing = CancellationToken::new();
        let _close_on_drop = closing.clone().drop_guard();
        let (pending, changed) = Default::default();
        let writer = Writer { sink, clock, attempt, pending, changed, closing };
        let (started, closed) = (OnceLock::new(), CancellationToken::new());
        Self(Arc::new(Inner { log, writer, started, closed, _close_on_drop }))
    }

    /// Saves a checkpoint in place of an earlier one.
    pub fn checkpoint(&self, data: Value) {
        let data = self.0.log.redacted_value(data);
        self.change(|pending| pending.checkpoint = Some(data));
    }

    /// Reports the share of the work that is done.
    pub fn progress(&self, done: Done) {
        let message = done.message.map(|message| self.0.log.redacted(&message));
        self.change(|pending| pending.done = Some(Done { message, ..done }));
    }

    /// Reports a value of a metric.
    pub fn metric(&self, name: &str, value: f64) {
        let name = self.0.log.redacted(name);
        self.change(|pending| {
            if pending.metrics.len() < MAX_METRICS || pending.metrics.contains_key(&name) {
                pending.metrics.insert(name, value);
            }
        });
    }

    /// Stores the last reports; later ones are dropped. Gives up if the store fails several times in a row.
    pub async fn finish(&self) {
        self.0.writer.closing.cancel();
        if self.0.started.get().is_some() {
            self.0.closed.cancelled().await;
        }
    }

    fn change(&self, change: impl FnOnce(&mut Pending)) {
        let Inner { writer, started, closed, .. } = &*self.0;
        if writer.closing.is_cancelled() {
            return;
        }
        change(&mut writer.pending());
        writer.changed.notify_one();
        started.get_or_init(|| {
            let (writer, done) = (writer.clone(), closed.clone().drop_guard());
            tokio::spawn(async move {
                writer.run().await;
                drop(done);
            });
        });
    }
}

/// The task that moves reports from memory to the store.
#[derive(Clone)]
struct Writer {
    sink: Arc<dyn AttemptSink>,
    clock: Arc<dyn Clock>,
    attempt: u32,
    pending: Arc<Mutex<Pending>>,
    changed: Arc<Notify>,
    closing: CancellationToken,
}

impl Writer {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(self) {
        let mut last_tries = 0;
        loop {
            self.closing.run_until_cancelled(self.changed.notified()).await;
            let is_last = self.closing.is_cancelled();
            let stored = self.store().await;
            match is_last {
                true if stored => return,
                true => {
                    last_tries += 1;
                    if last_tries == MAX_LAST_TRIES {
                        break;
                    }
                    self.wait(LAST_PAUSE * (last_tries + 1)).await;
                }
                false => {
                    self.closing.run_until_cancelled(self.wait(INTERVAL)).await;
                }
            }
        }
        warn!("The last reports of attempt {} were not stored", self.attempt);
    }

    /// Waits for a duration, by the attempt's clock.
    async fn wait(&self, duration: Duration) {
        self.clock.wait_until(self.clock.now() + duration).await;
    }

    /// Stores what is pending. Returns whether nothing is left to retry.
    async fn store(&self) -> bool {
        let Pending { checkpoint, done, metrics } = std::mem::take(&mut *self.pending());
        let mut failed = Pending::default();
        if let Some(data) = checkpoint {
            // First: what continues the work matters more than what shows it.
            let saved = self.sink.save_checkpoint(self.clock.now(), &data).await;
            failed.checkpoint = Some(data).filter(|_| is_retried("checkpoint", saved));
        }
        if done.is_some() || !metrics.is_empty() {
            let report =
                ProgressReport { done, metrics, ..ProgressReport::new(self.attempt, self.clock.now()) };
            let reported = self.sink.report_progress(&report).await;
            if is_retried("progress", reported) {
                (failed.done, failed.metrics) = (report.done, report.metrics);
            }
        }
        let is_done = failed == Pending::default();
        self.restore(failed);
        is_done
    }

    /// Keeps what could not be stored, unless there is something newer, or too much of it.
    fn restore(&self, failed: Pending) {
        if failed == Pending::default() {
            return;
        }
        let mut pending = self.pending();
        pending.checkpoint = pending.checkpoint.take().or(failed.checkpoint);
        pending.done = pending.done.take().or(failed.done);
        for (name, value) in failed.metrics {
            if pending.metrics.len() < MAX_METRICS {
                pending.metrics.entry(name).or_insert(value);
            }
        }
        self.changed.notify_one();
    }
}

/// Whether a write failed in a way that a retry may fix.
fn is_retried(what: &str, written: Result<(), SinkError>) -> bool {
    match written {
        Ok(()) => false,
        Err(error) => {
            warn!("The {what} of an attempt was not stored: {error}");
            matches!(error, SinkError::Unavailable(_))
        }
    }
}

#[cfg(test)]
mod tests;
