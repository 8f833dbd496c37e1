//! `ebb signal`, `ebb approve`, `ebb reject`: input for a waiting run.

use std::process::ExitCode;

use anyhow::Result;
use api::views::RunView;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};

use super::connect;
use crate::args::{Approve, Reject, Shared, Signal};
use crate::output;

pub(super) async fn signal(shared: &Shared, arguments: Signal) -> Result<ExitCode> {
    let path = ["runs", &arguments.run.to_string(), "signals", &arguments.name];
    let run: RunView = connect(shared)?.post(&path, HeaderMap::new(), &arguments.payload).await?;
    report(shared, &run, &format!("sent signal `{}` to run {}", arguments.name, run.id))
}

pub(super) async fn approve(shared: &Shared, arguments: Approve) -> Result<ExitCode> {
    let fields: Map<String, Value> =
        arguments.fields.into_iter().map(|(name, text)| (name, value(text))).collect();
    let path = ["runs", &arguments.run.to_string(), "tasks", &arguments.task, "approve"];
    let run: RunView = connect(shared)?.post(&path, HeaderMap::new(), &json!({"fields": fields})).await?;
    report(shared, &run, &format!("approved `{}` of run {}", arguments.task, run.id))
}

pub(super) async fn reject(shared: &Shared, arguments: Reject) -> Result<ExitCode> {
    let path = ["runs", &arguments.run.to_string(), "tasks", &arguments.task, "reject"];
    let body = json!({"reason": arguments.reason});
    let run: RunView = connect(shared)?.post(&path, HeaderMap::new(), &body).await?;
    report(shared, &run, &format!("rejected `{}` of run {}", arguments.task, run.id))
}

fn report(shared: &Shared, run: &RunView, message: &str) -> Result<ExitCode> {
    output::print(shared, run, || message)?;
    Ok(ExitCode::SUCCESS)
}

/// The value of a text: JSON if it is valid JSON, else a string.
fn value(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}
