//! `ebb triggers`: lists, shows, pauses and resumes triggers.

use std::process::ExitCode;

use anyhow::Result;
use api::page::Page;
use api::triggers::{PauseBody, TriggerView};
use reqwest::header::HeaderMap;
use serde_json::json;

use super::connect;
use crate::args::{ListTriggers, Shared, TriggerAction, TriggerName, Triggers};
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: Triggers) -> Result<ExitCode> {
    match arguments.action {
        None => list(shared, arguments.list).await,
        Some(TriggerAction::List(filter)) => list(shared, filter).await,
        Some(TriggerAction::Show(TriggerName { workflow, name })) => {
            let view = connect(shared)?.get(&["triggers", &workflow, &name], &[]).await?;
            print(shared, &view)
        }
        Some(TriggerAction::Pause { of: TriggerName { workflow, name }, reason }) => {
            let body = PauseBody { reason };
            let path = ["triggers", &workflow, &name, "pause"];
            print(shared, &connect(shared)?.post(&path, HeaderMap::new(), &body).await?)
        }
        Some(TriggerAction::Resume(TriggerName { workflow, name })) => {
            let path = ["triggers", &workflow, &name, "resume"];
            print(shared, &connect(shared)?.post(&path, HeaderMap::new(), &json!({})).await?)
        }
    }
}

async fn list(shared: &Shared, filter: ListTriggers) -> Result<ExitCode> {
    let mut query = vec![("limit", filter.limit.to_string())];
    query.extend(filter.workflow.map(|workflow| ("workflow", workflow)));
    let page: Page<TriggerView> = connect(shared)?.get(&["triggers"], &query).await?;
    output::print_list(shared, &page, &page.items, "no triggers", table)?;
    Ok(ExitCode::SUCCESS)
}

fn table(triggers: &[TriggerView]) -> String {
    let head = ["WORKFLOW", "TRIGGER", "KIND", "LAST EVENT", "NEXT", "STATE"];
    let rows = triggers.iter().map(|trigger| {
        vec![
            trigger.workflow.clone(),
            trigger.name.clone(),
            trigger.kind.clone(),
            trigger.last_event.as_ref().map(|event| output::time(event.at)).unwrap_or_default(),
            trigger.next_at.map(output::time).unwrap_or_default(),
            state(trigger),
        ]
    });
    output::table(head, rows)
}

fn state(trigger: &TriggerView) -> String {
    match (&trigger.paused_reason, trigger.failures) {
        (Some(reason), _) => format!("paused: {reason}"),
        (None, 0) => "active".to_owned(),
        (None, failures) => format!("active, {failures} polls failed"),
    }
}

fn print(shared: &Shared, trigger: &TriggerView) -> Result<ExitCode> {
    if shared.json {
        output::json(trigger)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(table(std::slice::from_ref(trigger)))?;
    output::line(format!("on: {}", trigger.on))?;
    if let Some(endpoint) = &trigger.endpoint {
        output::line(format!("endpoint: POST {endpoint}"))?;
    }
    if !trigger.watermark.is_null() {
        output::line(format!("watermark: {}", trigger.watermark))?;
    }
    for event in &trigger.events {
        let run = event.run.map(|run| format!(" → run {run}")).unwrap_or_default();
        output::line(format!("{} {}{run}", output::time(event.at), event.what))?;
    }
    Ok(ExitCode::SUCCESS)
}
