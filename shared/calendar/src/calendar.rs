//! A schedule's instants, forwards and backwards.

use chrono::{Days, NaiveDate, NaiveTime, TimeDelta};
use chrono_tz::Tz;
use model::{Instant, Interval, Schedule, When};

use crate::Pattern;
use crate::wall;

/// Every pattern that ever occurs does so within this many days: five Mondays in a February are the rarest, and come after
/// forty years at most.
const MAX_DAYS_SEARCHED: u64 = 41 * 366;

/// A clock that is set may bring an instant of one day behind those of the next ones.
const EXTRA_DAYS_SEARCHED: u64 = 2;

/// The instants of a schedule, in its time zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Calendar {
    times: Times,
    zone: Tz,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Times {
    Cron(Pattern),
    Every(i64),
    At(Instant),
}

/// A schedule that this program cannot read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unreadable {
    /// Its pattern is none.
    #[error("{0}")]
    Pattern(#[from] crate::pattern::Mistake),
    /// Its time zone is unknown.
    #[error("unknown time zone `{0}`")]
    Zone(String),
}

/// Where to look from an instant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    Back,
}

impl Calendar {
    /// The calendar of a schedule.
    pub fn of(schedule: &Schedule) -> Result<Self, Unreadable> {
        let zone = schedule.timezone.parse().map_err(|_| Unreadable::Zone(schedule.timezone.clone()))?;
        Ok(match &schedule.when {
            When::Cron(text) => Self::cron(text.parse()?, zone),
            When::Every(seconds) => Self { times: Times::Every(i64::from(*seconds)), zone },
            When::At(instant) => Self { times: Times::At(*instant), zone },
        })
    }

    /// The calendar of a pattern in a time zone.
    pub fn cron(pattern: Pattern, zone: Tz) -> Self {
        Self { times: Times::Cron(pattern), zone }
    }

    /// The time zone in which it is read.
    pub fn zone(&self) -> Tz {
        self.zone
    }

    /// The first instant after this one; none if there never is one.
    pub fn after(&self, instant: Instant) -> Option<Instant> {
        match &self.times {
            Times::Cron(pattern) => self.search(pattern, instant, Way::Forward),
            Times::Every(seconds) => multiple(instant.timestamp().div_euclid(*seconds) + 1, *seconds),
            Times::At(at) => Some(*at).filter(|at| *at > instant),
        }
    }

    /// The last instant before this one; none if there never was one.
    pub fn before(&self, instant: Instant) -> Option<Instant> {
        match &self.times {
            Times::Cron(pattern) => self.search(pattern, instant, Way::Back),
            Times::Every(seconds) => {
                let whole = instant.timestamp().div_euclid(*seconds);
                let here = multiple(whole, *seconds).filter(|here| *here < instant);
                here.or_else(|| multiple(whole - 1, *seconds))
            }
            Times::At(at) => Some(*at).filter(|at| *at < instant),
        }
    }

    /// Its instants after this one, in order.
    pub fn following(&self, instant: Instant) -> impl Iterator<Item = Instant> + '_ {
        std::iter::successors(self.after(instant), |last| self.after(*last))
    }

    /// What a run of this instant is about: the time since the instant before.
    pub fn interval(&self, date: Instant) -> Interval {
        Interval { start: self.before(date).unwrap_or(date), end: date }
    }

    fn search(&self, pattern: &Pattern, from: Instant, way: Way) -> Option<Instant> {
        let today = wall::shown(self.zone, from).date_naive();
        let mut date = way.back_from(today, EXTRA_DAYS_SEARCHED)?;
        let (mut found, mut left) = (None, MAX_DAYS_SEARCHED);
        while left > 0 {
            let here = pattern.has_day(date).then(|| self.on(pattern, date, from, way)).flatten();
            if found.is_none() && here.is_some() {
                left = left.min(EXTRA_DAYS_SEARCHED + 1);
            }
            found = way.nearer(found, here);
            (date, left) = (way.next(date)?, left - 1);
        }
        found
    }

    /// The instant of a day that is the nearest to `from` on that way.
    fn on(&self, pattern: &Pattern, date: NaiveDate, from: Instant, way: Way) -> Option<Instant> {
        let midnight = date.and_time(NaiveTime::MIN);
        let at = |second: u32| midnight + TimeDelta::seconds(i64::from(second));
        let Some(offset) = wall::steady_offset(self.zone, date) else {
            let all = pattern.times(0..24).map(at);
            let all = all.flat_map(|wall| wall::instants(self.zone, wall, pattern.is_hourly()));
            return all
                .filter(|instant| way.leads(from, *instant))
                .fold(None, |best, one| way.nearer(best, Some(one)));
        };
        let shown = from.naive_utc() + offset;
        let into_day = (shown - midnight).num_hours().clamp(-1, 24);
        let found = match way {
            Way::Forward => pattern.times(into_day.max(0) as u32..24).map(at).find(|wall| *wall > shown),
            Way::Back => {
                pattern.times(0..(into_day + 1).max(0) as u32).map(at).rev().find(|wall| *wall < shown)
            }
        };
        found.map(|wall| (wall - offset).and_utc())
    }
}

impl Way {
    fn leads(self, from: Instant, to: Instant) -> bool {
        if self == Self::Forward { to > from } else { to < from }
    }

    fn nearer(self, one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
        let both = one.into_iter().chain(other);
        if self == Self::Forward { both.min() } else { both.max() }
    }

    fn next(self, date: NaiveDate) -> Option<NaiveDate> {
        if self == Self::Forward { date.succ_opt() } else { date.pred_opt() }
    }

    fn back_from(self, date: NaiveDate, days: u64) -> Option<NaiveDate> {
        let days = Days::new(days);
        if self == Self::Forward { date.checked_sub_days(days) } else { date.checked_add_days(days) }
    }
}

fn multiple(count: i64, seconds: i64) -> Option<Instant> {
    Instant::from_timestamp(count.checked_mul(seconds)?, 0)
}
