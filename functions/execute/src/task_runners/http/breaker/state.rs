//! What a process knows of one server that it calls. Pure: the same calls at the same instants give the same state.

use chrono::TimeDelta;
use engine::breaker::{self, HOST_FAILURES};
use model::{Instant, Opening};

/// The time between two calls to a server after its first response that it is busy.
const FIRST_INTERVAL: TimeDelta = TimeDelta::seconds(1);

/// The maximum time between two calls to a busy server.
const MAX_INTERVAL: TimeDelta = TimeDelta::seconds(60);

/// What is known of one server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Server {
    /// How many calls in a row failed.
    failures: u32,
    /// Set while its breaker is not closed.
    pub(super) open: Option<Opening>,
    /// Whether it is open in this process alone, since the database did not respond when it opened.
    alone: bool,
    /// Set while it is called less often, since it was busy.
    spacing: Option<Spacing>,
    /// Whether it was called since the database was last asked about it.
    pub(super) wanted: bool,
}

/// How often a busy server is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Spacing {
    interval: TimeDelta,
    next_at: Instant,
}

/// What an admitted call is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Admitted {
    /// A call like any other.
    Call,
    /// The call that shows whether the server works again.
    Probe,
}

/// Why a call has to wait, and until when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Blocked {
    Open(Instant),
    Busy(Instant),
}

impl Blocked {
    pub(super) fn until(self) -> Instant {
        match self {
            Self::Open(until) | Self::Busy(until) => until,
        }
    }

    /// The reason, for the log of the attempt that waits.
    pub(super) fn reason(self, server: &str) -> String {
        match self {
            Self::Open(_) => format!("the circuit breaker of {server} is open, since calls to it fail"),
            Self::Busy(_) => format!("{server} is busy and is called less often"),
        }
    }
}

impl Server {
    /// Admits a call, or says why it has to wait.
    pub(super) fn admit(&mut self, now: Instant) -> Result<Admitted, Blocked> {
        if let Some(open) = &mut self.open {
            let taken = breaker::take_probe(open, now);
            return taken.map(|()| Admitted::Probe).map_err(|open| Blocked::Open(open.until));
        }
        if let Some(spacing) = &mut self.spacing {
            if now < spacing.next_at {
                return Err(Blocked::Busy(spacing.next_at));
            }
            spacing.next_at = now + spacing.interval;
        }
        Ok(Admitted::Call)
    }

    /// Takes over what is known of its breaker. One that was closed meanwhile has no failures.
    pub(super) fn learn(&mut self, open: Option<Opening>) {
        if open.is_some() != self.open.is_some() {
            self.failures = 0;
        }
        (self.open, self.alone) = (open, false);
    }

    /// Takes over what the database says of its breaker, which knows nothing of one that opened in this process alone.
    pub(super) fn refresh(&mut self, open: Option<Opening>) {
        if open.is_some() || !self.alone {
            self.learn(open);
        }
    }

    /// Takes over what this process found out alone, while the database did not respond.
    pub(super) fn decide_alone(&mut self, open: Option<Opening>) {
        self.learn(open);
        self.alone = open.is_some();
    }

    /// It responded: earlier failures count no longer, and it is called more often again.
    pub(super) fn responded(&mut self) {
        self.failures = 0;
        let halved = |spacing: Spacing| Spacing { interval: spacing.interval / 2, ..spacing };
        self.spacing = self.spacing.map(halved).filter(|spacing| spacing.interval >= FIRST_INTERVAL);
    }

    /// It failed. Returns whether its breaker opens.
    pub(super) fn failed(&mut self) -> bool {
        if self.open.is_some() {
            return false; // A call that began before the breaker opened.
        }
        self.failures += 1;
        self.failures >= HOST_FAILURES
    }

    /// It is busy, and perhaps asked to be left alone for a while. Returns for how long a caller must leave it alone.
    pub(super) fn slow_down(&mut self, asked: Option<TimeDelta>, now: Instant) -> TimeDelta {
        self.failures = 0;
        let doubled = self.spacing.map_or(FIRST_INTERVAL, |spacing| spacing.interval * 2);
        let wait = asked.unwrap_or(doubled.min(MAX_INTERVAL)).max(FIRST_INTERVAL);
        let interval = wait.min(MAX_INTERVAL);
        // One that asks for an hour is called once a minute, so that the tasks that wait do not all time out.
        self.spacing = Some(Spacing { interval, next_at: now + interval });
        wait
    }

    /// The probe was cut off: another may begin then.
    pub(super) fn give_up_probe(&mut self, at: Instant) {
        if let Some(open) = &mut self.open {
            open.until = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Instant {
        Instant::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    fn seconds(count: i64) -> TimeDelta {
        TimeDelta::seconds(count)
    }

    #[test]
    fn its_breaker_opens_after_enough_failures_in_a_row() {
        let mut server = Server::default();
        for _ in 1..HOST_FAILURES {
            assert!(!server.failed());
        }
        server.responded();
        assert!(!server.failed(), "a response in between resets the count");
        let opens = (1..HOST_FAILURES).map(|_| server.failed());
        assert_eq!(opens.filter(|opens| *opens).count(), 1);
    }

    #[test]
    fn a_busy_server_never_opens_its_breaker() {
        let mut server = Server::default();
        for _ in 0..10 * HOST_FAILURES {
            server.slow_down(None, at(0));
        }
        assert_eq!((server.open, server.failed()), (None, false));
    }

    #[test]
    fn calls_to_a_busy_server_are_spaced_out_and_come_closer_again() {
        let mut server = Server::default();
        assert_eq!(server.slow_down(None, at(0)), seconds(1));
        assert_eq!(server.admit(at(0)), Err(Blocked::Busy(at(1))));
        assert_eq!(server.admit(at(1)), Ok(Admitted::Call));
        assert_eq!(server.admit(at(1)), Err(Blocked::Busy(at(2))), "one call in each interval");
        assert_eq!(server.slow_down(None, at(2)), seconds(2));
        assert_eq!(server.slow_down(None, at(2)), seconds(4));
        assert_eq!(server.admit(at(6)), Ok(Admitted::Call));
        server.responded();
        assert_eq!(server.admit(at(10)), Ok(Admitted::Call));
        assert_eq!(server.admit(at(10)), Err(Blocked::Busy(at(12))));
        server.responded();
        server.responded();
        assert_eq!(server, Server::default());
    }

    #[test]
    fn what_a_busy_server_asks_for_is_honoured() {
        let mut server = Server::default();
        assert_eq!(server.slow_down(Some(seconds(30)), at(0)), seconds(30));
        assert_eq!(server.admit(at(29)), Err(Blocked::Busy(at(30))));
        assert_eq!(server.slow_down(Some(seconds(0)), at(0)), seconds(1));
        assert_eq!(
            server.slow_down(Some(seconds(3_600)), at(0)),
            seconds(3_600),
            "for the attempt that was refused"
        );
        assert_eq!(server.admit(at(59)), Err(Blocked::Busy(at(60))), "others try once a minute");
        for _ in 0..20 {
            server.slow_down(None, at(0));
        }
        assert_eq!(server.slow_down(None, at(0)), MAX_INTERVAL);
    }

    #[test]
    fn what_was_found_out_alone_lasts_until_the_database_knows_better() {
        let mut server = Server::default();
        let open = Opening { since: at(0), until: at(5), pause_seconds: 5, probing: false };
        server.decide_alone(Some(open));
        server.refresh(None);
        assert_eq!(server.open, Some(open), "nobody else knows of it");
        server.refresh(Some(Opening { until: at(9), ..open }));
        server.refresh(None);
        assert_eq!(server, Server::default(), "somebody closed it");
    }

    #[test]
    fn what_others_found_out_counts_here_too() {
        let mut server = Server::default();
        let open = Opening { since: at(0), until: at(5), pause_seconds: 5, probing: false };
        server.failed();
        server.learn(Some(open));
        assert_eq!(server.admit(at(4)), Err(Blocked::Open(at(5))));
        assert_eq!(server.admit(at(5)), Ok(Admitted::Probe));
        server.learn(None);
        assert_eq!((server.admit(at(6)), server), (Ok(Admitted::Call), Server::default()));
    }
}
