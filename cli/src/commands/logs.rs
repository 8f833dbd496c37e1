//! `ebb logs`: the logs of a run's tasks, once or continuously.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Result;
use api::views::TaskView;
use serde_json::json;
use store::LogLine;

use super::{connect, watch};
use crate::args::{Logs, Shared};
use crate::client::{Client, Follower};
use crate::output::{self, Colour, Palette};

pub(super) async fn run(shared: &Shared, arguments: Logs) -> Result<ExitCode> {
    let client = connect(shared)?;
    let mut reader = Reader { client, json: shared.json, wanted: arguments, open: BTreeMap::new() };
    while !reader.pass().await? && reader.wanted.follow {
        watch::pause().await;
    }
    Ok(ExitCode::SUCCESS)
}

struct Reader {
    client: Client,
    json: bool,
    wanted: Logs,
    /// The open logs by task and attempt; none for those that were read to their end.
    open: BTreeMap<(String, u32), Option<Follower>>,
}

impl Reader {
    /// Prints new lines. Returns whether the logs are complete.
    async fn pass(&mut self) -> Result<bool> {
        let tasks = self.tasks().await?;
        for task in &tasks {
            self.open(task);
        }
        // An attempt that had ended when the tasks were fetched had written its last line before.
        let over: BTreeMap<&str, u32> =
            tasks.iter().map(|task| (task.name.as_str(), attempts_over(task))).collect();
        for (key, follower) in &mut self.open {
            let Some(log) = follower else { continue };
            for line in log.new_items::<LogLine>(&self.client).await? {
                print(&self.wanted, self.json, key, &line)?;
            }
            if over.get(key.0.as_str()).is_some_and(|over| *over >= key.1) {
                *follower = None;
            }
        }
        let all_read = self.open.values().all(Option::is_none);
        Ok(all_read && (self.wanted.attempt.is_some() || tasks.iter().all(|task| task.state.is_final())))
    }

    async fn tasks(&self) -> Result<Vec<TaskView>> {
        let run = self.wanted.run.to_string();
        match &self.wanted.task {
            Some(task) => Ok(vec![self.client.get(&["runs", &run, "tasks", task], &[]).await?]),
            None => Ok(self.client.all(&["runs", &run, "tasks"]).await?),
        }
    }

    /// Opens a task's log: of the requested attempt, or of the current one and all that follow.
    fn open(&mut self, task: &TaskView) {
        let attempt = self.wanted.attempt.unwrap_or(task.attempt);
        if attempt == 0 {
            return;
        }
        let run = self.wanted.run.to_string();
        self.open.entry((task.name.clone(), attempt)).or_insert_with(|| {
            let path = ["runs", &run, "tasks", &task.name, "logs"];
            Some(Follower::new(&path, &[("attempt", attempt.to_string())]))
        });
    }
}

/// The number of a task's last attempt that is over.
fn attempts_over(task: &TaskView) -> u32 {
    if task.state.is_final() { task.attempt } else { task.attempt.saturating_sub(1) }
}

fn print(wanted: &Logs, json: bool, (task, attempt): &(String, u32), line: &LogLine) -> Result<()> {
    if json {
        let mut whole = serde_json::to_value(line)?;
        whole["task"] = json!(task);
        whole["attempt"] = json!(attempt);
        return Ok(output::json_line(&whole)?);
    }
    let palette = Palette::of_stdout();
    let text =
        if line.stream == "system" { palette.paint(Colour::Quiet, &line.line) } else { line.line.clone() };
    match wanted.task {
        Some(_) => output::line(text)?,
        None => output::line(format!("{} {text}", palette.paint(Colour::Quiet, format!("{task} |"))))?,
    }
    Ok(())
}
