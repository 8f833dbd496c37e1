//! `ebb audit`: who changed what.

use std::process::ExitCode;

use anyhow::Result;
use api::audit::AuditEntryView;
use api::page::Page;

use super::connect;
use crate::args::{Audit, Shared};
use crate::output;

/// The page size of an export.
const PAGE: u32 = 100;

pub(super) async fn run(shared: &Shared, arguments: Audit) -> Result<ExitCode> {
    let client = connect(shared)?;
    let limit = if arguments.export { PAGE } else { arguments.limit };
    let mut query = vec![("limit", limit.to_string())];
    let given = [
        ("actor", &arguments.actor),
        ("action", &arguments.action),
        ("text", &arguments.text),
        ("from", &arguments.from),
        ("to", &arguments.to),
    ];
    query.extend(given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))));
    if arguments.export {
        let mut page: Page<AuditEntryView> = client.get(&["audit"], &query).await?;
        loop {
            for entry in &page.items {
                output::line(serde_json::to_string(entry)?)?;
            }
            let Some(cursor) = page.next_cursor else { return Ok(ExitCode::SUCCESS) };
            let next: Vec<_> = query.iter().cloned().chain([("cursor", cursor)]).collect();
            page = client.get(&["audit"], &next).await?;
        }
    }
    let page: Page<AuditEntryView> = client.get(&["audit"], &query).await?;
    output::print_list(shared, &page, &page.items, "no entries", table)?;
    Ok(ExitCode::SUCCESS)
}

fn table(entries: &[AuditEntryView]) -> String {
    let head = ["AT", "ACTOR", "ACTION", "TARGET", "STATUS"];
    let rows = entries.iter().map(|entry| {
        vec![
            output::time(entry.at),
            entry.actor.clone(),
            entry.action.clone(),
            entry.target.clone(),
            entry.status.to_string(),
        ]
    });
    output::table(head, rows)
}
