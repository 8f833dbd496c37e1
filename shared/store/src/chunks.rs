//! Events and log lines are kept in chunks that know the number of their first item.

use std::borrow::Cow;

use crate::attempts::{MAX_LOG_BYTES, MAX_LOG_LINES};
use crate::{Bounded, LogChunk, LogLine};

/// A log is full beyond this, in bytes. The line that says where it was cut still fits in.
const FULL: i64 = MAX_LOG_BYTES as i64 + 1024;

/// The last chunk of an attempt's log.
#[derive(Clone, Copy)]
pub(crate) struct LogEnd {
    /// The number of its first line.
    pub(crate) first: u32,
    /// The size of the log up to here, in bytes.
    pub(crate) bytes: i64,
}

/// The lines of a chunk that are kept, and the size of the log with them. None of a chunk that begins before the last one, since
/// it was received before, and none after the log was cut.
pub(crate) fn kept(chunk: &LogChunk, last: Option<LogEnd>) -> Option<(Cow<'_, [LogLine]>, i64)> {
    let mut bytes = last.map_or(0, |last| last.bytes);
    if chunk.lines.is_empty() || bytes > FULL || last.is_some_and(|last| chunk.first <= last.first) {
        return None;
    }
    for (index, line) in chunk.lines.iter().enumerate() {
        let with = bytes + line.line.len() as i64 + 1;
        if with > FULL || chunk.first as usize + index > MAX_LOG_LINES {
            let mut lines = chunk.lines[..index].to_vec();
            lines.push(cut_here(line));
            return Some((lines.into(), FULL + 1));
        }
        bytes = with;
    }
    Some((chunk.lines.as_slice().into(), bytes))
}

/// The last line of a log that is full, in place of the first that did not fit in.
fn cut_here(line: &LogLine) -> LogLine {
    let (stream, level) = ("system".to_owned(), "warning".to_owned());
    LogLine { at: line.at, stream, level, line: log_cut() }
}

/// What the last line of a log says that was cut.
pub fn log_cut() -> String {
    let mebibytes = MAX_LOG_BYTES / (1024 * 1024);
    format!("the log was cut here: an attempt may write at most {mebibytes} MiB and {MAX_LOG_LINES} lines")
}

/// Items of chunks that are read one after the other: each number once, though chunks may overlap.
pub(crate) struct Numbered<T> {
    items: Vec<(i64, T)>,
    next: i64,
    limit: usize,
    /// The bytes that are left until no more chunks are read.
    bytes_left: usize,
    /// Whether a chunk had more items than fit.
    cut: bool,
}

impl<T> Numbered<T> {
    /// Collects items with a number of `from` or higher: at most `limit`, and the chunks that begin within `max_bytes`.
    pub(crate) fn new(from: i64, limit: u32, max_bytes: usize) -> Self {
        Self { items: Vec::new(), next: from, limit: limit as usize, bytes_left: max_bytes, cut: false }
    }

    /// Whether no more chunks are needed.
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= self.limit || self.bytes_left == 0 && !self.items.is_empty()
    }

    /// Adds a chunk whose first item has the number `first`.
    pub(crate) fn add(&mut self, first: i64, chunk: Vec<T>, bytes: usize) {
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        for (number, item) in (first..).zip(chunk) {
            if number < self.next {
                continue;
            }
            if self.items.len() >= self.limit {
                self.cut = true;
                return;
            }
            self.items.push((number, item));
            self.next = number + 1;
        }
    }

    /// Returns the collected items; `cut` if chunks were left unread.
    pub(crate) fn into_bounded(self, cut: bool) -> Bounded<(i64, T)> {
        Bounded { items: self.items, cut: cut || self.cut }
    }
}

/// Items with a number of `from` or higher, each number once, though chunks may overlap.
pub(crate) fn numbered<T>(
    chunks: impl IntoIterator<Item = (i64, Vec<T>)>,
    from: i64,
    limit: u32,
) -> Vec<(i64, T)> {
    let mut numbered = Numbered::new(from, limit, usize::MAX);
    for (first, chunk) in chunks {
        numbered.add(first, chunk, 0);
    }
    numbered.items
}
