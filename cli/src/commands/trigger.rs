//! `ebb trigger`: starts a run, and watches it if asked to.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use api::runs::StartBody;
use api::views::{RunView, WorkflowView};
use model::{InputSpec, InputType};
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Map, Value};

use super::{connect, watch};
use crate::args::{Shared, Trigger};
use crate::client::{Client, Error};
use crate::output;

pub(super) async fn run(shared: &Shared, arguments: Trigger) -> Result<ExitCode> {
    let client = connect(shared)?;
    let run = start(&client, &arguments).await?;
    if arguments.watch {
        return watch::run(shared, &client, run.id).await;
    }
    if shared.json {
        output::json(&run)?;
    } else {
        let waiting = if run.waiting.is_some() { ", waiting for other runs" } else { "" };
        let state = run.state.name();
        output::line(format!("run {} of {} v{} is {state}{waiting}", run.id, run.workflow, run.version))?;
        output::line(format!("watch it: ebb run watch {}", run.id))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn start(client: &Client, arguments: &Trigger) -> Result<RunView> {
    let mut headers = HeaderMap::new();
    if let Some(key) = &arguments.key {
        let value = HeaderValue::from_str(key).context("--key must consist of visible ASCII characters")?;
        headers.insert("idempotency-key", value);
    }
    let body = StartBody {
        inputs: inputs(client, arguments).await?,
        labels: arguments.labels.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect(),
        logical_date: arguments.logical_date,
        priority: arguments.priority,
        replace_existing: arguments.replace_existing,
    };
    let started = client.post(&["workflows", &arguments.name, "runs"], headers, &body).await;
    started.map_err(|error| advised(error).into())
}

/// Adds advice to the error if another run holds the concurrency key.
fn advised(error: Error) -> Error {
    let Error::Rejected { status, code, message, details } = error else { return error };
    let holder = details["id"].as_str().filter(|_| code == "concurrency_key_taken");
    let message = match holder {
        Some(run) => {
            format!("{message}\nwait for it: ebb run watch {run}\ncancel it:   ebb run cancel {run}")
        }
        None => message,
    };
    Error::Rejected { status, code, message, details }
}

async fn inputs(client: &Client, arguments: &Trigger) -> Result<Map<String, Value>> {
    let mut inputs = arguments.inputs_file.as_deref().map(read_file).transpose()?.unwrap_or_default();
    if !arguments.inputs.is_empty() {
        let workflow: WorkflowView = client.get(&["workflows", &arguments.name], &[]).await?;
        inputs.extend(
            arguments.inputs.iter().map(|(name, text)| (name.clone(), value(&workflow.inputs, name, text))),
        );
    }
    Ok(inputs)
}

fn read_file(path: &Path) -> Result<Map<String, Value>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} does not contain a JSON object", path.display()))
}

/// The value of an input: the text itself if a string is declared, else JSON. Anything else is sent unchanged, and the
/// server reports what it expects.
pub(super) fn value(declared: &[InputSpec], name: &str, text: &str) -> Value {
    let kind = declared.iter().find(|input| input.name == name).map(|input| input.kind);
    match kind {
        Some(InputType::String | InputType::Date | InputType::Datetime) => text.into(),
        _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(kind: InputType, text: &str, expected: Value) {
        let declared =
            [InputSpec { name: "x".into(), kind, description: None, default: None, choices: vec![] }];
        assert_eq!(value(&declared, "x", text), expected);
    }

    #[test]
    fn a_declared_string_stays_a_string() {
        check(InputType::String, "2026", json!("2026"));
        check(InputType::String, "true", json!("true"));
        check(InputType::Date, "2026-01-31", json!("2026-01-31"));
    }

    #[test]
    fn everything_else_is_json() {
        check(InputType::Integer, "7", json!(7));
        check(InputType::Boolean, "true", json!(true));
        check(InputType::List, r#"["us", 1]"#, json!(["us", 1]));
        check(InputType::Object, r#"{"a": {"b": null}}"#, json!({"a": {"b": null}}));
    }

    #[test]
    fn the_error_of_a_taken_concurrency_key_suggests_commands() {
        let rejected = |code: &str| Error::Rejected {
            status: 409,
            code: code.into(),
            message: "no".into(),
            details: json!({"id": "R"}),
        };
        let message = advised(rejected("concurrency_key_taken")).to_string();
        assert_eq!(message, "no\nwait for it: ebb run watch R\ncancel it:   ebb run cancel R");
        assert_eq!(advised(rejected("other")).to_string(), "no");
    }

    #[test]
    fn invalid_json_is_left_to_the_server_to_reject() {
        check(InputType::Integer, "seven", json!("seven"));
        assert_eq!(value(&[], "unknown", "7"), json!(7));
    }
}
