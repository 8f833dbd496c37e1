//! Lists in pages.

use store::Bounded;

/// One page of a list: what the caller may see of it, and the position after which the next page begins. A page may have
/// fewer items than its limit, or none, and still lead on.
#[derive(Clone, PartialEq, Debug)]
pub struct Listing<T, P> {
    /// The items, in the list's order.
    pub items: Vec<T>,
    /// The last position of this page; none where the list ends here for now.
    pub next: Option<P>,
}

impl<T, P> Listing<T, P> {
    /// The page that these rows make: one more than `limit` was read, to see whether there are more.
    pub(crate) fn new(rows: Vec<T>, limit: u32, position: impl Fn(&T) -> P) -> Self {
        Self::bounded(Bounded { items: rows, cut: false }, limit, position)
    }

    /// As [`Self::new`], of rows that are limited in bytes.
    pub(crate) fn bounded(rows: Bounded<T>, limit: u32, position: impl Fn(&T) -> P) -> Self {
        let Bounded { mut items, cut } = rows;
        let more = cut || items.len() > limit as usize;
        items.truncate(limit as usize);
        let next = items.last().filter(|_| more).map(position);
        Self { items, next }
    }

    /// The same page without the items that do not pass.
    pub(crate) fn only(mut self, passes: impl FnMut(&T) -> bool) -> Self {
        self.items.retain(passes);
        self
    }
}

/// How many rows to read for a page of `limit` items.
pub(crate) fn rows(limit: u32) -> i64 {
    i64::from(limit) + 1
}
