//! The instants of a schedule, for people: the next ones, and those that were missed.

use calendar::{Calendar, Drift, GRACE, wall};
use chrono::TimeDelta;
use model::{Instant, Schedule};

/// The most instants that are counted as missed.
const MAX_MISSED: usize = 1_000;

/// The instants of one schedule.
pub struct SchedulePreview {
    calendar: Calendar,
}

/// An instant of a schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DueAt {
    /// The instant in universal time.
    pub at: Instant,
    /// The local time in the schedule's time zone, with the zone's abbreviation.
    pub local: String,
}

/// Instants that are past and have no run yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missed {
    /// How many there are, at most 1,000.
    pub count: usize,
    /// Whether there are more than were counted.
    pub more: bool,
    /// The earliest of these instants.
    pub first: Instant,
    /// The latest of these instants.
    pub latest: Instant,
    /// The first few of these instants.
    pub dates: Vec<DueAt>,
}

/// How late the runs of a schedule started, without runs of missed instants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriftSummary {
    /// How many runs were counted.
    pub runs: i64,
    /// The median in milliseconds; none if nothing was counted or it exceeds a minute.
    pub p50_ms: Option<i64>,
    /// The 99th percentile in milliseconds.
    pub p99_ms: Option<i64>,
    /// The maximum in milliseconds.
    pub max_ms: Option<i64>,
}

impl SchedulePreview {
    /// The instants of a schedule, or why they cannot be computed.
    pub fn new(schedule: &Schedule) -> Result<Self, String> {
        Calendar::of(schedule).map(|calendar| Self { calendar }).map_err(|error| error.to_string())
    }

    /// The next instants after `from`.
    pub fn next(&self, from: Instant, count: usize) -> Vec<DueAt> {
        let local = |at| wall::shown(self.calendar.zone(), at).format("%Y-%m-%d %H:%M:%S %Z").to_string();
        self.calendar.following(from).take(count).map(|at| DueAt { at, local: local(at) }).collect()
    }

    /// The instants that are past and not decided yet, with the first `shown` of them; none if there are none.
    pub fn missed(&self, decided_until: Instant, now: Instant, shown: usize) -> Option<Missed> {
        let past = self.calendar.following(decided_until).take_while(|at| *at <= now);
        let past: Vec<Instant> = past.take(MAX_MISSED + 1).collect();
        // An instant that is due right now is one of them.
        let latest = self.calendar.before(now + TimeDelta::microseconds(1)).unwrap_or(now);
        let (count, more) = (past.len().min(MAX_MISSED), past.len() > MAX_MISSED);
        let dates = self.next(decided_until, past.len().min(shown));
        Some(Missed { count, more, first: *past.first()?, latest, dates })
    }

    /// An instant, or a local day or time in the schedule's time zone.
    pub fn parse(&self, text: &str) -> Option<Instant> {
        wall::read(text, self.calendar.zone())
    }
}

impl DriftSummary {
    /// From the counts that a schedule's row keeps.
    pub fn of(counts: &[i64]) -> Self {
        let drift = Drift::from_counts(counts);
        let [p50_ms, p99_ms, max_ms] = [50, 99, 100].map(|share| drift.percentile(share));
        Self { runs: drift.count(), p50_ms, p99_ms, max_ms }
    }
}

/// Whether a run was created too late after its date to be on time: it is the run of a missed instant.
pub fn made_up_for(date: Instant, created_at: Instant) -> bool {
    created_at > date + GRACE
}
