//! How often responses wait for the collector, and what it is sent then.

use chrono::TimeDelta;
use model::Instant;

use super::SPANS_INTERVAL;

/// Metrics are not sent more often: Google's endpoint rejects points of one series that follow each other within seconds.
const MIN_METRICS_INTERVAL: TimeDelta = TimeDelta::seconds(10);

/// After a response that waited in vain, no other one waits for this long.
const PAUSE: TimeDelta = TimeDelta::minutes(1);

/// When what was sent last.
pub(super) struct Pace {
    spans_at: Instant,
    metrics_at: Option<Instant>,
    paused_until: Option<Instant>,
}

/// What to send before a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Due {
    pub(super) spans: bool,
    pub(super) metrics: bool,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        Self { spans_at: now, metrics_at: None, paused_until: None }
    }

    /// What to send before a response: everything if no other request is in progress, else what was not sent for a while. Metrics
    /// are totals: what is not sent now is part of what is sent after the next request, or at the shutdown.
    pub(super) fn before_response(&mut self, is_last: bool, now: Instant) -> Due {
        let is_paused = self.paused_until.is_some_and(|until| now < until);
        if is_paused || !is_last && now < self.spans_at + SPANS_INTERVAL {
            return Due::default();
        }
        self.spans_at = now;
        Due { spans: true, metrics: self.metrics(now) }
    }

    /// Whether metrics may be sent now. Counts them as sent.
    pub(super) fn metrics(&mut self, now: Instant) -> bool {
        let may = self.metrics_at.is_none_or(|at| at + MIN_METRICS_INTERVAL <= now);
        if may {
            self.metrics_at = Some(now);
        }
        may
    }

    /// The collector did not respond in time.
    pub(super) fn pause(&mut self, now: Instant) {
        self.paused_until = Some(now + PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Due = Due { spans: false, metrics: false };
    const SPANS: Due = Due { spans: true, metrics: false };
    const ALL: Due = Due { spans: true, metrics: true };

    fn at(second: i64) -> Instant {
        Instant::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    #[test]
    fn the_last_request_sends_what_there_is_but_metrics_only_every_ten_seconds() {
        let mut pace = Pace::new(at(0));
        for (second, is_last, due) in [
            (1, false, NOTHING),
            (1, true, ALL),
            (2, true, SPANS),
            (6, false, NOTHING),
            (7, false, SPANS),
            (11, true, ALL),
            (20, true, SPANS),
            (21, false, NOTHING),
            (25, false, ALL),
        ] {
            assert_eq!(pace.before_response(is_last, at(second)), due, "second {second}");
        }
    }

    #[test]
    fn metrics_that_were_sent_meanwhile_count() {
        let mut pace = Pace::new(at(0));
        assert!(pace.metrics(at(60)));
        assert_eq!(pace.before_response(true, at(61)), SPANS);
        assert!(!pace.metrics(at(69)) && pace.metrics(at(70)));
    }

    #[test]
    fn after_a_response_that_waited_in_vain_none_waits_for_a_minute() {
        let mut pace = Pace::new(at(0));
        assert_eq!(pace.before_response(true, at(1)), ALL);
        pace.pause(at(3));
        assert_eq!(pace.before_response(true, at(62)), NOTHING);
        assert_eq!(pace.before_response(true, at(63)), ALL);
    }
}
