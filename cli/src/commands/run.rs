//! `ebb run`: shows, watches and controls one run.

mod attempts;

use std::process::ExitCode;

use anyhow::Result;
use api::views::{ChildrenView, OtherRunView, ParentView, RunView, TaskView, TurnView, WaitingView};
use model::{RunId, TaskKind, TaskState};
use serde_json::json;

use super::{connect, operate, watch};
use crate::args::{Run, Shared};
use crate::client::Client;
use crate::output::{self, Palette};

const STATE_COLUMN: usize = 2;

pub(super) async fn run(shared: &Shared, arguments: Run) -> Result<ExitCode> {
    let client = connect(shared)?;
    match arguments {
        Run::Show { id } => show(shared, &client, id).await,
        Run::Attempts { id, task } => attempts::show(shared, &client, id, &task).await,
        Run::Watch { id } => watch::run(shared, &client, id).await,
        Run::Cancel(on) => operate::on_run(shared, &client, "cancel", on).await,
        Run::Pause(on) => operate::on_run(shared, &client, "pause", on).await,
        Run::Resume(on) => operate::on_run(shared, &client, "resume", on).await,
        Run::Retry(on) => operate::on_run(shared, &client, "retry", on).await,
        Run::Evaluate(on) => operate::on_run(shared, &client, "evaluate", on).await,
        Run::Clear(on) => operate::on_task(shared, &client, "clear", on, "is re-run").await,
        Run::Mark(mark) => operate::mark(shared, &client, mark).await,
        Run::Wake(on) => operate::on_task(shared, &client, "wake", on, "no longer waits").await,
    }
}

async fn show(shared: &Shared, client: &Client, id: RunId) -> Result<ExitCode> {
    let run: RunView = client.get(&["runs", &id.to_string()], &[]).await?;
    let tasks: Vec<TaskView> = client.all(&["runs", &id.to_string(), "tasks"]).await?;
    if shared.json {
        let mut whole = serde_json::to_value(&run)?;
        whole["tasks"] = json!(tasks);
        output::json(&whole)?;
    } else {
        let palette = Palette::of_stdout();
        output::line(head(&run, palette))?;
        output::line(table(&tasks, palette))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn head(run: &RunView, palette: Palette) -> String {
    let mut rows = vec![
        ("run", run.id.to_string()),
        ("workflow", format!("{} v{}", run.workflow, run.version)),
        ("state", palette.paint(output::run_colour(run.state), run.state.name())),
        ("started by", format!("{} ({})", run.trigger.by, run.trigger.kind)),
        ("created", output::time(run.created_at)),
        ("took", output::took(run.started_at, run.finished_at)),
        ("console", run.links.console.clone()),
        ("error", run.error.clone().unwrap_or_default()),
        ("parent", run.parent.as_ref().map(parent).unwrap_or_default()),
        ("waiting", run.waiting.as_ref().map(|turn| waiting(run, turn)).unwrap_or_default()),
    ];
    rows.retain(|(_, value)| !value.is_empty());
    rows.into_iter().map(|(name, value)| format!("{name:<10}  {value}\n")).collect()
}

fn table(tasks: &[TaskView], palette: Palette) -> String {
    let head = ["TASK", "TYPE", "STATE", "ATTEMPT", "TOOK", "NOTE"];
    let rows = tasks.iter().map(|task| {
        vec![
            task.name.clone(),
            task.kind.clone(),
            task.state.name().into(),
            format!("{}/{}", task.attempt, task.max_attempts),
            output::took(task.started_at, task.finished_at),
            note(task),
        ]
    });
    output::painted_table(head, rows, |task, column, cell| match column {
        STATE_COLUMN => palette.paint(output::task_sign(tasks[task].state).1, cell),
        _ => cell,
    })
}

/// The task that started a run.
fn parent(parent: &ParentView) -> String {
    let task = parent.task.as_ref().map(|task| format!(", task {task}")).unwrap_or_default();
    let waits = if parent.waits { ", which waits for it" } else { "" };
    format!("run {}{task}{waits}", parent.run)
}

/// What a run waits for before it starts.
fn waiting(run: &RunView, turn: &TurnView) -> String {
    let key = run.concurrency_key.as_ref().filter(|key| !key.is_empty());
    let key = key.map(|key| format!(" (concurrency key `{key}`)")).unwrap_or_default();
    let runs: Vec<String> = turn.runs.iter().flatten().map(|run| format!("run {run}")).collect();
    let ahead = turn.ahead.filter(|ahead| *ahead > 0);
    let ahead = ahead.map(|ahead| format!(" and {ahead} that wait before it")).unwrap_or_default();
    format!("waits for {}{ahead}{key}", if runs.is_empty() { "its turn".into() } else { runs.join(", ") })
}

/// A task's children, what it waits for, the run it started, how far it has come, or its error.
fn note(task: &TaskView) -> String {
    let children = task.children.as_ref().map(children);
    let waits = task.waiting.as_ref().filter(|_| children.is_none()).map(waits);
    let started = || task.output.as_ref()?["run_id"].as_str().map(|run| format!("run {run}"));
    let started =
        if TaskKind::named(&task.kind).is_some_and(|kind| kind.starts_run()) { started() } else { None };
    let error =
        task.error.as_ref().map(|error| format!("{}: {}", error.class, output::first_line(&error.message)));
    let is_running = task.state == TaskState::Running;
    let reported = task.progress.as_ref().filter(|_| is_running).map(output::reported);
    [children, waits, started, reported, error].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// `3/10 children, 1 failed`
fn children(children: &ChildrenView) -> String {
    let failed = match children.failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    format!("{}/{} children{failed}", children.ended, children.count)
}

fn waits(waiting: &WaitingView) -> String {
    let what = match &waiting.run {
        Some(OtherRunView { id, task: Some(task), .. }) => format!("{task} of run {id}"),
        Some(OtherRunView { id, .. }) => format!("run {id}"),
        None if waiting.until.is_some() => format!("its {}", waiting.reason),
        None => waiting.reason.clone(),
    };
    let until = waiting.until.map(|until| format!(" until {}", output::time(until)));
    format!("waits for {what}{}", until.unwrap_or_default())
}

#[cfg(test)]
mod tests;
