//! `ebb breakers`: circuit breakers of tasks and hosts.

use std::process::ExitCode;

use anyhow::Result;
use api::breakers::SharedBreakerView;
use api::page::Page;
use reqwest::header::HeaderMap;
use serde_json::json;

use super::connect;
use crate::args::{BreakerAction, Breakers, Shared};
use crate::output;

/// The number of breakers that one request lists.
const PAGE: &str = "100";

pub(super) async fn run(shared: &Shared, arguments: Breakers) -> Result<ExitCode> {
    match arguments.action {
        None => list(shared).await?,
        Some(BreakerAction::Reset { id }) => reset(shared, id).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(shared: &Shared) -> Result<()> {
    let (client, mut all, mut cursor) = (connect(shared)?, Vec::new(), None);
    loop {
        let mut query = vec![("limit", PAGE.to_owned())];
        query.extend(cursor.map(|cursor| ("cursor", cursor)));
        let page: Page<SharedBreakerView> = client.get(&["breakers"], &query).await?;
        all.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let page = Page { items: all, next_cursor: None };
    Ok(output::print_list(shared, &page, &page.items, "all breakers are closed", table)?)
}

async fn reset(shared: &Shared, id: i64) -> Result<()> {
    let id = id.to_string();
    let path = ["breakers", id.as_str(), "reset"];
    let reset: SharedBreakerView = connect(shared)?.post(&path, HeaderMap::new(), &json!({})).await?;
    output::print(shared, &reset, || format!("reset the breaker of {} {}", reset.kind, reset.name))?;
    Ok(())
}

fn table(breakers: &[SharedBreakerView]) -> String {
    let head = ["ID", "KIND", "NAME", "STATE", "FAILURES", "WAITING", "UNTIL", "LAST FAILURE"];
    let rows = breakers.iter().map(|breaker| {
        vec![
            breaker.id.to_string(),
            breaker.kind.clone(),
            breaker.name.clone(),
            breaker.state.name().to_owned(),
            breaker.failures.to_string(),
            breaker.waiting.to_string(),
            breaker.until.map(output::time).unwrap_or_default(),
            breaker.message.clone(),
        ]
    });
    output::table(head, rows)
}
