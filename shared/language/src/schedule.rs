//! When a workflow runs by itself: cron, time zone, and what becomes of missed instants.

use std::ops::Range;

use chrono_tz::{TZ_VARIANTS, Tz};
use croner::Cron;
use croner::parser::{CronParser, Year};
use model::{Catchup, InputSpec, Schedule};

use crate::concurrency::MAX_RUNS;
use crate::diagnostic::Report;
use crate::node::{Data, Node};
use crate::read::{self, Fields, Word};
use crate::suggest;

/// Names for often used patterns.
const ALIASES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// What becomes of missed instants.
pub(crate) const CATCHUPS: [&str; 3] = ["all", "latest", "none"];

/// The fields of a pattern with six of them, and what each takes.
const FIELDS: [(&str, &str); 6] = [
    ("second", "0 to 59"),
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31, `L` for the last, `15W` for the weekday nearest to it"),
    ("month", "1 to 12 or `JAN` to `DEC`"),
    ("day of the week", "0 to 7 or `SUN` to `SAT`, `5L` for the last of the month, `5#2` for the second"),
];

/// Reads `schedule`. It starts runs without inputs, so each of them needs a default.
pub(crate) fn read(node: &Node, inputs: &[InputSpec], report: &mut Report<'_>) -> Option<Schedule> {
    if let Data::Text(text) = &node.data {
        let hint = Some(format!("write {{cron: {text:?}}}"));
        report.add(&node.at, format!("a schedule must be a mapping, but this is {}", node.describe()), hint);
        return None;
    }
    let mut fields = Fields::of(node, "a schedule", report)?;
    let cron = fields.require("cron").and_then(|node| read_cron(node, report));
    let timezone = fields.get("timezone").map(|node| read_timezone(node, report));
    let catchup = fields.get("catchup").map(|node| read_catchup(node, report));
    let max_active_runs =
        fields.get("max_active_runs").and_then(|node| read::whole(node, 1..=MAX_RUNS, report));
    fields.finish(report);
    for input in inputs.iter().filter(|input| input.default.is_none()) {
        let hint = format!("give it one, such as `{}: {{default: …}}`", input.name);
        let message = format!("a schedule gives no inputs, and the input `{}` has no default", input.name);
        report.add(&node.at, message, Some(hint));
    }
    Some(Schedule {
        cron: cron?,
        timezone: timezone.unwrap_or(Some(Tz::UTC))?.name().to_owned(),
        catchup: catchup.unwrap_or(Some(Catchup::None))?,
        max_active_runs,
    })
}

fn read_catchup(node: &Node, report: &mut Report<'_>) -> Option<Catchup> {
    match node.data {
        Data::Bool(true) => Some(Catchup::All),
        Data::Bool(false) => Some(Catchup::None),
        _ => read::choice(node, &CATCHUPS, report),
    }
}

/// A pattern of five or six fields, with aliases written out.
fn read_cron(node: &Node, report: &mut Report<'_>) -> Option<String> {
    let word = read::text(node, report)?;
    if word.text.trim().starts_with('@') {
        return alias(word, report).map(str::to_owned);
    }
    let fields: Vec<&str> = word.text.split_whitespace().collect();
    if !(5..=6).contains(&fields.len()) {
        let hint = "minute, hour, day of the month, month, day of the week; such as `0 18 * * 1-5`";
        let message =
            format!("a cron pattern has five fields, or six with seconds first, not {}", fields.len());
        report.add(word.at, message, Some(hint.to_owned()));
        return None;
    }
    let (before, mut offset) = (report.len(), 0);
    for (field, (name, takes)) in fields.iter().zip(&FIELDS[6 - fields.len()..]) {
        offset += word.text[offset..].find(field).unwrap_or_default();
        check_field(word, offset..offset + field.len(), name, takes, report);
        offset += field.len();
    }
    let pattern = fields.join(" ");
    if report.len() == before {
        check_whole(word, &pattern, report);
    }
    Some(pattern)
}

fn alias(word: Word<'_>, report: &mut Report<'_>) -> Option<&'static str> {
    let name = word.text.trim();
    let known = ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name));
    if known.is_none() {
        let hint = match name.eq_ignore_ascii_case("@reboot") {
            true => Some("nothing here is ever booted; choose a time".to_owned()),
            false => suggest::hint(name, ALIASES.iter().map(|(alias, _)| *alias)),
        };
        report.add(word.at, format!("there is no cron pattern `{name}`"), hint);
    }
    known.map(|(_, pattern)| *pattern)
}

/// Reports one field of a pattern that is wrong by itself.
fn check_field(word: Word<'_>, span: Range<usize>, name: &str, takes: &str, report: &mut Report<'_>) {
    let field = &word.text[span.clone()];
    let at_its_place = FIELDS.map(|(other, _)| if other == name { field } else { "*" }).join(" ");
    let empty_part = field.split(',').any(str::is_empty);
    if empty_part || parse(&at_its_place).is_err() {
        let at = report.inside(word.at, word.text, field, span.start);
        let hint = format!("it takes {takes}; lists `1,3`, ranges `1-5` and steps `*/2` of these");
        report.add(&at, format!("`{field}` is no {name} of a cron pattern"), Some(hint));
    }
}

/// Reports a pattern that is no good as a whole or never comes true.
fn check_whole(word: Word<'_>, pattern: &str, report: &mut Report<'_>) {
    let Ok(cron) = parse(pattern) else {
        return report.add(word.at, format!("`{pattern}` is no cron pattern"), None);
    };
    let parts = &cron.pattern;
    let by_day = parts.is_dow_wildcard() && !parts.days.has_modifiers();
    if by_day && parts.months.values() == [2] && parts.days.values() == [30] {
        let hint = Some("for the last day of the month, write `L`".to_owned());
        report.add(word.at, "this never comes: February has no 30th", hint);
    }
}

fn parse(pattern: &str) -> Result<Cron, croner::errors::CronError> {
    CronParser::builder().year(Year::Disallowed).build().parse(pattern)
}

fn read_timezone(node: &Node, report: &mut Report<'_>) -> Option<Tz> {
    let word = read::text(node, report)?;
    let zone = word.text.parse().ok();
    if zone.is_none() {
        let hint = match nearest_zone(word.text) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write an IANA name, such as `Europe/Berlin`, or `UTC`".to_owned(),
        };
        report.add(word.at, format!("there is no time zone `{}`", word.text), Some(hint));
    }
    zone
}

/// The zone that was meant: in other letters, without its region, or with a slip of the finger.
fn nearest_zone(text: &str) -> Option<&'static str> {
    let written = text.replace(' ', "_");
    let names = || TZ_VARIANTS.iter().map(|zone| zone.name());
    let city = |name: &str| name.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(&written));
    names()
        .find(|name| name.eq_ignore_ascii_case(&written))
        .or_else(|| names().find(|name| city(name)))
        // Short names are too near to each other to guess.
        .or_else(|| suggest::nearest(&written, names().filter(|name| name.contains('/'))))
}
