//! The one rule for a failed batch.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use tracing::warn;

use crate::{Error, Result};

/// Makes a panic an error like any other: a defect in deciding one item must not take down the caller that happens to
/// settle the batch.
pub(crate) async fn catching_panics<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or(Err(Error::Defect))
}

/// A batch, and the parts of it that are still to be settled. Where one item spoils a batch, each half is settled by
/// itself, and so on: the others are not held up for long, and the item at fault is found.
pub(crate) struct Halving<T>(Vec<Vec<T>>);

impl<T> Halving<T> {
    pub(crate) fn of(items: Vec<T>) -> Self {
        Self(vec![items])
    }

    /// The next batch to settle, in the order of the items.
    pub(crate) fn next(&mut self) -> Option<Vec<T>> {
        self.0.pop().filter(|batch| !batch.is_empty())
    }

    /// What to do about a batch that failed: nothing yet, since its halves come next; or, where it cannot be halved,
    /// postpone or reject the returned items. In an outage all fare alike, and halving would only ask again and again.
    pub(crate) fn failed(&mut self, mut batch: Vec<T>, error: &Error) -> Option<Vec<T>> {
        if batch.len() == 1 || error.is_outage() {
            return Some(batch);
        }
        warn!("A batch of {} failed and is settled in two halves: {error}", batch.len());
        let rest = batch.split_off(batch.len() / 2);
        self.0.extend([rest, batch]);
        None
    }
}
