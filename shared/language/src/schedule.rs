//! When a workflow runs by itself: cron, intervals and single times, time zones, and what becomes of missed instants.

mod when;

use std::collections::BTreeMap;

use model::{Catchup, InputSpec, Overlap, Schedule};
use serde_json::{Map, Value};

use crate::concurrency::{MAX_RUNS, POLICIES};
use crate::diagnostic::Report;
use crate::inputs;
use crate::names;
use crate::node::{Data, Node};
use crate::read::{self, Fields};
use crate::template::{self, Names};

pub use when::zone_hint;

/// What becomes of missed instants.
pub(crate) const CATCHUPS: [&str; 3] = ["all", "latest", "none"];
/// No schedule makes more runs at once.
pub(crate) const MAX_CAP: u32 = 1_000;
/// No workflow has more schedules.
pub(crate) const MAX_SCHEDULES: usize = 100;
/// No interval is longer: ten years.
pub(crate) const MAX_PERIOD_SECONDS: u32 = 10 * 366 * 86_400;

/// Reads `schedule` or `schedules`: one, or a list of several with names.
pub(crate) fn read(fields: &mut Fields<'_>, inputs: &[InputSpec], report: &mut Report<'_>) -> Vec<Schedule> {
    let (one, many) = (fields.get("schedule"), fields.get("schedules"));
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
    let mut fields = Fields::of(node, "a schedule", report)?;
    let name = if alone { fields.get("name") } else { fields.require("name") };
    let name = name.and_then(|node| read::text(node, report));
    name.iter().for_each(|name| names::check(*name, &names::PLAIN, report));
    let zone = when::read_timezone(&mut fields, report);
    let when = when::read(&mut fields, zone, report);
    let given = fields.get("inputs");
    let catchup = fields.get("catchup").map(|node| read_catchup(node, report));
    let cap = fields.get("cap").and_then(|node| read::whole(node, 1..=MAX_CAP, report));
    let max_active_runs =
        fields.get("max_active_runs").and_then(|node| read::whole(node, 1..=MAX_RUNS, report));
    let overlap = fields.get("overlap").and_then(|node| read::choice::<Overlap>(node, &POLICIES, report));
    let paused = fields.get("paused").and_then(|node| read::flag(node, report));
    fields.finish(report);
    let given = given.map(|node| read_inputs(node, inputs, report)).unwrap_or_default();
    for input in inputs.iter().filter(|input| input.default.is_none() && !given.contains_key(&input.name)) {
        let hint =
            format!("give it one, such as `{}: {{default: …}}`, or `inputs` to the schedule", input.name);
        let message = format!("the schedule gives no input `{}`, which has no default", input.name);
        report.add(&node.at, message, Some(hint));
    }
    Some(Schedule {
        name: name.map_or(Schedule::ONLY, |name| name.text).to_owned(),
        when: when?,
        timezone: zone?.name().to_owned(),
        inputs: given,
        catchup: catchup.unwrap_or(Some(Catchup::None))?,
        cap,
        max_active_runs,
        overlap,
        paused: paused.unwrap_or_default(),
    })
}

/// What a schedule gives its runs; texts may be templates over `run`.
fn read_inputs(node: &Node, declared: &[InputSpec], report: &mut Report<'_>) -> Map<String, Value> {
    let mut given = Map::new();
    for (key, value) in read::entries(node, "`inputs`", report) {
        match declared.iter().find(|input| input.name == key.name) {
            Some(input) => {
                template::check(value, Some(&Names::of_run(&[])), report);
                check_given(input, value, report);
            }
            None => {
                let hint = crate::suggest::hint(&key.name, inputs::names(declared));
                report.add(&key.at, format!("the workflow has no input `{}`", key.name), hint);
            }
        }
        given.insert(key.name.clone(), value.to_json());
    }
    given
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
