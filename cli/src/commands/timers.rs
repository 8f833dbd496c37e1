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
    output::print_list(shared, &page, &page.items, "no timers", table)?;
    Ok(ExitCode::SUCCESS)
}

fn table(timers: &[TimerView]) -> String {
    let head = ["DUE", "RUN", "WORKFLOW", "KIND", "WHY"];
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
    output::table(head, rows)
}
