//! `ebb log-level`: what the instances of a function log.

use std::process::ExitCode;

use anyhow::{Result, bail};
use api::log_filters::{LogFilterBody, LogFilterView, LogFiltersView};
use reqwest::header::HeaderMap;

use super::connect;
use crate::args::{LogLevel, Shared};
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: LogLevel) -> Result<ExitCode> {
    let client = connect(shared)?;
    let filters = match arguments.function {
        None => client.get::<LogFiltersView>(&["log-filters"], &[]).await?.items,
        Some(function) => {
            if arguments.filter.is_none() && !arguments.reset {
                bail!("give a filter for {function}, or --reset for the configured one");
            }
            let filter = arguments.filter;
            let body = LogFilterBody { filter, minutes: arguments.minutes };
            vec![client.post::<LogFilterView>(&["log-filters", &function], HeaderMap::new(), &body).await?]
        }
    };
    output::print(shared, &LogFiltersView { items: filters.clone() }, || table(&filters))?;
    Ok(ExitCode::SUCCESS)
}

fn table(filters: &[LogFilterView]) -> String {
    let rows = filters.iter().map(|view| {
        vec![
            view.function.clone(),
            view.filter.clone().unwrap_or_else(|| "as configured".to_owned()),
            view.until.map(output::time).unwrap_or_default(),
            view.set_by.clone().unwrap_or_default(),
        ]
    });
    output::table(["FUNCTION", "FILTER", "UNTIL", "SET BY"], rows)
}
