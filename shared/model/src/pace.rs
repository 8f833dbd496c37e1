//! How fast something goes, from three small numbers.

use crate::Instant;

const MINUTE: i64 = 60_000;

/// How many came in the minute in which the last one did, and in the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pace {
    minute: u32,
    count: u32,
    before: u32,
}

impl Pace {
    /// One more came. A clock that is behind counts as the one that was ahead.
    pub fn count(&mut self, now: Instant) {
        *self = self.at(minute(now));
        self.count = self.count.saturating_add(1);
    }

    /// How many come in a minute: of the minute before this one, as much as lies within the last sixty seconds.
    pub fn per_minute(&self, now: Instant) -> u32 {
        let then = self.at(minute(now));
        let left = MINUTE - now.timestamp_millis().rem_euclid(MINUTE);
        let before = i64::from(then.before) * left / MINUTE;
        u32::try_from(before).unwrap_or(u32::MAX).saturating_add(then.count)
    }

    /// The same, seen from that minute.
    fn at(self, minute: u32) -> Self {
        match minute.saturating_sub(self.minute) {
            0 => self,
            1 => Self { minute, count: 0, before: self.count },
            _ => Self { minute, count: 0, before: 0 },
        }
    }
}

fn minute(now: Instant) -> u32 {
    u32::try_from(now.timestamp_millis().div_euclid(MINUTE)).unwrap_or_default()
}

impl From<Pace> for [u32; 3] {
    fn from(pace: Pace) -> Self {
        [pace.minute, pace.count, pace.before]
    }
}

impl From<[u32; 3]> for Pace {
    fn from([minute, count, before]: [u32; 3]) -> Self {
        Self { minute, count, before }
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};

    use super::*;

    #[test]
    fn a_pace_is_that_of_the_last_sixty_seconds() {
        let begin = DateTime::from_timestamp(6_000_000, 0).unwrap();
        let after = |seconds| begin + TimeDelta::seconds(seconds);
        let mut pace = Pace::default();
        assert_eq!(pace.per_minute(begin), 0);
        (0..60).for_each(|second| pace.count(after(second)));
        assert_eq!(pace.per_minute(after(59)), 60);
        assert_eq!(pace.per_minute(after(60)), 60);
        assert_eq!(pace.per_minute(after(90)), 30, "half of that minute is longer ago");
        (60..90).for_each(|second| pace.count(after(second)));
        assert_eq!(pace.per_minute(after(90)), 60);
        assert_eq!(pace.per_minute(after(180)), 0, "and none of the one before");
        pace.count(after(80));
        assert_eq!(pace.per_minute(after(90)), 61, "a clock that is behind loses nothing");
    }
}
