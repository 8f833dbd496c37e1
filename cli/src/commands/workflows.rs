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
    output::print(shared, &done, || describe(&done))?;
    Ok(ExitCode::SUCCESS)
}

async fn list(shared: &Shared, client: &Client, wanted: ListWorkflows) -> Result<ExitCode> {
    let query = [("tag", wanted.tag), ("text", wanted.text), ("sort", wanted.sort)];
    let query: Vec<_> = query.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let found: Vec<WorkflowView> = Follower::new(&["workflows"], &query).new_items(client).await?;
    output::print_list(shared, &json!({ "items": found }), &found, "no workflows", table)?;
    Ok(ExitCode::SUCCESS)
}

fn describe(workflow: &WorkflowView) -> String {
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
    let head = ["WORKFLOW", "VERSION", "TASKS", "CHANGED", "TAGS", ""];
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
    output::table(head, rows)
}
