//! Which days of a month and of a week a pattern means.

use chrono::{Datelike, NaiveDate, Weekday};

use crate::pattern::{self, Entry};

/// Days of the month.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Days {
    /// Whether they are not restricted.
    pub(crate) any: bool,
    set: u64,
    /// Whether the last day is meant, by `L` or as the 31st of a month that has none.
    last: bool,
    /// The days whose nearest weekdays are meant; 31 stands for the last day, too.
    near: u64,
}

/// Days of the week; Sunday is 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Weekdays {
    /// Whether they are not restricted.
    pub(crate) any: bool,
    set: u64,
    /// Of each weekday, the first to the fifth in the month.
    nth: [u8; 7],
    /// Those of which the last in the month is meant.
    last: u64,
}

impl Days {
    pub(crate) fn read(text: &str) -> Option<Self> {
        if matches!(text, "*" | "?") {
            return Some(Self { any: true, ..Self::default() });
        }
        let mut days = Self::default();
        for entry in text.split(',') {
            let upper = entry.to_ascii_uppercase();
            match upper.strip_suffix('W') {
                _ if upper == "L" => days.last = true,
                Some("L") => days.near |= 1 << 31,
                Some(day) => match pattern::day(day)? {
                    Entry::Span(from, to, None) if from == to => days.near |= 1 << from,
                    _ => return None,
                },
                None => {
                    let entry = pattern::day(entry)?;
                    // Naming the 31st means the end of the month; counting in steps does not.
                    days.last |= matches!(entry, Entry::Span(_, 31, None));
                    days.set |= pattern::set_of(entry, false);
                }
            }
        }
        Some(days)
    }

    pub(crate) fn has(&self, date: NaiveDate) -> bool {
        let (day, last) = (date.day(), last_day(date));
        let near = |of: u32| {
            let of = if of == 31 { last } else { of };
            of <= last && nearest_weekday(date, of, last) == day
        };
        self.set >> day & 1 == 1
            || (self.last && day == last)
            || (1..=31).any(|of| self.near >> of & 1 == 1 && near(of))
    }
}

impl Weekdays {
    pub(crate) fn read(text: &str) -> Option<Self> {
        if matches!(text, "*" | "?") {
            return Some(Self { any: true, ..Self::default() });
        }
        let mut days = Self::default();
        for entry in text.split(',') {
            let upper = entry.to_ascii_uppercase();
            let last = upper.strip_suffix("#L").or_else(|| upper.strip_suffix('L'));
            match (last, upper.split_once('#')) {
                (Some(day), _) => days.last |= 1 << one(day)?,
                (None, Some((day, nth))) => {
                    let nth = ["1", "2", "3", "4", "5"].iter().position(|known| *known == nth)?;
                    days.nth[one(day)? as usize] |= 1 << nth;
                }
                (None, None) => {
                    let set = pattern::set_of(pattern::weekday(entry)?, true);
                    days.set |= set | set >> 7 & 1;
                }
            }
        }
        Some(days)
    }

    pub(crate) fn has(&self, date: NaiveDate) -> bool {
        let weekday = date.weekday().num_days_from_sunday();
        self.set >> weekday & 1 == 1
            || self.nth[weekday as usize] >> ((date.day() - 1) / 7) & 1 == 1
            || (self.last >> weekday & 1 == 1 && date.day() + 7 > last_day(date))
    }
}

/// One weekday; Sunday is 0, however it is written.
fn one(text: &str) -> Option<u32> {
    match pattern::weekday(text)? {
        Entry::Span(from, to, None) if from == to => Some(from % 7),
        _ => None,
    }
}

/// The last day of a date's month.
fn last_day(date: NaiveDate) -> u32 {
    u32::from(date.num_days_in_month())
}

/// The weekday nearest to a day of a date's month, within that month.
fn nearest_weekday(date: NaiveDate, day: u32, last: u32) -> u32 {
    match date.with_day(day).map(|day| day.weekday()) {
        Some(Weekday::Sat) if day > 1 => day - 1,
        Some(Weekday::Sat) => day + 2,
        Some(Weekday::Sun) if day < last => day + 1,
        Some(Weekday::Sun) => day - 2,
        _ => day,
    }
}
