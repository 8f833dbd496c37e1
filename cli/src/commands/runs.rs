//! `ebb runs`: lists runs.

use std::process::ExitCode;

use anyhow::Result;
use api::page::Page;
use api::views::RunView;

use super::connect;
use crate::args::{Runs, Shared};
use crate::client::Client;
use crate::output::{self, Palette};

const STATE_COLUMN: usize = 2;

/// The maximum number of pages to fetch for the requested number of runs.
const MAX_PAGES: usize = 100;

pub(super) async fn run(shared: &Shared, arguments: &Runs) -> Result<ExitCode> {
    let mut query = vec![("limit", arguments.limit.to_string())];
    let filter = &arguments.filter;
    query.extend(filter.workflow.clone().map(|workflow| ("workflow", workflow)));
    query.extend(filter.state.map(|state| ("state", state.name().to_owned())));
    query.extend(filter.parent.map(|parent| ("parent", parent.to_string())));
    query.extend(filter.label.clone().map(|label| ("label", label)));
    query.extend(filter.created_after.map(|at| ("created_after", at.to_rfc3339())));
    query.extend(filter.created_before.map(|at| ("created_before", at.to_rfc3339())));
    query.extend(arguments.text.clone().map(|text| ("text", text)));
    query.extend(arguments.sort.clone().map(|sort| ("sort", sort)));
    let page = collect(&connect(shared)?, query, arguments.limit).await?;
    output::print_list(shared, &page, &page.items, "no runs", |items| table(items, Palette::of_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

/// The requested number of runs, or all: a page may be shorter although there are more.
async fn collect(client: &Client, mut query: Vec<(&str, String)>, limit: u32) -> Result<Page<RunView>> {
    let mut page: Page<RunView> = client.get(&["runs"], &query).await?;
    for _ in 0..MAX_PAGES {
        let missing = (limit as usize).saturating_sub(page.items.len());
        let Some(cursor) = page.next_cursor.clone().filter(|_| missing > 0) else { break };
        query.retain(|(name, _)| !["cursor", "limit"].contains(name));
        query.extend([("limit", missing.to_string()), ("cursor", cursor)]);
        let more: Page<RunView> = client.get(&["runs"], &query).await?;
        page.items.extend(more.items);
        page.next_cursor = more.next_cursor;
    }
    Ok(page)
}

/// A run's state, and whether it waits for others.
fn state(run: &RunView) -> String {
    let waiting = if run.waiting.is_some() { " (waiting)" } else { "" };
    format!("{}{waiting}", run.state.name())
}

fn table(runs: &[RunView], palette: Palette) -> String {
    let head = ["RUN", "WORKFLOW", "STATE", "CREATED", "TOOK", "ERROR"];
    let rows = runs.iter().map(|run| {
        vec![
            run.id.to_string(),
            format!("{} v{}", run.workflow, run.version),
            state(run),
            output::time(run.created_at),
            output::took(run.started_at, run.finished_at),
            output::first_line(run.error.as_deref().unwrap_or_default()).into(),
        ]
    });
    output::painted_table(head, rows, |run, column, cell| match column {
        STATE_COLUMN => palette.paint(output::run_colour(runs[run].state), cell),
        _ => cell,
    })
}
