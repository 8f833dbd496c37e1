//! When a workflow runs by itself: cron, intervals and single times, time zones, and what becomes of missed instants.

mod when;

use std::collections::BTreeMap;

use chrono_tz::Tz;
use model::{Catchup, InputSpec, Overlap, Schedule};
use serde_json::{Map, Value, json};

use crate::concurrency::{MAX_RUNS, POLICIES};
use crate::diagnostic::Report;
use crate::inputs::{self, NO_INPUTS};
use crate::names;
use crate::node::{Data, Key, Node};
use crate::read::{self, Fields, Word};
use crate::shape::{
    self, Given, Record, choice, custom, entries, exactly_one, flag, given, record, text, whole,
};
use crate::template::{self, Names};

pub use when::zone_hint;

const CATCHUPS: [&str; 3] = ["all", "latest", "none"];
/// The maximum number of catch-up runs created at once.
const MAX_CAP: u32 = 1_000;
/// The maximum number of schedules of a workflow.
const MAX_SCHEDULES: usize = 100;

record! {
    /// A schedule as written.
    struct ScheduleParts<'n> as "a schedule" {
        /// The name, if there are several: lower-case letters, digits and `-`.
        name: Word<'n> = shape::name(&names::PLAIN),
        /// Minute, hour, day of month, month, day of week; or `@daily` and the like.
        cron: Given<'n, String> = given(custom(when::read_cron, when::cron_schema)),
        /// The interval in real time, counted from 1970-01-01 UTC.
        every: Given<'n, u32> = given(custom(when::read_every, when::every_schema)),
        /// The only instant, in local time of its time zone.
        at: Given<'n, Word<'n>> = given(text()),
        /// The time zone; default UTC.
        timezone: Given<'n, Tz> = given(custom(when::read_timezone, when::timezone_schema)),
        /// The inputs of the runs. Templates may name `run`.
        inputs: &'n [(Key, Node)] = entries("`inputs`"),
        /// Which missed instants get a run: `all` (or `true`), the `latest`, or `none` (or `false`; the default).
        catchup: Catchup = custom(read_catchup, catchup_schema),
        /// The maximum number of catch-up runs created at once; default 100. The rest follow a minute later.
        cap: u32 = whole(1..=MAX_CAP),
        /// The maximum number of active runs; further ones wait.
        max_active_runs: u32 = whole(1..=MAX_RUNS),
        /// The treatment of a run beyond the limit: it waits (`queue`), cancels earlier ones
        /// (`cancel_previous`) or is not created (`skip`).
        overlap: Overlap = choice(&POLICIES),
        /// Whether the schedule is paused.
        paused: bool = flag(),
    }
    where exactly_one(&["cron", "every", "at"])
}

/// One schedule, or several with names.
pub(crate) fn schema() -> Value {
    let one = ScheduleParts::schema();
    let named = json!({"allOf": [one, {"required": ["name"]}]});
    json!({"anyOf": [
        one,
        {"type": "array", "maxItems": 1, "items": one},
        {"type": "array", "minItems": 2, "maxItems": MAX_SCHEDULES, "items": named},
    ]})
}

/// Reads `schedule` or `schedules`: one, or a list of several with names.
pub(crate) fn read(
    one: Option<&Node>,
    many: Option<&Node>,
    inputs: &[InputSpec],
    report: &mut Report<'_>,
) -> Vec<Schedule> {
    if let (Some(_), Some(many)) = (one, many) {
        let hint = Some("put all of them into `schedules`".to_owned());
        report.add(&many.at, "`schedule` and `schedules` mean the same; use one of the two", hint);
    }
    let Some(node) = one.or(many) else { return Vec::new() };
    let Data::List(entries) = &node.data else {
        return read_one(node, true, inputs, report).into_iter().collect();
    };
    if let Some(first_too_many) = entries.get(MAX_SCHEDULES) {
        let message = format!("there are {} schedules, more than the {MAX_SCHEDULES} allowed", entries.len());
        report.add(&first_too_many.at, message, None);
    }
    let alone = entries.len() == 1;
    let mut taken = BTreeMap::new();
    let mut schedules = Vec::new();
    for entry in entries.iter().take(MAX_SCHEDULES) {
        let Some(schedule) = read_one(entry, alone, inputs, report) else { continue };
        if let Some(line) = taken.insert(schedule.name.clone(), entry.at.line) {
            let message = format!("the schedule `{}` is already defined in line {line}", schedule.name);
            report.add(&entry.at, message, Some("rename one of the two".to_owned()));
        }
        schedules.push(schedule);
    }
    schedules
}

fn read_one(node: &Node, alone: bool, inputs: &[InputSpec], report: &mut Report<'_>) -> Option<Schedule> {
    if let Data::Text(text) = &node.data {
        let hint = Some(format!("write {{cron: {text:?}}}"));
        report.add(&node.at, format!("a schedule must be a mapping, but this is {}", node.describe()), hint);
        return None;
    }
    let mut fields = Fields::of(node, ScheduleParts::WHAT, report)?;
    if !alone {
        fields.require("name");
    }
    let parts = ScheduleParts::take(&mut fields, report);
    fields.finish(report);
    let zone = parts.timezone.map_or(Some(Tz::UTC), |given| given.value);
    let when = when::read(&parts, zone.unwrap_or(Tz::UTC), node, report);
    let given = read_inputs(parts.inputs.unwrap_or_default(), inputs, report);
    for input in inputs.iter().filter(|input| input.default.is_none() && !given.contains_key(&input.name)) {
        let hint =
            format!("give it one, such as `{}: {{default: …}}`, or `inputs` to the schedule", input.name);
        let message = format!("the schedule gives no input `{}`, which has no default", input.name);
        report.add(&node.at, message, Some(hint));
    }
    Some(Schedule {
        name: parts.name.map_or(Schedule::ONLY, |name| name.text).to_owned(),
        when: when?,
        timezone: zone?.name().to_owned(),
        inputs: given,
        catchup: parts.catchup.unwrap_or(Catchup::None),
        cap: parts.cap,
        max_active_runs: parts.max_active_runs,
        overlap: parts.overlap,
        paused: parts.paused.unwrap_or_default(),
    })
}

/// The inputs that a schedule gives its runs; texts may be templates over `run`.
fn read_inputs(
    entries: &[(Key, Node)],
    declared: &[InputSpec],
    report: &mut Report<'_>,
) -> Map<String, Value> {
    let known: BTreeMap<&str, &InputSpec> =
        declared.iter().map(|input| (input.name.as_str(), input)).collect();
    for (key, value) in entries {
        match known.get(key.name.as_str()) {
            Some(input) => {
                template::check(value, Some(&Names::of_run(&NO_INPUTS)), report);
                check_given(input, value, report);
            }
            None => {
                let hint = report.suggest(&key.name, inputs::names(declared));
                report.add(&key.at, format!("the workflow has no input `{}`", key.name), hint);
            }
        }
    }
    entries.iter().map(|(key, value)| (key.name.clone(), value.to_json())).collect()
}

/// Reports a value that the input would not take; what a template gives is known only later.
fn check_given(input: &InputSpec, node: &Node, report: &mut Report<'_>) {
    let value = node.to_json();
    if let Some((message, hint)) = inputs::refusal(input, &value).filter(|_| template::is_plain(&value)) {
        report.add(&node.at, format!("the input `{}` does not take this ({message})", input.name), hint);
    }
}

fn read_catchup(node: &Node, report: &mut Report<'_>) -> Option<Catchup> {
    match node.data {
        Data::Bool(true) => Some(Catchup::All),
        Data::Bool(false) => Some(Catchup::None),
        _ => read::choice(node, &CATCHUPS, report),
    }
}

fn catchup_schema() -> Value {
    let words = [true, false].map(Value::from).into_iter().chain(CATCHUPS.map(Value::from));
    json!({"enum": words.collect::<Vec<_>>()})
}
