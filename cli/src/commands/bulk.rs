//! `ebb bulk`: one action on many runs, in batches, with progress.

use std::process::ExitCode;

use anyhow::Result;
use api::bulk::{BatchView, BulkBody, BulkFilter, CountView};
use reqwest::header::HeaderMap;

use super::{FAILED, connect};
use crate::args::{Bulk, Shared};
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: Bulk) -> Result<ExitCode> {
    let client = connect(shared)?;
    let filter = BulkFilter {
        workflow: arguments.workflow,
        state: arguments.state.map(|state| state.name().to_owned()),
        parent: arguments.parent,
        label: arguments.label,
        created_after: arguments.created_after,
        created_before: arguments.created_before,
    };
    let (action, dry_run, reason) = (arguments.action, arguments.dry_run, arguments.reason);
    let mut body = BulkBody { filter, action, dry_run, reason, cursor: None };
    if dry_run {
        let found: CountView = client.post(&["runs", "bulk"], HeaderMap::new(), &body).await?;
        return report_count(shared, &body.action, &found);
    }
    let mut all = BatchView::default();
    loop {
        let batch: BatchView = client.post(&["runs", "bulk"], HeaderMap::new(), &body).await?;
        body.cursor = batch.next_cursor.clone();
        add(&mut all, batch);
        if body.cursor.is_none() {
            break;
        }
        eprintln!("{} …", summary(&body.action, &all));
    }
    if shared.json {
        output::json(&all)?;
    } else {
        output::line(summary(&body.action, &all))?;
        for error in &all.errors {
            output::line(format!("run {}: {}", error.run, error.message))?;
        }
    }
    Ok(if all.failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn add(all: &mut BatchView, batch: BatchView) {
    all.count += batch.count;
    all.applied += batch.applied;
    all.stale += batch.stale;
    all.failed += batch.failed;
    all.errors.extend(batch.errors);
}

/// `retry: 3 runs, 2 changed, 1 with nothing to do, 0 failed`
fn summary(action: &str, all: &BatchView) -> String {
    let BatchView { count, applied, stale, failed, .. } = all;
    format!("{action}: {count} runs, {applied} changed, {stale} with nothing to do, {failed} failed")
}

fn report_count(shared: &Shared, action: &str, found: &CountView) -> Result<ExitCode> {
    if shared.json {
        output::json(found)?;
    } else {
        let more = if found.more { " or more" } else { "" };
        output::line(format!("{action}: {}{more} runs; nothing changed", found.count))?;
        for run in &found.sample {
            output::line(run)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
