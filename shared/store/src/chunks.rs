//! Events and log lines are kept in chunks that know the number of their first item.

use crate::Bounded;

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

    /// What was collected; `cut` where chunks were left unread.
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
