//! Copies a process's output to the log, line by line.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::task::JoinSet;

use super::level;
use crate::log::{Level, Log, Stream};

/// Longer lines are split.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// The readers of a process's standard output and error. Dropping it stops them.
pub(super) struct OutputCapture {
    readers: JoinSet<()>,
    last_error: Arc<Mutex<Option<String>>>,
    log: Log,
}

impl OutputCapture {
    /// Starts to read the standard output and error of a process.
    pub(super) fn of(
        stdout: impl AsyncRead + Send + Unpin + 'static,
        stderr: impl AsyncRead + Send + Unpin + 'static,
        log: &Log,
    ) -> Self {
        let last_error = Arc::<Mutex<_>>::default();
        let mut readers = JoinSet::new();
        let (out, err, last) = (log.clone(), log.clone(), Arc::clone(&last_error));
        readers.spawn(async move {
            let mut lines = Lines::of(stdout, out.clone());
            while !out.is_full()
                && let Some(line) = lines.next().await
            {
                let level = level::of(&line).unwrap_or(Level::Info);
                out.line(Stream::Stdout, level, &line).await;
            }
            lines.discard_rest().await;
        });
        readers.spawn(async move {
            let mut lines = Lines::of(stderr, err.clone());
            while let Some(line) = lines.next().await {
                let level = level::of(&line).unwrap_or(Level::Warning);
                err.line(Stream::Stderr, level, &line).await;
                if !line.trim().is_empty() && !is_advice(&line) {
                    *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
                }
            }
        });
        Self { readers, last_error, log: log.clone() }
    }

    /// Returns once no process holds the pipes and all output is in the log.
    pub(super) async fn end(&mut self) {
        while self.readers.join_next().await.is_some() {}
    }

    /// The last line of the standard error that is neither blank nor advice.
    pub(super) fn last_error(&self) -> Option<String> {
        let last = self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        last.map(|line| self.log.redacted(&line))
    }
}

/// Whether a line says what to do about an error before it, as those of uv and git do.
fn is_advice(line: &str) -> bool {
    line.trim_start().starts_with("hint:")
}

/// Splits bytes into lines; invalid UTF-8 is replaced.
struct Lines<R> {
    source: BufReader<R>,
    bytes: Vec<u8>,
    log: Log,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn of(source: R, log: Log) -> Self {
        Self { source: BufReader::new(source), bytes: Vec::new(), log }
    }

    /// The next line without its line break, which is optional for the last line. A broken pipe is an end, too.
    async fn next(&mut self) -> Option<String> {
        let room = (MAX_LINE_BYTES + 1).saturating_sub(self.bytes.len()) as u64;
        let read = (&mut self.source).take(room).read_until(b'\n', &mut self.bytes).await;
        if self.bytes.is_empty() || (read.is_err() && !self.bytes.ends_with(b"\n")) {
            return None;
        }
        let rest = if self.bytes.len() > MAX_LINE_BYTES && !self.bytes.ends_with(b"\n") {
            self.split_long_line()
        } else {
            Vec::new()
        };
        let line = std::mem::replace(&mut self.bytes, rest);
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Some(String::from_utf8_lossy(line).into_owned())
    }

    /// Reads to the end, so that the program is not blocked, and keeps nothing.
    async fn discard_rest(&mut self) {
        // A broken pipe is an end, too.
        let _ = tokio::io::copy_buf(&mut self.source, &mut tokio::io::sink()).await;
    }

    /// Splits a line that is too long; returns the start of the next one. Secrets are redacted first, and a possible start of
    /// one moves to the next line: half a secret would not be recognized.
    fn split_long_line(&mut self) -> Vec<u8> {
        let mut rest = self.bytes.split_off(last_boundary(&self.bytes));
        let secret = self.log.longest_secret().min(MAX_LINE_BYTES / 2);
        if secret > 0 {
            let mut text = self.log.redacted(&String::from_utf8_lossy(&self.bytes));
            let kept = text.split_off(text.floor_char_boundary(text.len().saturating_sub(secret)));
            rest.splice(0..0, kept.into_bytes());
            self.bytes = text.into_bytes();
        }
        rest
    }
}

/// Where to split a long line without splitting a character.
fn last_boundary(bytes: &[u8]) -> usize {
    let is_boundary = |at: &usize| bytes[*at] & 0b1100_0000 != 0b1000_0000;
    (MAX_LINE_BYTES - 3..=MAX_LINE_BYTES).rev().find(is_boundary).unwrap_or(MAX_LINE_BYTES)
}

#[cfg(test)]
mod tests;
