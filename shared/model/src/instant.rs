//! The instants that Ebbflow accepts: years 0001 to 9999, which every database, format and time zone can represent.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime};
use serde::{Deserialize, Deserializer};

use crate::Instant;

const MIN_YEAR: i32 = 1;
const MAX_YEAR: i32 = 9999;

/// A text or an instant that is not accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidInstant {
    /// The text is not RFC 3339.
    #[error("`{}` is not an RFC 3339 timestamp such as `2026-01-31T18:00:00Z`", .0.escape_debug())]
    Format(String),
    /// The year is out of range.
    #[error("the year of a date must be between 0001 and 9999")]
    Year,
}

/// Whether a year is accepted.
pub fn has_valid_year(date: &impl Datelike) -> bool {
    (MIN_YEAR..=MAX_YEAR).contains(&date.year())
}

/// The instant, if its year is accepted.
pub fn bounded(instant: Instant) -> Result<Instant, InvalidInstant> {
    if has_valid_year(&instant) { Ok(instant) } else { Err(InvalidInstant::Year) }
}

/// An instant in RFC 3339, at any offset.
pub fn parse(text: &str) -> Result<Instant, InvalidInstant> {
    match DateTime::parse_from_rfc3339(text) {
        Ok(instant) => bounded(instant.to_utc()),
        // Years of other lengths parse by no other format either, but deserve another message.
        Err(_) if text.parse::<Instant>().is_ok_and(|instant| !has_valid_year(&instant)) => {
            Err(InvalidInstant::Year)
        }
        Err(_) => Err(InvalidInstant::Format(text.chars().take(100).collect())),
    }
}

/// A date such as `2026-01-31`.
pub fn parse_date(text: &str) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().filter(has_valid_year)
}

/// A date and a time in one of several formats, without an offset.
pub fn parse_local(text: &str, formats: &[&str]) -> Option<NaiveDateTime> {
    formats.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok()).filter(has_valid_year)
}

/// Deserializes an instant, for `#[serde(deserialize_with)]`.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Instant, D::Error> {
    let text = String::deserialize(deserializer)?;
    read(&text).map_err(serde::de::Error::custom)
}

/// Deserializes an instant that may be missing, for `#[serde(default, deserialize_with)]`.
pub fn deserialize_option<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Instant>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| read(&text)).transpose().map_err(serde::de::Error::custom)
}

/// As [`parse`], and also with a space between date and time.
fn read(text: &str) -> Result<Instant, InvalidInstant> {
    text.parse::<Instant>().map_or_else(|_| parse(text), bounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_years_1_to_9999_are_accepted() {
        for text in ["0001-01-01T00:00:00Z", "2026-01-31T18:00:00+02:00", "9999-12-31T23:59:59Z"] {
            assert!(parse(text).is_ok(), "{text}");
        }
        assert!(parse_date("0001-01-01").is_some() && parse_date("9999-12-31").is_some());
    }

    #[test]
    fn other_years_are_rejected_by_name() {
        for text in ["-262143-01-01T00:00:00Z", "0000-12-31T00:00:00Z", "+10000-01-01T00:00:00Z"] {
            assert_eq!(parse(text), Err(InvalidInstant::Year), "{text}");
        }
        // In UTC it is year 0, and year 10000.
        for text in ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"] {
            assert_eq!(parse(text), Err(InvalidInstant::Year), "{text}");
        }
        for text in ["-262143-01-01", "0000-01-01", "10000-01-01"] {
            assert_eq!(parse_date(text), None, "{text}");
        }
        assert_eq!(parse_local("-262143-01-01T00:00", &["%Y-%m-%dT%H:%M"]), None);
    }

    #[test]
    fn anything_else_is_rejected_by_its_format() {
        assert_eq!(parse("soon"), Err(InvalidInstant::Format("soon".to_owned())));
    }

    #[test]
    fn serde_rejects_other_years_too() {
        #[derive(Deserialize, Debug)]
        struct Body {
            #[serde(deserialize_with = "deserialize")]
            at: Instant,
        }
        let body = |text: &str| serde_json::from_value::<Body>(serde_json::json!({ "at": text }));
        assert_eq!(body("2026-01-31T18:00:00Z").map(|body| body.at.year()).ok(), Some(2026));
        let error = body("-262143-01-01T00:00:00Z").expect_err("the year is out of range");
        assert!(error.to_string().contains("between 0001 and 9999"), "{error}");
    }
}
