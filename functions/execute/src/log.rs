//! The log of one attempt: lines go in one by one and reach the store in chunks.
//!
//! What must hold: a store that is away never fails the task and never makes memory grow without
//! bound; a secret never leaves through here; the log of one attempt has an end.

mod writer;

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use model::{Clock, TaskKey};
use store::{LogChunk, LogLine, Store};

use writer::Writer;

/// Where an attempt's lines are kept: any store.
#[async_trait]
pub trait LogSink: Send + Sync {
    /// Appends lines to the attempt's log. The same chunk again changes nothing.
    async fn append(&self, chunk: &LogChunk) -> store::Result<()>;
}

#[async_trait]
impl<S: Store + ?Sized> LogSink for S {
    async fn append(&self, chunk: &LogChunk) -> store::Result<()> {
        self.append_log(chunk).await
    }
}

/// Where a line came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// The process's standard output.
    Stdout,
    /// The process's standard error.
    Stderr,
    /// Ebbflow itself.
    System,
}

impl Stream {
    /// The name used in rows and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::System => "system",
        }
    }
}

/// How much a line matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Only when looking for a defect.
    Debug,
    /// The normal course.
    Info,
    /// Perhaps a problem.
    Warning,
    /// A problem.
    Error,
}

impl Level {
    /// The name used in rows and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A shorter line within a secret, such as a brace, reveals nothing and would mask too much.
const MIN_MASKED_LENGTH: usize = 8;

/// A handle to the log of one attempt; clones write to the same log.
#[derive(Clone)]
pub struct Log(Arc<Inner>);

struct Inner {
    clock: Arc<dyn Clock>,
    /// The way to the writer. It is there from the first line on: most attempts say nothing.
    lines: OnceLock<mpsc::Sender<LogLine>>,
    write: Box<dyn Fn(mpsc::Receiver<LogLine>) -> BoxFuture<'static, ()> + Send + Sync>,
    written: AtomicUsize,
    secrets: RwLock<Vec<String>>,
    closing: CancellationToken,
    closed: CancellationToken,
    /// Once the last handle is gone, the writer must not wait for a store that is away.
    _close_on_drop: DropGuard,
}

impl Log {
    /// The longest log of one attempt, in bytes; what comes after is cut.
    pub const LIMIT: usize = 10 * 1024 * 1024;

    /// How many lines may wait for the store before their writer must wait, too.
    pub const MAX_WAITING_LINES: usize = 10_000;

    /// Opens the log of an attempt; its lines are numbered from 0.
    pub fn open<S>(sink: Arc<S>, clock: Arc<dyn Clock>, key: TaskKey, attempt: u32) -> Self
    where
        S: LogSink + ?Sized + 'static,
    {
        let (closing, closed) = (CancellationToken::new(), CancellationToken::new());
        let (wall, until) = (clock.clone(), closing.clone());
        let write = move |lines| {
            Writer::new(sink.clone(), wall.clone(), key, attempt, lines, until.clone()).run().boxed()
        };
        Self(Arc::new(Inner {
            clock,
            lines: OnceLock::new(),
            write: Box::new(write),
            written: AtomicUsize::new(0),
            secrets: RwLock::default(),
            closed,
            _close_on_drop: closing.clone().drop_guard(),
            closing,
        }))
    }

    /// Has these values replaced by `***` in every later line. Of a value of several lines, each
    /// line that is long enough to be telling counts as a value: output arrives line by line.
    pub fn mask(&self, secrets: Vec<String>) {
        let lines =
            secrets.iter().flat_map(|secret| secret.lines()).filter(|line| line.len() >= MIN_MASKED_LENGTH);
        let lines: Vec<_> = lines.map(str::to_owned).collect();
        let mut known = self.0.secrets.write().unwrap_or_else(PoisonError::into_inner);
        known.extend(secrets.into_iter().chain(lines).filter(|secret| !secret.is_empty()));
        // A secret inside another must not break the longer one's match.
        known.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    /// Whether there is anything to mask.
    pub(crate) fn has_secrets(&self) -> bool {
        !self.0.secrets.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// How long the longest of what is masked is, in bytes.
    pub(crate) fn longest_secret(&self) -> usize {
        self.0.secrets.read().unwrap_or_else(PoisonError::into_inner).first().map_or(0, String::len)
    }

    /// The text as it may be shown: secrets masked, and without the NUL that databases refuse.
    pub fn clean(&self, text: &str) -> String {
        let mut text = Cow::Borrowed(text);
        for secret in self.0.secrets.read().unwrap_or_else(PoisonError::into_inner).iter() {
            if text.contains(secret.as_str()) {
                text = Cow::Owned(text.replace(secret.as_str(), "***"));
            }
        }
        text.replace('\0', "\u{fffd}")
    }

    /// Writes one line. Waits only while [`Log::MAX_WAITING_LINES`] lines wait for the store.
    pub async fn line(&self, stream: Stream, level: Level, text: &str) {
        let text = self.clean(text);
        match self.place_for(&text) {
            Place::Fits => self.send(stream, level, text).await,
            Place::FirstBeyond => self.send(Stream::System, Level::Warning, cut_notice()).await,
            Place::Beyond => {}
        }
    }

    /// Stores what is left and ends the log; what is written afterwards is dropped. Gives up on a
    /// store that refuses several times in a row.
    pub async fn finish(&self) {
        self.0.closing.cancel();
        if self.0.lines.get().is_some() {
            self.0.closed.cancelled().await;
        }
    }

    fn place_for(&self, text: &str) -> Place {
        let length = text.len() + 1;
        let before = self.0.written.fetch_add(length, Ordering::Relaxed);
        if before + length <= Self::LIMIT {
            Place::Fits
        } else if before <= Self::LIMIT {
            Place::FirstBeyond
        } else {
            Place::Beyond
        }
    }

    async fn send(&self, stream: Stream, level: Level, line: String) {
        let at = self.0.clock.now();
        let line = LogLine { at, stream: stream.name().to_owned(), level: level.name().to_owned(), line };
        // Refused only once the log has ended.
        if !self.0.closing.is_cancelled() {
            let _ = self.0.lines.get_or_init(|| self.begin()).send(line).await;
        }
    }

    /// Has what comes written, by a task of its own.
    fn begin(&self) -> mpsc::Sender<LogLine> {
        let (lines, waiting) = mpsc::channel(Self::MAX_WAITING_LINES);
        let (writing, done) = ((self.0.write)(waiting), self.0.closed.clone().drop_guard());
        tokio::spawn(async move {
            writing.await;
            drop(done);
        });
        lines
    }
}

/// Whether the limit leaves room for a line.
enum Place {
    Fits,
    FirstBeyond,
    Beyond,
}

fn cut_notice() -> String {
    format!("the log was cut here: an attempt may write at most {} MiB", Log::LIMIT / (1024 * 1024))
}

#[cfg(test)]
mod tests;
