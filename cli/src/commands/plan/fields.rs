//! Fields of a definition as text, where JSON is hard to read: schedules, limits, fan-outs, callbacks.

use model::{Call, Callback, Concurrency, FanIn, FanOut, Schedule, Tolerance, When};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The label of a field.
pub(super) fn label(field: &str) -> &str {
    match field.strip_suffix(".count").or(field.strip_suffix(".percent")) {
        Some(tolerance) if tolerance.ends_with("tolerated_failures") => tolerance,
        _ if field == "schedule.cron" => "schedule",
        _ => field,
    }
}

/// A value as text; none if its JSON is readable.
pub(super) fn describe(field: &str, value: &Value) -> Option<String> {
    let last = field.rsplit('.').next().unwrap_or(field);
    match field {
        "schedule" => return schedules(value),
        "concurrency" => return read(value).map(concurrency),
        "concurrency.key" => return None,
        _ if field.starts_with("schedule.") || field.starts_with("concurrency.") => {
            return Some(unquoted(value));
        }
        _ => {}
    }
    match last {
        "fan_out" => read(value).map(fan_out),
        "fan_in" => read(value).map(fan_in),
        "tolerated_failures" => read(value).map(tolerance),
        "percent" if field.ends_with("tolerated_failures.percent") => Some(format!("{value}%")),
        _ if last.ends_with("_seconds") => value.as_u64().map(seconds),
        _ => None,
    }
}

/// The differences between two lists of callbacks, each with its sign.
pub(super) fn callbacks(before: Option<&Value>, after: Option<&Value>) -> Vec<(char, String)> {
    let list = |value: Option<&Value>| value.and_then(read::<Vec<Callback>>).unwrap_or_default();
    let (before, after) = (list(before), list(after));
    let differs = |other: &[Callback], callback: &&Callback| !other.contains(callback);
    let old: Vec<String> = before.iter().filter(|it| differs(&after, it)).map(callback).collect();
    let new: Vec<String> = after.iter().filter(|it| differs(&before, it)).map(callback).collect();
    let removed = old.iter().filter(|it| !new.contains(it)).map(|it| ('-', it.clone()));
    let added = new.iter().map(|it| match old.contains(it) {
        true => ('~', format!("{it}: content")),
        false => ('+', it.clone()),
    });
    removed.chain(added).collect()
}

fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

/// A string without its quotes; any other value as JSON.
fn unquoted(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The name of a value in a definition.
fn named(word: &impl Serialize) -> String {
    serde_json::to_value(word).map(|name| unquoted(&name)).unwrap_or_default()
}

/// One schedule, or several with their names.
fn schedules(value: &Value) -> Option<String> {
    let several = || read::<Vec<Schedule>>(value);
    let named = |one: Schedule| format!("{}: {}", one.name.clone(), schedule(one));
    let several = || several().map(|all| all.into_iter().map(named).collect::<Vec<_>>().join("; "));
    read(value).map(schedule).or_else(several)
}

fn schedule(schedule: Schedule) -> String {
    let most = schedule.max_active_runs.map(|most| format!(", at most {most} at a time")).unwrap_or_default();
    let paused = if schedule.paused { ", paused" } else { "" };
    format!(
        "{} ({}), catchup {}{most}{paused}",
        when(&schedule.when),
        schedule.timezone,
        named(&schedule.catchup)
    )
}

/// The instants of a schedule as text.
fn when(when: &When) -> String {
    match when {
        When::Cron(pattern) => pattern.clone(),
        When::Every(seconds) => format!("every {} s", self::seconds(u64::from(*seconds))),
        When::At(instant) => format!("once at {}", instant.to_rfc3339()),
    }
}

fn concurrency(concurrency: Concurrency) -> String {
    let Concurrency { key, limit, policy } = concurrency;
    let key = key.map(|key| format!(" for each {key}")).unwrap_or_default();
    let runs = if limit == 1 { "run" } else { "runs" };
    format!("{limit} {runs} at a time{key}, policy {}", named(&policy))
}

fn fan_out(fan_out: FanOut) -> String {
    let FanOut { for_each, max_parallel, tolerated_failures, task } = fan_out;
    let most = max_parallel.map(|most| format!(", {most} at a time")).unwrap_or_default();
    let may_fail = match tolerated_failures {
        Tolerance::Count(0) => String::new(),
        some => format!(", {} may fail", tolerance(some)),
    };
    format!("{} for each of {for_each}{most}{may_fail}", task.kind)
}

fn fan_in(fan_in: FanIn) -> String {
    let of = fan_in.field.map(|field| format!(" of {field}")).unwrap_or_default();
    format!("{}{of}", named(&fan_in.aggregation))
}

fn tolerance(tolerance: Tolerance) -> String {
    match tolerance {
        Tolerance::Count(count) => count.to_string(),
        Tolerance::Percent(percent) => format!("{percent}%"),
    }
}

/// A number of seconds, with the larger unit that it is a multiple of.
fn seconds(seconds: u64) -> String {
    match seconds {
        0 => "0".into(),
        _ if seconds.is_multiple_of(86_400) => format!("{seconds} ({} d)", seconds / 86_400),
        _ if seconds.is_multiple_of(3_600) => format!("{seconds} ({} h)", seconds / 3_600),
        _ if seconds.is_multiple_of(60) => format!("{seconds} ({} min)", seconds / 60),
        _ => seconds.to_string(),
    }
}

fn callback(callback: &Callback) -> String {
    let on = named(&callback.on).replace('_', " ");
    let whom = match &callback.call {
        Call::Webhook { url, .. } => format!("webhook {url}"),
        Call::Message { topic, .. } => format!("message to {topic}"),
        Call::Workflow { workflow, .. } => format!("run of {workflow}"),
    };
    format!("callback on {on}: {whom}")
}
