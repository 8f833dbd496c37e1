//! `ebb backfill`: runs for past dates.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use api::backfills::{BackfillBody, BackfillView, PlanView};
use api::page::Page;
use model::BackfillId;
use reqwest::header::HeaderMap;
use serde::Serialize;
use store::Rerun;

use super::connect;
use crate::args::{Backfill, BackfillAction, NewBackfill, Shared};
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: Backfill) -> Result<ExitCode> {
    let client = connect(shared)?;
    match (arguments.action, arguments.new) {
        (Some(BackfillAction::List { workflow }), _) => {
            let query: Vec<_> = workflow.map(|workflow| ("workflow", workflow)).into_iter().collect();
            let page: Page<BackfillView> = client.get(&["backfills"], &query).await?;
            report(shared, &page, |page| table(&page.items))?;
        }
        (Some(BackfillAction::Show { id }), _) => {
            let view: BackfillView = client.get(&["backfills", &id.to_string()], &[]).await?;
            report(shared, &view, words)?;
        }
        (Some(action), _) => {
            let (id, what) = steered(&action);
            let path = ["backfills", &id.to_string(), what];
            let view: BackfillView = client.post(&path, HeaderMap::new(), &()).await?;
            report(shared, &view, words)?;
        }
        (None, Some(new)) if new.dry_run => {
            let plan: PlanView = client.post(&["backfills"], HeaderMap::new(), &body(new)).await?;
            report(shared, &plan, plan_words)?;
        }
        (None, Some(new)) => {
            let view: BackfillView = client.post(&["backfills"], HeaderMap::new(), &body(new)).await?;
            report(shared, &view, words)?;
        }
        (None, None) => return Err(anyhow!("name the workflow to backfill, and --from and --to")),
    }
    Ok(ExitCode::SUCCESS)
}

fn steered(action: &BackfillAction) -> (BackfillId, &'static str) {
    match action {
        BackfillAction::Pause { id } => (*id, "pause"),
        BackfillAction::Resume { id } => (*id, "resume"),
        BackfillAction::Cancel { id } => (*id, "cancel"),
        BackfillAction::Show { id } => (*id, ""),
        BackfillAction::List { .. } => (BackfillId(uuid::Uuid::nil()), ""),
    }
}

fn body(new: NewBackfill) -> BackfillBody {
    let rerun = Rerun::ALL.into_iter().find(|rerun| rerun.name() == new.rerun).unwrap_or_default();
    BackfillBody {
        workflow: new.name,
        from: new.from,
        to: new.to,
        max_parallel: new.max_parallel,
        weight: new.weight,
        rerun,
        version: new.version,
        schedule: new.schedule,
        dry_run: new.dry_run,
    }
}

fn report<T: Serialize>(shared: &Shared, what: &T, words: impl Fn(&T) -> String) -> Result<()> {
    if shared.json {
        output::json(what)?
    } else {
        output::line(words(what))?
    }
    Ok(())
}

fn plan_words(plan: &PlanView) -> String {
    let took = match plan.expected_seconds {
        Some(seconds) => {
            format!("about {}, judging by its last runs", output::span(chrono::TimeDelta::seconds(seconds)))
        }
        None => "unknown: none of its runs has succeeded yet".to_owned(),
    };
    let mut lines = vec![
        format!(
            "{} dates of {} from {} to {}",
            plan.dates,
            plan.workflow,
            output::time(plan.from),
            output::time(plan.to)
        ),
        format!("{} already have a run", plan.existing),
        format!("{} would get a run ({}), {} at a time", plan.to_run, plan.rerun.name(), plan.max_parallel),
        format!("where slots are scarce, {} of its tasks start for every ten of live runs", plan.weight),
        format!("expected duration: {took}"),
    ];
    lines.extend(plan.first_dates.first().map(|first| format!("first: {}", output::time(*first))));
    lines.join("\n")
}

fn words(view: &BackfillView) -> String {
    let progress: Vec<String> = view.progress.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let problem = view.problem.as_ref().map(|problem| format!("\n{problem}")).unwrap_or_default();
    format!(
        "backfill {} of {} is {}: {} of {} dates done ({}){problem}",
        view.id,
        view.workflow,
        view.state.name(),
        view.ended,
        view.dates,
        progress.join(", ")
    )
}

fn table(backfills: &[BackfillView]) -> String {
    if backfills.is_empty() {
        return "no backfills".to_owned();
    }
    let head = ["BACKFILL", "WORKFLOW", "FROM", "TO", "STATE", "DONE", "CREATED"].map(String::from).to_vec();
    let rows = backfills.iter().map(|view| {
        vec![
            view.id.to_string(),
            view.workflow.clone(),
            output::time(view.from),
            output::time(view.to),
            view.state.name().to_owned(),
            format!("{}/{}", view.ended, view.dates),
            output::time(view.created_at),
        ]
    });
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    output::table(&rows, |_, _, cell| cell)
}
