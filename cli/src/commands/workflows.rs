//! `ebb workflows`: lists, pauses and resumes workflows.

use std::process::ExitCode;

use anyhow::Result;
use api::views::WorkflowView;
use reqwest::header::HeaderMap;
use serde_json::json;

use super::connect;
use crate::args::{ListWorkflows, Shared, WorkflowAction, Workflows};
use crate::client::{Client, Follower};
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: Workflows) -> Result<ExitCode> {
    let client = connect(shared)?;
    let (path, name, body) = match arguments.action {
        None => return list(shared, &client, ListWorkflows { tag: None, text: None, sort: None }).await,
        Some(WorkflowAction::List(wanted)) => return list(shared, &client, wanted).await,
        Some(WorkflowAction::Pause { name, reason }) => ("pause", name, json!({ "reason": reason })),
        Some(WorkflowAction::Resume { name, missed }) => ("resume", name, json!({ "missed": missed })),
    };
    let done: WorkflowView = client.post(&["workflows", &name, path], HeaderMap::new(), &body).await?;
    match shared.json {
        true => output::json(&done)?,
        false => output::line(words(&done))?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(shared: &Shared, client: &Client, wanted: ListWorkflows) -> Result<ExitCode> {
    let query = [("tag", wanted.tag), ("text", wanted.text), ("sort", wanted.sort)];
    let query: Vec<_> = query.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let found: Vec<WorkflowView> = Follower::new(&["workflows"], &query).new_items(client).await?;
    if shared.json {
        output::json(&json!({ "items": found }))?;
    } else if found.is_empty() {
        output::line("no workflows")?;
    } else {
        output::line(table(&found))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn words(workflow: &WorkflowView) -> String {
    let name = &workflow.name;
    match &workflow.pause {
        Some(pause) => format!(
            "{name} was paused by {} at {}: no new runs start, existing runs continue\n\
             resume it: ebb workflows resume {name}",
            pause.by,
            output::time(pause.at)
        ),
        None => format!("{name} is active"),
    }
}

fn table(workflows: &[WorkflowView]) -> String {
    let head = ["WORKFLOW", "VERSION", "TASKS", "CHANGED", "TAGS", ""].map(String::from).to_vec();
    let rows = workflows.iter().map(|workflow| {
        vec![
            workflow.name.clone(),
            format!("v{}", workflow.version),
            workflow.tasks.to_string(),
            output::time(workflow.updated_at),
            workflow.tags.join(", "),
            if workflow.pause.is_some() { "paused".into() } else { String::new() },
        ]
    });
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    output::table(&rows, |_, _, cell| cell)
}
