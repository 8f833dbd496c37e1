//! Cron patterns: five fields, or six with seconds first.

use std::ops::Range;
use std::str::FromStr;

use chrono::{Datelike, NaiveDate};

use crate::days::{Days, Weekdays};

/// Names for often used patterns.
pub const ALIASES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// The fields of a pattern with six of them, and what each takes.
const FIELDS: [Field; 6] = [
    Field { name: "second", takes: "0 to 59", values: 0..60, names: &[] },
    Field { name: "minute", takes: "0 to 59", values: 0..60, names: &[] },
    Field { name: "hour", takes: "0 to 23", values: 0..24, names: &[] },
    Field {
        name: "day of the month",
        takes: "1 to 31, `L` for the last, `15W` for the weekday nearest to it",
        values: 1..32,
        names: &[],
    },
    Field { name: "month", takes: "1 to 12 or `JAN` to `DEC`", values: 1..13, names: &MONTHS },
    Field {
        name: "day of the week",
        takes: "0 to 7 or `SUN` to `SAT`, `5L` for the last of the month, `5#2` for the second",
        values: 0..8,
        names: &WEEKDAYS,
    },
];

/// The months' names; the first one is 1.
const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

/// The weekdays' names; Sunday is 0, and 7 as well.
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// One field of a pattern.
struct Field {
    name: &'static str,
    takes: &'static str,
    values: Range<u32>,
    names: &'static [&'static str],
}

/// When wall clocks show a time that a schedule means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    pub(crate) seconds: u64,
    pub(crate) minutes: u64,
    pub(crate) hours: u64,
    months: u64,
    days: Days,
    weekdays: Weekdays,
}

/// What is wrong with a pattern, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Mistake {
    /// What is wrong, in words.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// The part of the text that it is about.
    pub at: Range<usize>,
}

/// One entry of a field's list.
pub(crate) enum Entry {
    /// Every value of the field.
    Any,
    /// First, last and step; the step is none if it was not written.
    Span(u32, u32, Option<u32>),
}

impl Pattern {
    /// Reads a pattern or an alias. Reports all mistakes at once.
    pub fn read(text: &str) -> Result<Self, Vec<Mistake>> {
        if text.trim().starts_with('@') {
            let known = ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(text.trim()));
            let (message, at) = (format!("there is no cron pattern `{}`", text.trim()), 0..text.len());
            let (_, pattern) = known.ok_or_else(|| vec![Mistake { message, hint: None, at }])?;
            return Self::read(pattern);
        }
        let (mut spans, mut offset) = (Vec::new(), 0);
        for field in text.split_whitespace() {
            offset += text[offset..].find(field).unwrap_or_default();
            spans.push(offset..offset + field.len());
            offset += field.len();
        }
        if !(5..=6).contains(&spans.len()) {
            let message =
                format!("a cron pattern has five fields, or six with seconds first, not {}", spans.len());
            let hint = "minute, hour, day of the month, month, day of the week; such as `0 18 * * 1-5`";
            return Err(vec![Mistake { message, hint: Some(hint.to_owned()), at: 0..text.len() }]);
        }
        let mut parts = vec![Part::Set(1); 6 - spans.len()];
        let mut mistakes = Vec::new();
        for (span, place) in spans.iter().zip(6 - spans.len()..) {
            match part(&text[span.clone()], place) {
                Some(part) => parts.push(part),
                None => mistakes.push(FIELDS[place].mistake(&text[span.clone()], span.clone())),
            }
        }
        let mut parts = parts.into_iter();
        let mut next = || parts.next().unwrap_or(Part::Set(0));
        let (seconds, minutes, hours) = (next().set(), next().set(), next().set());
        let (days, months, weekdays) = (next(), next().set(), next());
        match (days, weekdays) {
            (Part::Days(days), Part::Weekdays(weekdays)) if mistakes.is_empty() => {
                Ok(Self { seconds, minutes, hours, months, days, weekdays })
            }
            _ => Err(mistakes),
        }
    }

    /// Whether it means any time of that day. Of the day of the month and the day of the week either will do, if both
    /// are restricted.
    pub(crate) fn has_day(&self, date: NaiveDate) -> bool {
        let month = self.months >> date.month() & 1 == 1;
        month
            && match (self.days.any, self.weekdays.any) {
                (true, true) => true,
                (true, false) => self.weekdays.has(date),
                (false, true) => self.days.has(date),
                (false, false) => self.days.has(date) || self.weekdays.has(date),
            }
    }

    /// Whether it means every hour of its days: such a pattern goes by real hours where clocks are set back.
    pub(crate) fn is_hourly(&self) -> bool {
        self.hours == (1 << 24) - 1
    }

    /// The times of its days, in seconds since midnight, of hours in this range.
    pub(crate) fn times(&self, hours: Range<u32>) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let below = |end: u32| 1u64.checked_shl(end).map_or(u64::MAX, |bit| bit - 1);
        let within = below(hours.end) & !below(hours.start);
        Members(self.hours & within).flat_map(move |hour| {
            Members(self.minutes).flat_map(move |minute| {
                Members(self.seconds).map(move |second| hour * 3_600 + minute * 60 + second)
            })
        })
    }
}

impl FromStr for Pattern {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        Self::read(text).map_err(|mut mistakes| mistakes.swap_remove(0))
    }
}

/// The members of a set of small numbers, in order.
struct Members(u64);

impl Iterator for Members {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let least = self.0.trailing_zeros();
        self.0 &= self.0.wrapping_sub(1);
        (least < u64::BITS).then_some(least)
    }
}

impl DoubleEndedIterator for Members {
    fn next_back(&mut self) -> Option<u32> {
        let greatest = self.0.checked_ilog2()?;
        self.0 &= !(1 << greatest);
        Some(greatest)
    }
}

/// What a field says.
#[derive(Clone)]
enum Part {
    Set(u64),
    Days(Days),
    Weekdays(Weekdays),
}

impl Part {
    fn set(self) -> u64 {
        match self {
            Self::Set(set) => set,
            _ => 0,
        }
    }
}

fn part(text: &str, place: usize) -> Option<Part> {
    match place {
        3 => Days::read(text).map(Part::Days),
        5 => Weekdays::read(text).map(Part::Weekdays),
        _ => {
            let entries = text.split(',').map(|entry| FIELDS[place].entry(entry));
            entries
                .map(|entry| Some(FIELDS[place].set(entry?)))
                .try_fold(0, |all, one| Some(all | one?))
                .map(Part::Set)
        }
    }
}

/// An entry of the days of the month, without what only these have.
pub(crate) fn day(text: &str) -> Option<Entry> {
    FIELDS[3].entry(text)
}

/// An entry of the days of the week, without what only these have.
pub(crate) fn weekday(text: &str) -> Option<Entry> {
    FIELDS[5].entry(text)
}

/// The set that an entry of the days of the month, or of the week, stands for.
pub(crate) fn set_of(entry: Entry, is_weekday: bool) -> u64 {
    FIELDS[if is_weekday { 5 } else { 3 }].set(entry)
}

impl Field {
    fn mistake(&self, text: &str, at: Range<usize>) -> Mistake {
        let hint = format!("it takes {}; lists `1,3`, ranges `1-5` and steps `*/2` of these", self.takes);
        Mistake {
            message: format!("`{text}` is not a valid {} of a cron pattern", self.name),
            hint: Some(hint),
            at,
        }
    }

    /// Reads `*`, `5`, `1-5`, `*/2`, `1-5/2` or `5/2`.
    fn entry(&self, text: &str) -> Option<Entry> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => {
                (range, Some(number(step).filter(|step| (1..self.values.end).contains(step))?))
            }
            None => (text, None),
        };
        let last = self.values.end - 1;
        match (range, range.split_once('-'), step) {
            ("*", _, None) => Some(Entry::Any),
            ("*", _, step) => Some(Entry::Span(self.values.start, last, step)),
            (_, Some((from, to)), step) => {
                let (from, to) = (self.value(from)?, self.value(to)?);
                // A week may end with its Sunday.
                let to = if to == 0 && from > 0 && !self.names.is_empty() { 7 } else { to };
                (from <= to).then_some(Entry::Span(from, to, step))
            }
            (one, None, Some(step)) => Some(Entry::Span(self.value(one)?, last, Some(step))),
            (one, None, None) => self.value(one).map(|value| Entry::Span(value, value, None)),
        }
    }

    fn set(&self, entry: Entry) -> u64 {
        let (from, to, step) = match entry {
            Entry::Any => (self.values.start, self.values.end - 1, None),
            Entry::Span(from, to, step) => (from, to, step),
        };
        (from..=to).step_by(step.unwrap_or(1) as usize).fold(0, |set, value| set | 1 << value)
    }

    fn value(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let named = named.map(|place| place as u32 + if self.names.len() == 12 { 1 } else { 0 });
        named.or_else(|| number(text)).filter(|value| self.values.contains(value))
    }
}

fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}
