//! The one source of time. Code that decides by time is given a [`Clock`]; nothing here reads one.

use std::ops::RangeInclusive;

use async_trait::async_trait;
use chrono::TimeDelta;

use crate::Instant;

/// The present time, and waiting for a later one.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The present instant, to the microsecond: what the database can hold.
    fn now(&self) -> Instant;

    /// Returns once it is `instant` or later.
    async fn wait_until(&self, instant: Instant);
}

/// The least by which another clock differs from this one, which it does not if its time is that of some instant between a
/// question and its answer: how long the answer takes says nothing about the clocks.
pub fn difference(other: Instant, between: RangeInclusive<Instant>) -> TimeDelta {
    (*between.start() - other).max(other - *between.end()).max(TimeDelta::zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_answer_is_not_a_difference_between_clocks() {
        let at = |seconds| Instant::UNIX_EPOCH + TimeDelta::seconds(seconds);
        for (other, seconds) in [(at(100), 0), (at(130), 0), (at(160), 0), (at(93), 7), (at(169), 9)] {
            assert_eq!(difference(other, at(100)..=at(160)), TimeDelta::seconds(seconds), "{other}");
        }
    }
}
