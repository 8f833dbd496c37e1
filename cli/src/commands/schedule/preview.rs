//! What a schedule missed, what each choice would do, and how late its runs started.

use anyhow::Result;
use api::drift::{DriftList, LastDrift};
use api::schedules::{MissedView, ScheduleList, ScheduleView};
use model::Schedule;

use crate::args::Shared;
use crate::output;

/// What each choice would do with missed instants.
pub(super) fn missed(shared: &Shared, list: &ScheduleList) -> Result<()> {
    let text = || list.items.iter().map(describe).collect::<Vec<_>>().join("\n");
    Ok(output::print(shared, list, text)?)
}

fn describe(schedule: &ScheduleView) -> String {
    let name = format!("{}/{}", schedule.workflow, schedule.name);
    match &schedule.missed {
        None if schedule.paused => format!("{name} missed nothing"),
        None => {
            let workflow = &schedule.workflow;
            let which = if schedule.name == Schedule::ONLY {
                String::new()
            } else {
                format!(" --schedule {}", schedule.name)
            };
            format!(
                "{name} is not paused and missed nothing\n\
                 for instants that `catchup` skipped: ebb backfill {workflow}{which} --from … --to … --dry-run"
            )
        }
        Some(missed) => choices(&name, schedule, missed),
    }
}

fn choices(name: &str, schedule: &ScheduleView, missed: &MissedView) -> String {
    let count = format!("{}{}", missed.count, if missed.more { "+" } else { "" });
    let (first, latest) = (output::time(missed.first), output::time(missed.latest));
    let mut lines = vec![format!("{name} missed {count} instants, from {first} to {latest}")];
    lines.extend(missed.dates.iter().map(|date| format!("  {}  {}", output::time(date.at), date.local)));
    if missed.more || missed.count > missed.dates.len() {
        lines.push("  …".into());
    }
    lines.push(format!("--missed all     {count} runs"));
    lines.push(format!("--missed latest  1 run, of {latest}"));
    lines.push("--missed none    no run".into());
    lines.push(format!("default (its `catchup`): {}", schedule.catchup.name()));
    lines.join("\n")
}

/// How late the last runs of schedules started.
pub(super) fn drift(shared: &Shared, list: &DriftList) -> Result<()> {
    let head = ["SCHEDULE", "RUNS", "P50", "P99", "MAX"];
    let shown = |late: Option<i64>| late.map(|late| format!("{late} ms")).unwrap_or_default();
    let row = |drift: &LastDrift| {
        let late = [drift.p50_ms, drift.p99_ms, drift.max_ms].map(shown);
        [drift.schedule.clone(), drift.runs.to_string()].into_iter().chain(late).collect()
    };
    Ok(output::print(shared, list, || output::table(head, list.items.iter().map(row)))?)
}
