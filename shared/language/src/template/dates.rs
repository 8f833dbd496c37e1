//! Filters for dates. A date goes in and comes out as `2026-01-31`, an instant as RFC 3339.

use std::fmt::Write;

use chrono::format::{Item, StrftimeItems};
use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat, TimeDelta, Utc};
use minijinja::{Error, ErrorKind};
use model::instant::{self, InvalidInstant};

/// A text that is a date or an instant.
enum Moment {
    Day(NaiveDate),
    Instant(DateTime<Utc>),
}

impl Moment {
    fn parse(text: &str) -> Result<Self, Error> {
        if let Some(day) = instant::parse_date(text) {
            return Ok(Self::Day(day));
        }
        instant::parse(text).map(Self::Instant).map_err(|error| match error {
            InvalidInstant::Format(_) => {
                invalid(format!("`{text}` is neither a date such as `2026-01-31` nor a timestamp"))
            }
            InvalidInstant::Year => invalid(error.to_string()),
        })
    }

    fn start(&self) -> DateTime<Utc> {
        match self {
            Self::Day(day) => day.and_time(NaiveTime::MIN).and_utc(),
            Self::Instant(instant) => *instant,
        }
    }

    fn plus(self, length: Option<TimeDelta>) -> Result<String, Error> {
        let moved = length.and_then(|length| self.start().checked_add_signed(length));
        let moved = moved.filter(instant::has_valid_year);
        let moved = moved.ok_or_else(|| invalid("the date is too far away".to_owned()))?;
        Ok(match self {
            Self::Day(_) if moved.time() == NaiveTime::MIN => moved.format("%Y-%m-%d").to_string(),
            _ => moved.to_rfc3339_opts(SecondsFormat::AutoSi, true),
        })
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// `'2026-01-31' | date('%d.%m.%Y')`; without a pattern, the day.
pub(super) fn date(text: &str, pattern: Option<&str>) -> Result<String, Error> {
    let pattern = pattern.unwrap_or("%Y-%m-%d");
    let moment = Moment::parse(text)?.start();
    let wrong = || invalid(format!("`{pattern}` is not a date format such as `%Y-%m-%d`"));
    if StrftimeItems::new(pattern).any(|item| item == Item::Error) {
        return Err(wrong());
    }
    let mut shown = String::new();
    write!(shown, "{}", moment.format(pattern)).map_err(|_| wrong())?;
    Ok(shown)
}

/// The seconds since 1970 at which a moment begins.
pub(super) fn timestamp(text: &str) -> Result<i64, Error> {
    Ok(Moment::parse(text)?.start().timestamp())
}

/// Adds days; a negative number subtracts.
pub(super) fn add_days(text: &str, days: i64) -> Result<String, Error> {
    Moment::parse(text)?.plus(TimeDelta::try_days(days))
}

/// Adds hours; a negative number subtracts.
pub(super) fn add_hours(text: &str, hours: i64) -> Result<String, Error> {
    Moment::parse(text)?.plus(TimeDelta::try_hours(hours))
}

/// Adds minutes; a negative number subtracts.
pub(super) fn add_minutes(text: &str, minutes: i64) -> Result<String, Error> {
    Moment::parse(text)?.plus(TimeDelta::try_minutes(minutes))
}
