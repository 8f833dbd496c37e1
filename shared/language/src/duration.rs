//! Durations as people write them: `30s`, `5m`, `1h30m`, `2d`; a bare number is seconds.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

/// A length of time of at most ten years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Duration(std::time::Duration);

/// A text that is no duration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not a duration: write, for example, `30s`, `5m`, `1h30m` or `2d`, at most ten years")]
pub struct NotADuration(String);

const MAX_SECONDS: f64 = 10.0 * 366.0 * 86_400.0;

impl Duration {
    /// That many seconds, if it is a length of time within the limit.
    pub fn from_seconds(seconds: f64) -> Result<Self, NotADuration> {
        match (0.0..=MAX_SECONDS).contains(&seconds) {
            true => Ok(Self(std::time::Duration::from_secs_f64(seconds))),
            false => Err(NotADuration(seconds.to_string())),
        }
    }

    /// As the standard library has it.
    pub fn to_std(self) -> std::time::Duration {
        self.0
    }
}

impl FromStr for Duration {
    type Err = NotADuration;

    fn from_str(text: &str) -> Result<Self, NotADuration> {
        let seconds = text.trim().parse::<f64>().ok().or_else(|| seconds(text.trim()));
        let wrong = || NotADuration(text.to_owned());
        Self::from_seconds(seconds.ok_or_else(wrong)?).map_err(|_| wrong())
    }
}

/// The sum of parts such as `1h` and `30m`, each a smaller unit than the one before.
fn seconds(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut total = 0.0;
    let mut last = f64::INFINITY;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let unit = rest[digits..].chars().next()?;
        let worth = match unit {
            'd' => 86_400.0,
            'h' => 3_600.0,
            'm' => 60.0,
            's' => 1.0,
            _ => return None,
        };
        if worth >= last {
            return None;
        }
        total += rest[..digits].parse::<f64>().ok()? * worth;
        last = worth;
        rest = &rest[digits + unit.len_utf8()..];
    }
    (last < f64::INFINITY).then_some(total)
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DurationVisitor)
    }
}

struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as `30s` or a number of seconds")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Duration, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<Duration, E> {
        self.visit_f64(seconds as f64)
    }

    fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<Duration, E> {
        self.visit_f64(seconds as f64)
    }

    fn visit_f64<E: serde::de::Error>(self, seconds: f64) -> Result<Duration, E> {
        Duration::from_seconds(seconds).map_err(E::custom)
    }
}

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number"], "format": "duration", "minimum": 0, "maximum": MAX_SECONDS })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, seconds: Option<u64>) {
        assert_eq!(
            text.parse::<Duration>().ok().map(|duration| duration.to_std().as_secs()),
            seconds,
            "{text}"
        );
    }

    #[test]
    fn common_notations_are_understood() {
        check("30s", Some(30));
        check("5m", Some(300));
        check("24h", Some(86_400));
        check("1h30m", Some(5_400));
        check("2d", Some(172_800));
        check("1.5h", Some(5_400));
        check("90", Some(90));
        check("0s", Some(0));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "h", "5x", "-5s", "1m1h", "5 m", "1h1h", "5000d", "inf", "nan", "1é", "..s"] {
            check(text, None);
        }
    }

    #[test]
    fn numbers_are_seconds() {
        assert_eq!(serde_json::from_str::<Duration>("90").unwrap().to_std().as_secs(), 90);
        assert_eq!(serde_json::from_str::<Duration>("0.5").unwrap().to_std().as_millis(), 500);
        assert!(serde_json::from_str::<Duration>("-1").is_err());
    }
}
