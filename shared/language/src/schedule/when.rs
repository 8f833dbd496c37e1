//! The instants of a schedule: `cron`, `every` or `at`, and the time zone they are read in.

use calendar::pattern::ALIASES;
use calendar::{Calendar, Pattern, wall};
use chrono_tz::{TZ_VARIANTS, Tz};
use model::{Instant, When};

use super::MAX_PERIOD_SECONDS;
use crate::diagnostic::Report;
use crate::duration::Duration;
use crate::node::{Data, Node};
use crate::read::{self, Fields, Word};
use crate::suggest;

/// Reads which instants there are: one of three ways of saying so.
pub(super) fn read(fields: &mut Fields<'_>, zone: Option<Tz>, report: &mut Report<'_>) -> Option<When> {
    let at = fields.at;
    let (cron, every, once) = (fields.get("cron"), fields.get("every"), fields.get("at"));
    if [cron, every, once].into_iter().flatten().count() > 1 {
        let hint = Some("make it a list of several schedules, each with a `name`".to_owned());
        report.add(at, "a schedule takes one of `cron`, `every` and `at`, but several are given", hint);
    }
    match (cron, every, once) {
        (Some(node), ..) => read_cron(node, report).map(When::Cron),
        (None, Some(node), _) => read_every(node, report).map(When::Every),
        (None, None, Some(node)) => read_at(node, zone, report).map(When::At),
        (None, None, None) => {
            let hint =
                Some("such as `cron: \"0 18 * * 1-5\"`, `every: 15m` or `at: 2030-01-31T09:00`".to_owned());
            report.add(at, "a schedule needs `cron`, `every` or `at`", hint);
            None
        }
    }
}

/// A pattern of five or six fields, with aliases written out.
fn read_cron(node: &Node, report: &mut Report<'_>) -> Option<String> {
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
                let place = (!whole).then(|| report.inside(word.at, word.text, field, mistake.at.start));
                report.add(place.as_ref().unwrap_or(word.at), mistake.message, mistake.hint);
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
            true => Some("nothing here is ever booted; choose a time".to_owned()),
            false => suggest::hint(name, ALIASES.iter().map(|(alias, _)| *alias)),
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

fn read_every(node: &Node, report: &mut Report<'_>) -> Option<u32> {
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

/// An instant, or a time that clocks of the zone show.
fn read_at(node: &Node, zone: Option<Tz>, report: &mut Report<'_>) -> Option<Instant> {
    let word = read::text(node, report)?;
    let instant = wall::read(word.text, zone.unwrap_or(Tz::UTC));
    if instant.is_none() {
        let hint = Some("write, for example, `2030-01-31T09:00`, in the schedule's time zone".to_owned());
        report.add(word.at, format!("`{}` is not a time", word.text), hint);
    }
    instant
}

/// The time zone that a schedule names; UTC unless it names one. None if there is no such zone.
pub(super) fn read_timezone(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<Tz> {
    let Some(node) = fields.get("timezone") else { return Some(Tz::UTC) };
    let word = read::text(node, report)?;
    let zone = word.text.parse().ok();
    if zone.is_none() {
        report.add(word.at, format!("unknown time zone `{}`", word.text), Some(zone_hint(word.text)));
    }
    zone
}

/// What to say of a zone that there is not.
pub fn zone_hint(text: &str) -> String {
    match nearest_zone(text) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write an IANA name, such as `Europe/Berlin`, or `UTC`".to_owned(),
    }
}

/// The zone that was meant: in other letters, without its region, or misspelled.
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
