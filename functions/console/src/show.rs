//! How values are written on a page.

use std::{fmt, io};

use askama::Template;
use askama::filters::HtmlSafe;
use axum::response::Html;
use chrono::TimeDelta;
use model::{EventKind, Instant};
use serde::Serialize;
use serde_json::Value;

/// HTML of our own making, which is put on a page as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Markup(pub(crate) String);

impl fmt::Display for Markup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl HtmlSafe for Markup {}

/// A page as an answer.
pub(crate) fn html(page: &impl Template) -> Html<String> {
    Html(page.render().expect("templates are checked when compiled, and a text takes all"))
}

/// Escapes a text for elements and attributes, and makes control characters visible.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            '\n' | '\t' => out.push(letter),
            _ if letter.is_control() => out.push('\u{fffd}'),
            _ => out.push(letter),
        }
    }
    out
}

/// A sentence with names in backticks, which become code.
pub(crate) fn prose(text: &str) -> Markup {
    let mut out = String::with_capacity(text.len());
    let parts: Vec<&str> = text.split('`').collect();
    for (index, part) in parts.iter().enumerate() {
        match (index % 2 == 1, index + 1 == parts.len()) {
            (true, false) => out += &format!("<code>{}</code>", escaped(part)),
            (true, true) => out += &format!("`{}", escaped(part)),
            (false, _) => out += &escaped(part),
        }
    }
    Markup(out)
}

/// The date and time of an instant, to the second.
pub(crate) fn time(instant: &Instant) -> String {
    instant.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// The time of day of an instant, to the millisecond.
pub(crate) fn clock(instant: &Instant) -> String {
    instant.format("%H:%M:%S%.3f").to_string()
}

/// The date and time of an instant, to the minute.
pub(crate) fn day(instant: &Instant) -> String {
    instant.format("%Y-%m-%d %H:%M").to_string()
}

/// An instant for programs.
pub(crate) fn iso(instant: &Instant) -> String {
    instant.to_rfc3339()
}

/// How long ago or how soon.
pub(crate) fn distance(at: Instant, now: Instant) -> String {
    let away = at - now;
    let seconds = away.num_seconds().unsigned_abs();
    let words = match seconds {
        0..5 => return "now".into(),
        5..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    };
    if away > TimeDelta::zero() { format!("in {words}") } else { format!("{words} ago") }
}

/// The most of a value that a page shows, in bytes: as much as a task's longest script has.
const MAX_SHOWN: usize = 256 * 1024;

/// The most of a text among others that a page shows, in characters.
const MAX_BRIEF: usize = 2_000;

/// A value as indented JSON; of a long one the beginning. Indentation can make it a hundred times as long as it is.
pub(crate) fn json(value: &impl Serialize) -> String {
    let (mut text, whole) = beginning(value);
    if !whole {
        text.push_str("\n…");
    }
    text
}

/// A value as indented JSON, and for a long one its beginning and a link to all of it.
pub(crate) fn preview(value: &impl Serialize, link: impl fmt::Display) -> Markup {
    let (text, whole) = beginning(value);
    in_part(&text, whole, link)
}

/// A text as it is, and for a long one its beginning and a link to all of it.
pub(crate) fn preview_text(text: &str, link: impl fmt::Display) -> Markup {
    let end = text.floor_char_boundary(MAX_SHOWN);
    in_part(&text[..end], end == text.len(), link)
}

fn in_part(text: &str, whole: bool, link: impl fmt::Display) -> Markup {
    let (text, link) = (escaped(text), escaped(&link.to_string()));
    let more = match whole {
        true => String::new(),
        false => format!("<p class=\"more\"><a href=\"{link}\">All of it</a></p>"),
    };
    let end = if whole { "" } else { "\n…" };
    Markup(format!("<pre class=\"wrap\" tabindex=\"0\">{text}{end}</pre>{more}"))
}

/// A value as JSON to be edited: complete, and indented unless it is long.
pub(crate) fn editable(value: &Value) -> String {
    let (text, whole) = beginning(value);
    if whole { text } else { value.to_string() }
}

/// A text among others: the beginning of a long one.
pub(crate) fn brief(text: &(impl fmt::Display + ?Sized)) -> String {
    let text = text.to_string();
    match text.char_indices().nth(MAX_BRIEF) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A value as indented JSON as far as it is shown, and whether that is all of it.
fn beginning(value: &impl Serialize) -> (String, bool) {
    /// Takes no more than is shown.
    struct Shown(Vec<u8>);
    impl io::Write for Shown {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = MAX_SHOWN - self.0.len();
            if room == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            let taken = bytes.len().min(room);
            self.0.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut shown = Shown(Vec::new());
    let whole = serde_json::to_writer_pretty(&mut shown, value).is_ok();
    let mut text = String::from_utf8_lossy(&shown.0).into_owned();
    if !whole && text.ends_with('\u{fffd}') {
        // Half of a letter.
        text.pop();
    }
    (text, whole)
}

/// A value on one line: strings without quotes.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A length of time.
pub(crate) fn span(span: TimeDelta) -> String {
    let milliseconds = span.num_milliseconds().max(0);
    match milliseconds / 1_000 {
        0 => format!("{milliseconds} ms"),
        1..60 => format!("{:.1} s", milliseconds as f64 / 1_000.0),
        seconds @ 60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds @ 3_600..172_800 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        seconds => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A length of time in milliseconds.
pub(crate) fn millis(milliseconds: &Option<i64>) -> String {
    milliseconds.map_or_else(|| "–".into(), |milliseconds| span(TimeDelta::milliseconds(milliseconds)))
}

/// A length of time in seconds.
pub(crate) fn seconds(seconds: &i64) -> String {
    span(TimeDelta::seconds(*seconds))
}

/// A part of one, in percent.
pub(crate) fn percent(part: &f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// The value of a metric: large whole numbers in groups of digits, others with up to three decimals.
pub(crate) fn value_of(value: &f64) -> String {
    match value.fract() == 0.0 && value.abs() < 1e15 {
        true if *value >= 0.0 => number(*value as u64),
        _ => format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

/// What happened, by the name that the API has for it.
pub(crate) fn event(kind: &EventKind) -> String {
    serde_json::to_value(kind).as_ref().map(value).unwrap_or_default().replace(['.', '_'], " ")
}

/// The first characters of an id, enough to recognise a run.
pub(crate) fn short(id: &impl fmt::Display) -> String {
    let text = id.to_string();
    // The end of an id is its random part; the beginning is the same for runs of the same minute.
    text.chars().skip(text.chars().count().saturating_sub(8)).collect()
}

/// A state by its shape, colour and name.
pub(crate) fn mark(state: &str) -> Markup {
    let words = state.replace('_', " ");
    Markup(format!("<span class=\"state {state}\">{}{words}</span>", shape(state).0))
}

/// A state by its shape and colour, with its name for those who cannot see it.
pub(crate) fn shape_named(state: &str) -> Markup {
    let words = state.replace('_', " ");
    Markup(format!(
        "<span class=\"state {state}\" title=\"{words}\">{}<span class=\"unseen\">{words}</span></span>",
        shape(state).0
    ))
}

/// The symbol of a state, which screen readers skip.
pub(crate) fn shape(state: &str) -> Markup {
    Markup(format!("<svg class=\"mark\" aria-hidden=\"true\"><use href=\"#m-{state}\"/></svg>"))
}

/// A number with a space between groups of three digits.
pub(crate) fn number(number: impl fmt::Display) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_in_the_unit_that_suits_them() {
        let of = |milliseconds| span(TimeDelta::milliseconds(milliseconds));
        assert_eq!(
            [of(7), of(1_500), of(61_000), of(7_260_000), of(200_000_000)],
            ["7 ms", "1.5 s", "1 min 1 s", "2 h 1 min", "2 d 7 h"]
        );
    }

    #[test]
    fn instants_are_shown_by_their_distance() {
        let now = Instant::from_timestamp(1_800_000_000, 0).unwrap();
        let at = |seconds| distance(now + TimeDelta::seconds(seconds), now);
        assert_eq!(
            [at(1), at(-59), at(-120), at(7_200), at(-200_000)],
            ["now", "59 s ago", "2 min ago", "in 2 h", "2 d ago"]
        );
    }

    #[test]
    fn a_long_value_is_shown_in_part_with_a_link_to_all_of_it() {
        let deep = (0..100).fold(serde_json::json!(vec![0; 100_000]), |value, _| serde_json::json!([value]));
        let Markup(shown) = preview(&deep, "/all?a&b");
        assert!(shown.len() < MAX_SHOWN + 200, "{} bytes", shown.len());
        assert!(
            shown.ends_with("\n…</pre><p class=\"more\"><a href=\"/all?a&amp;b\">All of it</a></p>"),
            "{shown}"
        );
        assert!(json(&deep).len() < MAX_SHOWN + 10);
        assert_eq!(editable(&deep), deep.to_string(), "a form has all of it");
        let letters = "é".repeat(MAX_SHOWN);
        assert!(json(&letters).ends_with("é\n…"), "no half letter");
        assert_eq!(preview(&[1], "/").0, "<pre class=\"wrap\" tabindex=\"0\">[\n  1\n]</pre>");
    }

    #[test]
    fn escaped_text_is_only_text() {
        assert_eq!(escaped("<a href='x'>\u{1b}[31m"), "&lt;a href=&#39;x&#39;&gt;\u{fffd}[31m");
    }

    #[test]
    fn names_between_backticks_are_set_apart() {
        assert_eq!(prose("`a<b` and `c").0, "<code>a&lt;b</code> and `c");
    }

    #[test]
    fn large_numbers_can_be_read() {
        assert_eq!([number(7_u32), number(1_234_567_u32)], ["7", "1\u{202f}234\u{202f}567"]);
    }
}
