//! `ebb run cancel|pause|resume|retry|evaluate|clear|mark|wake`: actions on runs and tasks.

use std::process::ExitCode;

use anyhow::{Result, bail};
use api::operate::{ReasonBody, SucceedBody};
use api::views::RunView;
use reqwest::header::HeaderMap;
use serde::Serialize;

use crate::args::{Mark, OnRun, OnTask, Shared};
use crate::client::Client;
use crate::output;

/// Applies an action to a run and prints its state.
pub(super) async fn on_run(shared: &Shared, client: &Client, action: &str, on: OnRun) -> Result<ExitCode> {
    let path = ["runs", &on.id.to_string(), action];
    let body = ReasonBody { reason: on.reason };
    let run: RunView = client.post(&path, HeaderMap::new(), &body).await?;
    report(shared, &run, format!("run {} is {}", run.id, run.state.name()))
}

/// Applies an action to a task; `done` is the end of the message.
pub(super) async fn on_task(
    shared: &Shared,
    client: &Client,
    action: &str,
    on: OnTask,
    done: &str,
) -> Result<ExitCode> {
    let body = ReasonBody { reason: on.reason.clone() };
    post(shared, client, &on, action, &body, done).await
}

pub(super) async fn mark(shared: &Shared, client: &Client, mark: Mark) -> Result<ExitCode> {
    let Mark { id, task, end, output, reason } = mark;
    let on = OnTask { id, task, reason: reason.clone() };
    if end == "succeeded" {
        let body = SucceedBody { output, reason };
        return post(shared, client, &on, "succeed", &body, "is marked as succeeded").await;
    }
    if !output.is_null() {
        bail!("--output requires `succeeded`: a failed task has no output");
    }
    post(shared, client, &on, "fail", &ReasonBody { reason }, "is marked as failed").await
}

async fn post(
    shared: &Shared,
    client: &Client,
    on: &OnTask,
    action: &str,
    body: &impl Serialize,
    done: &str,
) -> Result<ExitCode> {
    let path = ["runs", &on.id.to_string(), "tasks", &on.task, action];
    let run: RunView = client.post(&path, HeaderMap::new(), body).await?;
    report(shared, &run, format!("`{}` of run {} {done}; the run is {}", on.task, run.id, run.state.name()))
}

fn report(shared: &Shared, run: &RunView, message: String) -> Result<ExitCode> {
    output::print(shared, run, || message)?;
    Ok(ExitCode::SUCCESS)
}
