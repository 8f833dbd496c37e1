//! The instants of a schedule: `cron`, `every` or `at`, and the time zone they are read in.

use calendar::pattern::ALIASES;
use calendar::{Calendar, Pattern, wall};
use chrono_tz::{TZ_VARIANTS, Tz};
use model::{Instant, When};
use serde_json::{Value, json};

use super::ScheduleParts;
use crate::diagnostic::Report;
use crate::duration::Duration;
use crate::node::{Data, Node};
use crate::read::{self, Word};
use crate::suggest;

/// The longest interval: ten years.
const MAX_PERIOD_SECONDS: u32 = 10 * 366 * 86_400;

/// The instants of a schedule, which gives them in one of three ways.
pub(super) fn read(
    parts: &ScheduleParts<'_>,
    zone: Tz,
    node: &Node,
    report: &mut Report<'_>,
) -> Option<When> {
    let given = [parts.cron.is_some(), parts.every.is_some(), parts.at.is_some()];
    if given.into_iter().filter(|given| *given).count() > 1 {
        let hint = Some("make it a list of several schedules, each with a `name`".to_owned());
        report.add(&node.at, "a schedule takes one of `cron`, `every` and `at`, but several are given", hint);
    }
    match (&parts.cron, &parts.every, &parts.at) {
        (Some(cron), ..) => cron.value.clone().map(When::Cron),
        (None, Some(every), _) => every.value.map(When::Every),
        (None, None, Some(at)) => at.value.and_then(|word| read_at(word, zone, report)).map(When::At),
        (None, None, None) => {
            let hint = "such as `cron: \"0 18 * * 1-5\"`, `every: 15m` or `at: 2030-01-31T09:00`".to_owned();
            report.add(&node.at, "a schedule needs `cron`, `every` or `at`", Some(hint));
            None
        }
    }
}

/// A pattern of five or six fields, with aliases written out.
pub(super) fn read_cron(node: &Node, report: &mut Report<'_>) -> Option<String> {
    let word = read::text(node, report)?;
    if word.text.trim().starts_with('@') {
        return alias(word, report).map(str::to_owned);
    }
    match Pattern::read(word.text) {
        Ok(pattern) => check_comes(word, pattern, report),
        Err(mistakes) => {
            for mistake in mistakes {
                let field = &word.text[mistake.at.clone()];
                let whole = mistake.at == (0..word.text.len());
                let at = (!whole).then(|| report.inside(word.at, word.text, field, mistake.at.start));
                report.add(at.as_ref().unwrap_or(word.at), mistake.message, mistake.hint);
            }
        }
    }
    Some(word.text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn alias(word: Word<'_>, report: &mut Report<'_>) -> Option<&'static str> {
    let name = word.text.trim();
    let known = ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name));
    if known.is_none() {
        let hint = match name.eq_ignore_ascii_case("@reboot") {
            true => Some("`@reboot` is not supported; choose a time".to_owned()),
            false => report.suggest(name, ALIASES.iter().map(|(alias, _)| *alias)),
        };
        report.add(word.at, format!("there is no cron pattern `{name}`"), hint);
    }
    known.map(|(_, pattern)| *pattern)
}

/// Reports a pattern that never comes true: only February lacks days that can be named.
fn check_comes(word: Word<'_>, pattern: Pattern, report: &mut Report<'_>) {
    if Calendar::cron(pattern, Tz::UTC).after(Instant::UNIX_EPOCH).is_none() {
        let hint = Some("for the last day of the month, write `L`".to_owned());
        report.add(word.at, "this never occurs: February has no 30th", hint);
    }
}

pub(super) fn cron_schema() -> Value {
    json!({
        "type": "string",
        "pattern": r"^\s*(@[A-Za-z]+|\S+(\s+\S+){4,5})\s*$",
        "examples": ["0 18 * * 1-5", "@daily", "*/15 * * * *", "0 6 L * *"],
    })
}

pub(super) fn read_every(node: &Node, report: &mut Report<'_>) -> Option<u32> {
    let seconds = match &node.data {
        Data::Number(number) => number.as_f64().and_then(|seconds| Duration::from_seconds(seconds).ok()),
        Data::Text(text) => text.parse::<Duration>().ok(),
        _ => None,
    };
    let whole = seconds.map(Duration::to_std).filter(|length| length.subsec_nanos() == 0);
    let found = whole.and_then(|length| u32::try_from(length.as_secs()).ok());
    let found = found.filter(|seconds| (1..=MAX_PERIOD_SECONDS).contains(seconds));
    if found.is_none() {
        let hint = Some("write, for example, `30s`, `15m`, `1h30m` or `1d`".to_owned());
        report.add(
            &node.at,
            format!("expected whole seconds, at least one, found {}", node.describe()),
            hint,
        );
    }
    found
}

pub(super) fn every_schema() -> Value {
    let text = r"^\s*([0-9.]+[dhms])+\s*$|^\s*\+?[0-9.]+([eE]\+?[0-9]+)?\s*$";
    let seconds = json!({"type": "integer", "minimum": 1, "maximum": MAX_PERIOD_SECONDS});
    json!({"anyOf": [{"type": "string", "pattern": text}, seconds], "examples": ["15m", "1h30m", "1d"]})
}

/// An instant, or a local time of the zone.
fn read_at(word: Word<'_>, zone: Tz, report: &mut Report<'_>) -> Option<Instant> {
    let instant = wall::read(word.text, zone);
    if instant.is_none() {
        let hint = Some("write, for example, `2030-01-31T09:00`, in the schedule's time zone".to_owned());
        report.add(word.at, format!("`{}` is not a time", word.text), hint);
    }
    instant
}

pub(super) fn read_timezone(node: &Node, report: &mut Report<'_>) -> Option<Tz> {
    let word = read::text(node, report)?;
    let zone = word.text.parse().ok();
    if zone.is_none() {
        report.add(word.at, format!("unknown time zone `{}`", word.text), Some(zone_hint(word.text)));
    }
    zone
}

pub(super) fn timezone_schema() -> Value {
    json!({"type": "string", "enum": TZ_VARIANTS.iter().map(|zone| zone.name()).collect::<Vec<_>>()})
}

/// The hint for a time zone that does not exist.
pub fn zone_hint(text: &str) -> String {
    match nearest_zone(text) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write an IANA name, such as `Europe/Berlin`, or `UTC`".to_owned(),
    }
}

/// The zone that was probably meant: in another case, without its region, or misspelled.
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
