//! Circuit breakers, one for each server that a tenant calls: after repeated failures a breaker opens and blocks calls for a
//! while, then lets one probe at a time through until one succeeds. Each worker has its own.
//!
//! Invariant: the calls of one tenant never open a breaker of another, nor the failures of one port that of another.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use metrics::gauge;
use model::{Clock, Instant, OpenBreaker, TenantId};
use reqwest::Url;
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

/// The maximum number of breakers. Beyond it, closed ones are forgotten, with the failures that they have counted.
const MAX_BREAKERS: usize = 10_000;

/// The breakers of all called servers.
#[derive(Default)]
pub(crate) struct Breakers(Mutex<BTreeMap<Target, Breaker>>);

/// A server that a tenant calls.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Target {
    tenant: TenantId,
    host: String,
    port: u16,
}

impl Target {
    /// The server that a tenant's request goes to.
    pub(super) fn of(tenant: TenantId, url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
        Self { tenant, host, port: url.port_or_known_default().unwrap_or_default() }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The breaker of one target; closed unless `open` is set.
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
    target: Target,
    clock: &'b dyn Clock,
    outcome: Outcome,
}

impl Breakers {
    /// Waits until the breaker of a target admits a call. The attempt's log tells about the wait.
    pub(super) async fn admit<'b>(&'b self, target: Target, clock: &'b dyn Clock, log: &Log) -> Call<'b> {
        let mut logged = false;
        loop {
            let known = self.lock().get_mut(&target).map(|breaker| breaker.admit(clock.now()));
            let admitted = known.unwrap_or(Ok(()));
            let Err(retry_at) = admitted else { break };
            if !logged {
                let line =
                    format!("waiting: the circuit breaker of {target} is open, since calls to it fail");
                log.line(Stream::System, Level::Warning, &line).await;
                logged = true;
            }
            clock.wait_until(retry_at).await;
        }
        Call { breakers: self, target, clock, outcome: Outcome::Unknown }
    }

    /// The open breakers, by tenant, host and port.
    pub(crate) fn open(&self) -> Vec<OpenBreaker> {
        let open = |(target, breaker): (&Target, &Breaker)| {
            let Open { since, until, .. } = breaker.open?;
            Some(OpenBreaker { host: target.to_string(), since, until })
        };
        self.lock().iter().filter_map(open).collect()
    }

    fn record(&self, target: &Target, outcome: Outcome, now: Instant) {
        let mut breakers = self.lock();
        if breakers.len() >= MAX_BREAKERS {
            breakers.retain(|_, breaker| breaker.open.is_some());
        }
        let breaker = breakers.entry(target.clone()).or_default();
        let before = breaker.open.is_some();
        breaker.record(outcome, now);
        match (before, breaker.open.is_some()) {
            (false, true) => {
                gauge!("ebbflow_breakers_open").increment(1.0);
                warn!(
                    event = "breaker_opened",
                    "Opened the breaker of {target} for tenant {}: {MAX_FAILURES} calls in a row failed",
                    target.tenant.0
                );
            }
            (true, false) => {
                gauge!("ebbflow_breakers_open").decrement(1.0);
                info!("Closed the breaker of {target} for tenant {}: it responds again", target.tenant.0);
            }
            _ => {}
        }
        if breaker.failures == 0 {
            breakers.remove(target);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Target, Breaker>> {
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
        self.breakers.record(&self.target, self.outcome, self.clock.now());
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

    fn target(tenant: TenantId, url: &str) -> Target {
        Target::of(tenant, &Url::parse(url).unwrap())
    }

    /// Lets enough calls fail to open the breaker of a target.
    fn fail(breakers: &Breakers, target: &Target) {
        for second in 0..i64::from(MAX_FAILURES) {
            breakers.record(target, Outcome::Failed, at(second));
        }
    }

    #[test]
    fn open_breakers_are_listed_with_since_and_until() {
        let breakers = Breakers::default();
        let away = target(TenantId::DEFAULT, "https://away.example/x");
        breakers.record(&target(TenantId::DEFAULT, "http://fine.example"), Outcome::Failed, at(0));
        fail(&breakers, &away);
        let (since, until) = (at(9), at(14));
        assert_eq!(breakers.open(), [OpenBreaker { host: "away.example:443".into(), since, until }]);
        breakers.record(&away, Outcome::Responded, at(15));
        assert_eq!(breakers.open(), []);
    }

    #[test]
    fn a_breaker_blocks_only_one_port_and_only_one_tenant() {
        let breakers = Breakers::default();
        let (acme, beta) = (TenantId::DEFAULT, TenantId(7));
        fail(&breakers, &target(acme, "http://api.example:81/x"));
        let is_blocked = |target: &Target| {
            let known = breakers.lock().get_mut(target).map(|breaker| breaker.admit(at(10)).is_err());
            known.unwrap_or_default()
        };
        assert!(is_blocked(&target(acme, "http://API.example.:81/y")), "one server, by any spelling");
        for other in [target(acme, "http://api.example/x"), target(beta, "http://api.example:81/x")] {
            assert!(!is_blocked(&other), "{other:?}");
        }
    }

    #[test]
    fn the_number_of_breakers_is_limited() {
        let breakers = Breakers::default();
        let away = target(TenantId::DEFAULT, "http://away.example");
        fail(&breakers, &away);
        for port in 1..=20_000 {
            let target = target(TenantId::DEFAULT, &format!("http://many.example:{port}"));
            breakers.record(&target, Outcome::Failed, at(0));
        }
        assert!(breakers.lock().len() <= MAX_BREAKERS);
        assert_eq!(breakers.open().len(), 1, "an open one stays");
    }
}
