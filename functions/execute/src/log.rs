//! The log of one attempt: written line by line, stored in chunks.
//!
//! Invariants: an unavailable store neither fails the task nor makes memory grow without bound; secrets are redacted; the
//! log of an attempt is limited in bytes and in lines, and what exceeds the limit costs nothing.

mod writer;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use futures::FutureExt;
use futures::future::BoxFuture;
use host::secrets::Redactor;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use model::Clock;
use store::LogLine;

use crate::job::Job;
use crate::reports::Reports;
use crate::sink::AttemptSink;
use writer::Writer;

/// The source of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// The process's standard output.
    Stdout,
    /// The process's standard error.
    Stderr,
    /// Ebbflow itself, about the attempt.
    System,
}

impl Stream {
    /// The name in rows and responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::System => "system",
        }
    }
}

/// The severity of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Details for debugging a task.
    Debug,
    /// What happens in normal operation.
    Info,
    /// Something that may be a problem.
    Warning,
    /// Why the attempt failed or may fail.
    Error,
}

impl Level {
    /// The name in rows and responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Shorter lines of a secret, such as a brace, reveal nothing and would match too much.
const MIN_REDACTED_LENGTH: usize = 8;

/// A handle to the log of one attempt; clones write to the same log.
#[derive(Clone)]
pub struct Log(Arc<Inner>);

struct Inner {
    sink: Arc<dyn AttemptSink>,
    clock: Arc<dyn Clock>,
    attempt: u32,
    /// The channel to the writer, which starts with the first line: most attempts log nothing.
    lines: OnceLock<mpsc::Sender<LogLine>>,
    write: Box<dyn Fn(mpsc::Receiver<LogLine>) -> BoxFuture<'static, ()> + Send + Sync>,
    written: Written,
    redactor: RwLock<Redactor>,
    closing: CancellationToken,
    closed: CancellationToken,
    /// Once the last handle is dropped, the writer must not wait for an unavailable store.
    _close_on_drop: DropGuard,
}

impl Log {
    /// The maximum size of the log of one attempt, in bytes; further lines are dropped.
    pub const MAX_BYTES: usize = store::MAX_LOG_BYTES;

    /// The maximum number of lines in the log of one attempt; further lines are dropped.
    pub const MAX_LINES: usize = store::MAX_LOG_LINES;

    /// The maximum number of lines that wait for the store; then writing a line waits, too.
    pub const MAX_WAITING_LINES: usize = 10_000;

    /// Opens the log of an attempt. Lines are numbered from 0.
    pub fn open(sink: Arc<dyn AttemptSink>, clock: Arc<dyn Clock>, job: &Job) -> Self {
        let (closing, closed) = (CancellationToken::new(), CancellationToken::new());
        let writer = Writer::new(sink.clone(), clock.clone(), job, closing.clone());
        let write = move |lines| writer.clone().run(lines).boxed();
        Self(Arc::new(Inner {
            sink,
            clock,
            attempt: job.attempt,
            lines: OnceLock::new(),
            write: Box::new(write),
            written: Written::default(),
            redactor: RwLock::default(),
            closed,
            _close_on_drop: closing.clone().drop_guard(),
            closing,
        }))
    }

    /// The checkpoints, progress and metrics of the same attempt, which go where its lines go.
    pub(crate) fn reports(&self) -> Reports {
        let Inner { sink, clock, attempt, .. } = &*self.0;
        Reports::open(sink.clone(), clock.clone(), self.clone(), *attempt)
    }

    /// Redacts these secrets from now on. Output arrives line by line, so each long line of a secret is redacted, too.
    pub fn redact(&self, secrets: impl IntoIterator<Item = String>) {
        let secrets: Vec<String> = secrets.into_iter().collect();
        let lines =
            secrets.iter().flat_map(|secret| secret.lines()).filter(|line| line.len() >= MIN_REDACTED_LENGTH);
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        let mut redactor = self.0.redactor.write().unwrap_or_else(PoisonError::into_inner);
        redactor.add(secrets.into_iter().chain(lines));
    }

    fn redactor(&self) -> RwLockReadGuard<'_, Redactor> {
        self.0.redactor.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The length of the longest secret, in bytes.
    pub(crate) fn longest_secret(&self) -> usize {
        self.redactor().longest()
    }

    /// The text without secrets, and without the NUL that databases reject.
    pub fn redacted(&self, text: &str) -> String {
        self.redactor().text(text).replace('\0', "\u{fffd}")
    }

    /// The value without secrets.
    pub(crate) fn redacted_value(&self, value: Value) -> Value {
        self.redactor().value(value)
    }

    /// Whether a line did not fit: then all later ones are dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.0.written.is_full()
    }

    /// Writes one line. Waits only while [`Log::MAX_WAITING_LINES`] lines wait for the store.
    pub async fn line(&self, stream: Stream, level: Level, text: &str) {
        if self.is_full() {
            return;
        }
        let text = self.redacted(text);
        match self.0.written.reserve(&text) {
            Space::Fits => self.send(stream, level, text).await,
            Space::FirstBeyond => self.send(Stream::System, Level::Warning, store::log_cut()).await,
            Space::Beyond => {}
        }
    }

    /// Stores the remaining lines and ends the log; later lines are dropped. Gives up if the store fails several times in a
    /// row.
    pub async fn finish(&self) {
        self.0.closing.cancel();
        if self.0.lines.get().is_some() {
            self.0.closed.cancelled().await;
        }
    }

    async fn send(&self, stream: Stream, level: Level, line: String) {
        let at = self.0.clock.now();
        let line = LogLine { at, stream: stream.name().to_owned(), level: level.name().to_owned(), line };
        // Sending fails only once the log has ended.
        if !self.0.closing.is_cancelled() {
            let _ = self.0.lines.get_or_init(|| self.start_writer()).send(line).await;
        }
    }

    /// Starts the task that stores lines.
    fn start_writer(&self) -> mpsc::Sender<LogLine> {
        let (lines, waiting) = mpsc::channel(Self::MAX_WAITING_LINES);
        let (writing, done) = ((self.0.write)(waiting), self.0.closed.clone().drop_guard());
        tokio::spawn(async move {
            writing.await;
            drop(done);
        });
        lines
    }
}

/// How much an attempt has written.
#[derive(Default)]
struct Written(Mutex<Size>);

#[derive(Clone, Copy, Default)]
struct Size {
    bytes: usize,
    lines: usize,
    /// Whether a line did not fit: then no later one does.
    is_full: bool,
}

/// Whether the limits leave space for a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Space {
    Fits,
    FirstBeyond,
    Beyond,
}

impl Written {
    fn is_full(&self) -> bool {
        self.lock().is_full
    }

    fn reserve(&self, text: &str) -> Space {
        let mut size = self.lock();
        let (bytes, lines) = (size.bytes + text.len() + 1, size.lines + 1);
        if size.is_full {
            return Space::Beyond;
        }
        if bytes > Log::MAX_BYTES || lines > Log::MAX_LINES {
            size.is_full = true;
            return Space::FirstBeyond;
        }
        *size = Size { bytes, lines, is_full: false };
        Space::Fits
    }

    fn lock(&self) -> MutexGuard<'_, Size> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
