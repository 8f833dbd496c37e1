//! A circuit breaker per host: after repeated failures it blocks calls for a while, then allows one at a time until one
//! succeeds. Each worker has its own.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use metrics::gauge;
use model::{Clock, Instant, OpenBreaker};
use tracing::{info, warn};

use crate::log::{Level, Log, Stream};

/// How many calls in a row must fail to open a breaker.
const MAX_FAILURES: u32 = 10;

/// How long calls are blocked at first; twice as long after each failed probe.
const FIRST_PAUSE: TimeDelta = TimeDelta::seconds(5);

/// How long calls are blocked at most.
const MAX_PAUSE: TimeDelta = TimeDelta::seconds(60);

/// While a probe is in progress, how often other calls check its result.
const PROBE_POLL_INTERVAL: TimeDelta = TimeDelta::milliseconds(500);

/// The breakers of all hosts that were called.
#[derive(Default)]
pub(crate) struct Breakers(Mutex<BTreeMap<String, Breaker>>);

/// Of one host: closed while calls are made as they come.
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

/// How a call ended, as far as it tells about the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// It responded. A refusal or a rate limit is a response.
    Answered,
    /// It is unreachable or broken.
    Failed,
    /// The call was dropped.
    Unknown,
}

impl Breaker {
    /// Whether a call may be made now; else when to ask again.
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

    /// Records how a call ended.
    fn note(&mut self, end: End, now: Instant) {
        match (end, &mut self.open) {
            (End::Answered, _) => *self = Self::default(),
            (End::Failed, Some(open)) if open.probing => {
                let pause = MAX_PAUSE.min(open.pause * 2);
                *open = Open { until: now + pause, pause, probing: false, ..*open };
            }
            (End::Failed, None) => {
                self.failures += 1;
                if self.failures >= MAX_FAILURES {
                    let (until, pause) = (now + FIRST_PAUSE, FIRST_PAUSE);
                    self.open = Some(Open { since: now, until, pause, probing: false });
                }
            }
            (End::Unknown, Some(open)) => open.probing = false,
            // A call from before it opened.
            (End::Failed, Some(_)) | (End::Unknown, None) => {}
        }
    }
}

/// An admitted call. If dropped without a result, it was abandoned.
pub(super) struct Call<'b> {
    breakers: &'b Breakers,
    host: String,
    clock: &'b dyn Clock,
    end: End,
}

impl Breakers {
    /// Waits until a call to that host may be made. If that takes a while, the attempt's log says so.
    pub(super) async fn admit<'b>(&'b self, host: &str, clock: &'b dyn Clock, log: &Log) -> Call<'b> {
        let mut told = false;
        loop {
            let asked = self.lock().entry(host.to_owned()).or_default().admit(clock.now());
            let Err(again) = asked else { break };
            if !told {
                let line = format!("waits: calls to {host} fail, and none are made for a while");
                log.line(Stream::System, Level::Warning, &line).await;
                told = true;
            }
            clock.wait_until(again).await;
        }
        Call { breakers: self, host: host.to_owned(), clock, end: End::Unknown }
    }

    /// Those that are open, by host.
    pub(crate) fn open(&self) -> Vec<OpenBreaker> {
        let told = |(host, breaker): (&String, &Breaker)| {
            let Open { since, until, .. } = breaker.open?;
            Some(OpenBreaker { host: host.clone(), since, until })
        };
        self.lock().iter().filter_map(told).collect()
    }

    fn note(&self, host: &str, end: End, now: Instant) {
        let mut breakers = self.lock();
        let breaker = breakers.entry(host.to_owned()).or_default();
        let before = breaker.open.is_some();
        breaker.note(end, now);
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
                info!("Closed the breaker of {host}: it answers again");
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
    /// Says how it ended.
    pub(super) fn ended(mut self, end: End) {
        self.end = end;
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.breakers.note(&self.host, self.end, self.clock.now());
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
            breaker.note(End::Failed, at(0));
        }
        breaker
    }

    #[test]
    fn it_opens_after_enough_failures_in_a_row() {
        let mut breaker = Breaker::default();
        for _ in 1..MAX_FAILURES {
            breaker.note(End::Failed, at(0));
        }
        breaker.note(End::Answered, at(0));
        breaker.note(End::Failed, at(0));
        assert_eq!(breaker.admit(at(0)), Ok(()), "an answer in between begins the count anew");
        assert_eq!(opened().admit(at(1)), Err(at(5)));
    }

    #[test]
    fn one_probe_at_a_time_shows_whether_the_host_is_back() {
        let mut breaker = opened();
        assert_eq!(breaker.admit(at(5)), Ok(()));
        assert_eq!(breaker.admit(at(5)), Err(at(5) + PROBE_POLL_INTERVAL), "others wait for the probe");
        breaker.note(End::Failed, at(6));
        assert_eq!(breaker.admit(at(6)), Err(at(16)), "twice as long");
        assert_eq!(breaker.admit(at(16)), Ok(()));
        breaker.note(End::Answered, at(16));
        assert_eq!(breaker, Breaker::default());
    }

    #[test]
    fn a_probe_that_is_given_up_lets_another_go() {
        let mut breaker = opened();
        assert_eq!(breaker.admit(at(5)), Ok(()));
        breaker.note(End::Unknown, at(6));
        assert_eq!(breaker.admit(at(6)), Ok(()));
    }

    #[test]
    fn those_that_are_open_are_told_with_since_and_until_when() {
        let breakers = Breakers::default();
        breakers.note("fine.example", End::Failed, at(0));
        for second in 0..i64::from(MAX_FAILURES) {
            breakers.note("away.example", End::Failed, at(second));
        }
        let (since, until) = (at(9), at(14));
        assert_eq!(breakers.open(), [OpenBreaker { host: "away.example".into(), since, until }]);
        breakers.note("away.example", End::Answered, at(15));
        assert_eq!(breakers.open(), []);
    }
}
