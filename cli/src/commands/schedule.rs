//! `ebb schedule`: shows, pauses and resumes schedules.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use api::drift::DriftList;
use api::schedules::{DriftView, NextList, NextView, PauseBody, ResumeBody, ScheduleList, ScheduleView};
use bus::SystemClock;
use calendar::{Calendar, Pattern, wall};
use chrono_tz::Tz;
use model::{Catchup, Clock, Instant};
use reqwest::header::HeaderMap;

mod preview;

use super::connect;
use crate::args::{NextInstants, Schedule, Shared};
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: Schedule) -> Result<ExitCode> {
    match arguments {
        Schedule::Next(arguments) => return next(shared, arguments).await,
        Schedule::List { workflow } => {
            let client = connect(shared)?;
            let items: Vec<ScheduleView> = match &workflow {
                Some(workflow) => client.get::<ScheduleList>(&["schedules", workflow], &[]).await?.items,
                None => client.all(&["schedules"]).await?,
            };
            show(shared, &ScheduleList { items })?;
        }
        Schedule::Drift { workflow, count } => {
            let query = [("count", count.to_string())];
            let list: DriftList = connect(shared)?.get(&["schedules", &workflow, "drift"], &query).await?;
            preview::drift(shared, &list)?;
        }
        Schedule::Pause(arguments) => {
            let body = PauseBody { name: arguments.name, reason: arguments.reason };
            let path = ["schedules", &arguments.workflow, "pause"];
            show(shared, &connect(shared)?.post(&path, HeaderMap::new(), &body).await?)?;
        }
        Schedule::Resume(arguments) if arguments.dry_run => {
            let path = ["schedules", &arguments.workflow];
            let mut list: ScheduleList = connect(shared)?.get(&path, &[]).await?;
            let wanted = |name: &String| arguments.name.as_ref().is_none_or(|wanted| wanted == name);
            list.items.retain(|schedule| wanted(&schedule.name));
            preview::missed(shared, &list)?;
        }
        Schedule::Resume(arguments) => {
            let missed = arguments.missed.as_deref().and_then(Catchup::named);
            let body = ResumeBody { name: arguments.name, missed };
            let path = ["schedules", &arguments.workflow, "resume"];
            show(shared, &connect(shared)?.post(&path, HeaderMap::new(), &body).await?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn next(shared: &Shared, arguments: NextInstants) -> Result<ExitCode> {
    let items = match (&arguments.name, &arguments.cron) {
        (Some(name), _) => {
            let mut query = vec![("count", arguments.count.to_string())];
            query.extend(arguments.from.clone().map(|from| ("from", from)));
            connect(shared)?.get::<NextList>(&["schedules", name, "next"], &query).await?.items
        }
        (None, cron) => of_pattern(cron.as_deref().unwrap_or_default(), &arguments)?,
    };
    if shared.json {
        output::json(&items.iter().map(|next| next.at).collect::<Vec<Instant>>())?;
    } else if items.is_empty() {
        output::line("no further instants")?;
    } else {
        let several = items.iter().any(|next| next.schedule != items[0].schedule);
        let row = |next: &NextView| {
            let name = several.then(|| next.schedule.clone());
            [output::time(next.at), next.local.clone()].into_iter().chain(name).collect()
        };
        output::line(output::columns(&items.iter().map(row).collect::<Vec<_>>(), |_, _, cell| cell))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The instants of a pattern, without a server.
fn of_pattern(cron: &str, arguments: &NextInstants) -> Result<Vec<NextView>> {
    let zone = arguments.timezone.as_deref().unwrap_or("UTC");
    let zone: Tz =
        zone.parse().map_err(|_| anyhow!("unknown time zone `{zone}` ({})", language::zone_hint(zone)))?;
    let pattern = Pattern::read(cron).map_err(|mistakes| {
        let problems = mistakes.into_iter().map(|mistake| match mistake.hint {
            Some(hint) => format!("{} ({hint})", mistake.message),
            None => mistake.message,
        });
        anyhow!("{}", problems.collect::<Vec<_>>().join("\n"))
    })?;
    let from = match &arguments.from {
        Some(text) => wall::read(text, zone).ok_or_else(|| {
            anyhow!(
                "invalid --from `{text}`; expected a time such as 2026-01-31T18:00 or 2026-01-31T18:00:00Z"
            )
        })?,
        None => SystemClock.now(),
    };
    let view = |at: Instant| {
        let local = wall::shown(zone, at).format("%Y-%m-%d %H:%M:%S %Z").to_string();
        NextView { schedule: String::new(), at, local }
    };
    Ok(Calendar::cron(pattern, zone).following(from).take(arguments.count as usize).map(view).collect())
}

fn show(shared: &Shared, list: &ScheduleList) -> Result<()> {
    if shared.json {
        output::json(list)?;
    } else if list.items.is_empty() {
        output::line("no schedules")?;
    } else {
        output::line(table(&list.items))?;
    }
    Ok(())
}

fn drifted(drift: &DriftView) -> String {
    match (drift.p50_ms, drift.p99_ms) {
        (Some(p50), Some(p99)) => format!("≤ {p50}/{p99} ms"),
        _ if drift.runs > 0 => "over a minute".into(),
        _ => String::new(),
    }
}

fn table(schedules: &[ScheduleView]) -> String {
    let head = ["WORKFLOW", "SCHEDULE", "WHEN", "ZONE", "NEXT", "DRIFT P50/P99", "STATE"];
    let rows = schedules.iter().map(|schedule| {
        let every = schedule.every_seconds.map(|seconds| format!("every {seconds} s"));
        let at = schedule.at.map(|at| format!("at {}", output::time(at)));
        let missed = schedule.missed.as_ref();
        let missed =
            missed.map(|missed| format!(", {}{} missed", missed.count, if missed.more { "+" } else { "" }));
        let state = if schedule.paused { "paused" } else { "on" };
        let problem = schedule.problem.as_ref().map(|problem| format!(": {problem}")).unwrap_or_default();
        vec![
            schedule.workflow.clone(),
            schedule.name.clone(),
            schedule.cron.clone().or(every).or(at).unwrap_or_default(),
            schedule.timezone.clone(),
            schedule.next.first().map(|next| output::time(next.at)).unwrap_or_default(),
            drifted(&schedule.drift),
            format!("{state}{}{problem}", missed.unwrap_or_default()),
        ]
    });
    output::table(head, rows)
}
