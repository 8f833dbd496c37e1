//! `ebb timers`: pending timers.

use std::process::ExitCode;

use anyhow::Result;
use api::page::Page;
use api::timers::TimerView;

use super::connect;
use crate::args::{Shared, Timers};
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: Timers) -> Result<ExitCode> {
    let mut query = vec![("limit", arguments.limit.to_string())];
    query.extend(arguments.run.map(|run| ("run", run.to_string())));
    query.extend(arguments.workflow.map(|workflow| ("workflow", workflow)));
    let page: Page<TimerView> = connect(shared)?.get(&["timers"], &query).await?;
    if shared.json {
        output::json(&page)?;
    } else if page.items.is_empty() {
        output::line("no timers")?;
    } else {
        output::line(table(&page.items))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn table(timers: &[TimerView]) -> String {
    let head = ["DUE", "RUN", "WORKFLOW", "KIND", "WHY"].map(String::from).to_vec();
    let rows = timers.iter().map(|timer| {
        let due = if timer.overdue { " (overdue)" } else { "" };
        vec![
            format!("{}{due}", output::time(timer.wake_at)),
            timer.run.to_string(),
            timer.workflow.clone(),
            timer.kind.clone(),
            timer.why.clone(),
        ]
    });
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    output::table(&rows, |_, _, cell| cell)
}
