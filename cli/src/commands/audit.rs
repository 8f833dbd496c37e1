//! `ebb audit`: who changed what.

use std::process::ExitCode;

use anyhow::Result;
use api::audit::DeedView;
use api::page::Page;

use super::connect;
use crate::args::{Audit, Shared};
use crate::output;

/// So many are asked for at once.
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
        let mut page: Page<DeedView> = client.get(&["audit"], &query).await?;
        loop {
            for deed in &page.items {
                output::line(serde_json::to_string(deed)?)?;
            }
            let Some(cursor) = page.next_cursor else { return Ok(ExitCode::SUCCESS) };
            let next: Vec<_> = query.iter().cloned().chain([("cursor", cursor)]).collect();
            page = client.get(&["audit"], &next).await?;
        }
    }
    let page: Page<DeedView> = client.get(&["audit"], &query).await?;
    if shared.json {
        output::json(&page)?;
    } else if page.items.is_empty() {
        output::line("nothing was changed")?;
    } else {
        output::line(table(&page.items))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn table(deeds: &[DeedView]) -> String {
    let head = ["AT", "WHO", "WHAT", "OF", "ANSWER"].map(String::from).to_vec();
    let rows = deeds.iter().map(|deed| {
        vec![
            output::time(deed.at),
            deed.actor.clone(),
            deed.action.clone(),
            deed.target.clone(),
            deed.status.to_string(),
        ]
    });
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    output::table(&rows, |_, _, cell| cell)
}
