//! `ebb backfill`: runs for past dates.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use api::backfills::{BackfillBody, BackfillView, PlanView};
use api::page::Page;
use model::BackfillId;
use reqwest::header::HeaderMap;
use store::Rerun;

use super::connect;
use crate::args::{Backfill, BackfillAction, NewBackfill, Shared};
use crate::client::Client;
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: Backfill) -> Result<ExitCode> {
    let client = connect(shared)?;
    match (arguments.action, arguments.new) {
        (Some(BackfillAction::List { workflow }), _) => {
            let query: Vec<_> = workflow.map(|workflow| ("workflow", workflow)).into_iter().collect();
            let page: Page<BackfillView> = client.get(&["backfills"], &query).await?;
            output::print_list(shared, &page, &page.items, "no backfills", table)?;
        }
        (Some(BackfillAction::Show { id }), _) => {
            let view: BackfillView = client.get(&["backfills", &id.to_string()], &[]).await?;
            output::print(shared, &view, || describe(&view))?;
        }
        (Some(BackfillAction::Pause { id }), _) => post(shared, &client, id, "pause").await?,
        (Some(BackfillAction::Resume { id }), _) => post(shared, &client, id, "resume").await?,
        (Some(BackfillAction::Cancel { id }), _) => post(shared, &client, id, "cancel").await?,
        (None, Some(new)) if new.dry_run => {
            let plan: PlanView = client.post(&["backfills"], HeaderMap::new(), &body(new)).await?;
            output::print(shared, &plan, || describe_plan(&plan))?;
        }
        (None, Some(new)) => {
            let view: BackfillView = client.post(&["backfills"], HeaderMap::new(), &body(new)).await?;
            output::print(shared, &view, || describe(&view))?;
        }
        (None, None) => return Err(anyhow!("name the workflow to backfill, and --from and --to")),
    }
    Ok(ExitCode::SUCCESS)
}

async fn post(shared: &Shared, client: &Client, id: BackfillId, action: &str) -> Result<()> {
    let view: BackfillView =
        client.post(&["backfills", &id.to_string(), action], HeaderMap::new(), &()).await?;
    Ok(output::print(shared, &view, || describe(&view))?)
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

fn describe_plan(plan: &PlanView) -> String {
    let took = match plan.expected_seconds {
        Some(seconds) => {
            format!("about {}, based on its last runs", output::span(chrono::TimeDelta::seconds(seconds)))
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

fn describe(view: &BackfillView) -> String {
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
    let head = ["BACKFILL", "WORKFLOW", "FROM", "TO", "STATE", "DONE", "CREATED"];
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
    output::table(head, rows)
}
