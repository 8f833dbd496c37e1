//! Circuit breakers, one per host: after repeated failures a breaker opens and blocks calls for a while, then lets one probe
//! at a time through until one succeeds. Each worker has its own.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use metrics::gauge;
use model::{Clock, Instant, OpenBreaker};
use tracing::{info, warn};

use crate::log::{Level, Log, Stream};

/// How many calls in a row must fail to open a breaker.
const MAX_FAILURES: u32 = 10;

/// How long a breaker blocks calls at first; the time doubles after each failed probe.
const FIRST_PAUSE: TimeDelta = TimeDelta::seconds(5);

/// The maximum time that a breaker blocks calls.
const MAX_PAUSE: TimeDelta = TimeDelta::seconds(60);

/// How often other calls check the result of a probe.
const PROBE_POLL_INTERVAL: TimeDelta = TimeDelta::milliseconds(500);

/// The breakers of all called hosts.
#[derive(Default)]
pub(crate) struct Breakers(Mutex<BTreeMap<String, Breaker>>);

/// The breaker of one host; closed unless `open` is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Breaker {
    /// How many calls in a row failed.
    failures: u32,
    open: Option<Open>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Open {
    since: Instant,
    until: Instant,
    pause: TimeDelta,
    /// Whether a probe is in progress.
    probing: bool,
}

/// What the result of a call tells about the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// The host responded, even if with a refusal or a rate limit.
    Responded,
    /// The host is unreachable or failing.
    Failed,
    /// Nothing: the call was dropped.
    Unknown,
}

impl Breaker {
    /// Admits a call, or returns when to try again.
    fn admit(&mut self, now: Instant) -> Result<(), Instant> {
        match &mut self.open {
            None => Ok(()),
            Some(open) if now < open.until => Err(open.until),
            Some(open) if open.probing => Err(now + PROBE_POLL_INTERVAL),
            Some(open) => {
                open.probing = true;
                Ok(())
            }
        }
    }

    /// Records the outcome of a call.
    fn record(&mut self, outcome: Outcome, now: Instant) {
        match (outcome, &mut self.open) {
            (Outcome::Responded, _) => *self = Self::default(),
            (Outcome::Failed, Some(open)) if open.probing => {
                let pause = MAX_PAUSE.min(open.pause * 2);
                *open = Open { until: now + pause, pause, probing: false, ..*open };
            }
            (Outcome::Failed, None) => {
                self.failures += 1;
                if self.failures >= MAX_FAILURES {
                    let (until, pause) = (now + FIRST_PAUSE, FIRST_PAUSE);
                    self.open = Some(Open { since: now, until, pause, probing: false });
                }
            }
            (Outcome::Unknown, Some(open)) => open.probing = false,
            // A call that started before the breaker opened.
            (Outcome::Failed, Some(_)) | (Outcome::Unknown, None) => {}
        }
    }
}

/// An admitted call. If dropped without an outcome, it was abandoned.
pub(super) struct Call<'b> {
    breakers: &'b Breakers,
    host: String,
    clock: &'b dyn Clock,
    outcome: Outcome,
}

impl Breakers {
    /// Waits until the breaker of a host admits a call. The attempt's log tells about the wait.
    pub(super) async fn admit<'b>(&'b self, host: &str, clock: &'b dyn Clock, log: &Log) -> Call<'b> {
        let mut logged = false;
        loop {
            let admitted = self.lock().entry(host.to_owned()).or_default().admit(clock.now());
            let Err(retry_at) = admitted else { break };
            if !logged {
                let line = format!("waiting: the circuit breaker of {host} is open, since calls to it fail");
                log.line(Stream::System, Level::Warning, &line).await;
                logged = true;
            }
            clock.wait_until(retry_at).await;
        }
        Call { breakers: self, host: host.to_owned(), clock, outcome: Outcome::Unknown }
    }

    /// The open breakers, by host.
    pub(crate) fn open(&self) -> Vec<OpenBreaker> {
        let open = |(host, breaker): (&String, &Breaker)| {
            let Open { since, until, .. } = breaker.open?;
            Some(OpenBreaker { host: host.clone(), since, until })
        };
        self.lock().iter().filter_map(open).collect()
    }

    fn record(&self, host: &str, outcome: Outcome, now: Instant) {
        let mut breakers = self.lock();
        let breaker = breakers.entry(host.to_owned()).or_default();
        let before = breaker.open.is_some();
        breaker.record(outcome, now);
        match (before, breaker.open.is_some()) {
            (false, true) => {
                gauge!("ebbflow_breakers_open").increment(1.0);
                warn!(
                    event = "breaker_opened",
                    "Opened the breaker of {host}: {MAX_FAILURES} calls in a row failed"
                );
            }
            (true, false) => {
                gauge!("ebbflow_breakers_open").decrement(1.0);
                info!("Closed the breaker of {host}: it responds again");
            }
            _ => {}
        }
        if breaker.failures == 0 {
            breakers.remove(host);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Breaker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call<'_> {
    /// Sets the outcome of the call.
    pub(super) fn finish(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.breakers.record(&self.host, self.outcome, self.clock.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Instant {
        Instant::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    fn opened() -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 0..MAX_FAILURES {
            assert_eq!(breaker.admit(at(0)), Ok(()));
            breaker.record(Outcome::Failed, at(0));
        }
        breaker
    }

    #[test]
    fn it_opens_after_enough_failures_in_a_row() {
        let mut breaker = Breaker::default();
        for _ in 1..MAX_FAILURES {
            breaker.record(Outcome::Failed, at(0));
        }
        breaker.record(Outcome::Responded, at(0));
        breaker.record(Outcome::Failed, at(0));
        assert_eq!(breaker.admit(at(0)), Ok(()), "a response in between resets the count");
        assert_eq!(opened().admit(at(1)), Err(at(5)));
    }

    #[test]
    fn one_probe_at_a_time_shows_whether_the_host_is_back() {
        let mut breaker = opened();
        assert_eq!(breaker.admit(at(5)), Ok(()));
        assert_eq!(breaker.admit(at(5)), Err(at(5) + PROBE_POLL_INTERVAL), "others wait for the probe");
        breaker.record(Outcome::Failed, at(6));
        assert_eq!(breaker.admit(at(6)), Err(at(16)), "twice as long");
        assert_eq!(breaker.admit(at(16)), Ok(()));
        breaker.record(Outcome::Responded, at(16));
        assert_eq!(breaker, Breaker::default());
    }

    #[test]
    fn an_abandoned_probe_admits_another() {
        let mut breaker = opened();
        assert_eq!(breaker.admit(at(5)), Ok(()));
        breaker.record(Outcome::Unknown, at(6));
        assert_eq!(breaker.admit(at(6)), Ok(()));
    }

    #[test]
    fn open_breakers_are_listed_with_since_and_until() {
        let breakers = Breakers::default();
        breakers.record("fine.example", Outcome::Failed, at(0));
        for second in 0..i64::from(MAX_FAILURES) {
            breakers.record("away.example", Outcome::Failed, at(second));
        }
        let (since, until) = (at(9), at(14));
        assert_eq!(breakers.open(), [OpenBreaker { host: "away.example".into(), since, until }]);
        breakers.record("away.example", Outcome::Responded, at(15));
        assert_eq!(breakers.open(), []);
    }
}
