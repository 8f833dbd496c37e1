//! How values are written on a page.

use chrono::TimeDelta;
use model::Instant;
use serde::Serialize;

/// An instant for people.
pub(crate) fn time(instant: &Instant) -> String {
    instant.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// An instant for programs.
pub(crate) fn iso(instant: &Instant) -> String {
    instant.to_rfc3339()
}

/// How long something took; nothing where it has not ended.
pub(crate) fn took(from: &Option<Instant>, to: &Option<Instant>) -> String {
    match (from, to) {
        (Some(from), Some(to)) => span(*to - *from),
        _ => String::new(),
    }
}

/// JSON for people.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("keys are texts")
}

fn span(span: TimeDelta) -> String {
    let milliseconds = span.num_milliseconds();
    match milliseconds / 1_000 {
        0 => format!("{milliseconds} ms"),
        1..60 => format!("{:.1} s", milliseconds as f64 / 1_000.0),
        seconds @ 60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_in_the_unit_that_suits_them() {
        let of = |milliseconds| span(TimeDelta::milliseconds(milliseconds));
        assert_eq!(
            [of(7), of(1_500), of(61_000), of(7_260_000)],
            ["7 ms", "1.5 s", "1 min 1 s", "2 h 1 min"]
        );
    }
}
