//! `ebb bulk`: one action on many runs, in batches, with progress.

use std::process::ExitCode;

use anyhow::Result;
use api::bulk::{BatchView, BulkBody, BulkFilter, CountView};
use reqwest::header::HeaderMap;

use super::{FAILED, connect};
use crate::args::{Bulk, RunFilter, Shared};
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: Bulk) -> Result<ExitCode> {
    let client = connect(shared)?;
    let RunFilter { workflow, state, parent, label, created_after, created_before } = arguments.filter;
    let state = state.map(|state| state.name().to_owned());
    let filter = BulkFilter { workflow, state, parent, label, created_after, created_before };
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
    output::print(shared, &all, || {
        let errors = all.errors.iter().map(|error| format!("\nrun {}: {}", error.run, error.message));
        summary(&body.action, &all) + &errors.collect::<String>()
    })?;
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
    output::print(shared, found, || {
        let more = if found.more { " or more" } else { "" };
        let sample = found.sample.iter().map(|run| format!("\n{run}"));
        format!("{action}: {}{more} runs; nothing changed{}", found.count, sample.collect::<String>())
    })?;
    Ok(ExitCode::SUCCESS)
}
