//! `ebb limits`: how many tasks are under way at the same time, and who waits.

use std::process::ExitCode;

use anyhow::Result;
use api::limits::{LimitBody, LimitList, LimitView};
use reqwest::header::HeaderMap;

use super::connect;
use crate::args::{Limits, SetLimit, Shared};
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: Limits) -> Result<ExitCode> {
    let client = connect(shared)?;
    let limits: LimitList = match arguments.set {
        None => client.get(&["limits"], &[]).await?,
        Some(SetLimit::Set { kind, name, places }) => {
            let body = LimitBody { places: places.0 };
            client.post(&["limits", &kind, &name], HeaderMap::new(), &body).await?
        }
    };
    if shared.json {
        output::json(&limits)?;
    } else if limits.items.is_empty() {
        output::line("no limits yet: each is there from the first task that needs it")?;
    } else {
        output::line(table(&limits.items))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn table(limits: &[LimitView]) -> String {
    let head = ["LIMIT", "NAME", "USED", "PLACES", "WAITING", "OLDEST"].map(String::from).to_vec();
    let rows = limits.iter().map(|limit| {
        vec![
            limit.kind.clone(),
            limit.name.clone(),
            limit.used.to_string(),
            limit.places.map_or_else(|| "no bound".to_owned(), |places| places.to_string()),
            limit.waiting.to_string(),
            limit.oldest.map(output::time).unwrap_or_default(),
        ]
    });
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    output::table(&rows, |_, _, cell| cell)
}
