//! Watches a run until it has ended, by reading its events.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use anyhow::Result;
use api::views::{EventView, RunView, TaskView};
use bus::SystemClock;
use chrono::TimeDelta;
use indicatif::{ProgressBar, ProgressStyle};
use model::{Clock, RunId, RunState};

use super::FAILED;
use super::progress::Progress;
use crate::args::Shared;
use crate::client::{Client, Follower};
use crate::output::{self, Palette};

/// How long to wait between two polls of the run.
const POLL_INTERVAL: TimeDelta = TimeDelta::milliseconds(300);

/// How many polls of the run there are for each poll of what its tasks report.
const POLLS_PER_REPORT: u64 = 3;

/// The maximum number of running tasks whose reports are read in one poll.
const MAX_REPORTS: usize = 5;

/// The maximum number of failed tasks to report at the end.
const MAX_FAILED: usize = 5;

/// Watches a run. The exit code is 0 if it succeeded.
pub(super) async fn run(shared: &Shared, client: &Client, id: RunId) -> Result<ExitCode> {
    let screen = Screen::new(shared.json);
    let progress = follow(client, id, &screen).await?;
    screen.close();
    let run: RunView = client.get(&["runs", &id.to_string()], &[]).await?;
    if shared.json {
        output::json(&run)?
    } else {
        conclude(&run, &progress)?
    }
    Ok(if run.state == RunState::Succeeded { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Waits until the next poll.
pub(super) async fn pause() {
    SystemClock.wait_until(SystemClock.now() + POLL_INTERVAL).await;
}

async fn follow(client: &Client, id: RunId, screen: &Screen) -> Result<Progress> {
    let id = id.to_string();
    let tasks = ["runs", &id, "tasks"];
    let mut progress = Progress::new(client.all(&tasks).await?);
    let mut events = Follower::new(&["runs", &id, "events"], &[]);
    for poll in 0.. {
        let happened: Vec<EventView> = events.new_items(client).await?;
        if happened.iter().any(|event| progress.needs_total(event)) {
            progress.set_totals(&client.all(&tasks).await?);
        }
        for event in &happened {
            if let Some(line) = progress.on(event, screen.palette()) {
                screen.line(&line)?;
            }
        }
        if poll % POLLS_PER_REPORT == 0 {
            read_reports(client, &id, &mut progress, screen).await?;
        }
        screen.draw(&progress);
        if progress.end.is_some() {
            break;
        }
        pause().await;
    }
    Ok(progress)
}

/// Reads how far the running tasks have come, which is not part of the run's history.
async fn read_reports(client: &Client, id: &str, progress: &mut Progress, screen: &Screen) -> Result<()> {
    for name in progress.next_running(MAX_REPORTS) {
        let task: TaskView = client.get(&["runs", id, "tasks", &name], &[]).await?;
        if let Some(line) = progress.report(task, screen.palette()) {
            screen.line(&line)?;
        }
    }
    Ok(())
}

/// Prints how it ended and, if it failed, which task failed, why, and where the log is.
fn conclude(run: &RunView, progress: &Progress) -> Result<()> {
    let palette = Palette::of_stdout();
    let state = palette.paint(output::run_colour(run.state), run.state.name());
    let took = output::took(run.started_at, run.finished_at);
    output::line(format!("run {} of {} {state} in {took}", run.id, run.workflow))?;
    for (task, why, log) in progress.failed().take(MAX_FAILED) {
        output::line(format!("task `{task}` failed: {why}"))?;
        output::line(format!("see its log: ebb logs {} {log}", run.id))?;
    }
    Ok(())
}

/// Where progress is shown.
enum Screen {
    /// Nowhere: only the result is printed.
    Nothing,
    /// One line per change.
    Lines,
    Live(ProgressBar),
}

impl Screen {
    fn new(json: bool) -> Self {
        if json {
            return Self::Nothing;
        }
        if !io::stdout().is_terminal() || !io::stderr().is_terminal() {
            return Self::Lines;
        }
        let style = ProgressStyle::with_template("{msg}").expect("the template is sound");
        Self::Live(ProgressBar::new_spinner().with_style(style))
    }

    fn palette(&self) -> Palette {
        Palette::of_stdout()
    }

    fn line(&self, line: &str) -> io::Result<()> {
        if let Self::Lines = self { output::line(line) } else { Ok(()) }
    }

    fn draw(&self, progress: &Progress) {
        if let Self::Live(bar) = self {
            bar.set_message(progress.picture(SystemClock.now(), self.palette()));
            bar.tick();
        }
    }

    /// Leaves the last view on the screen.
    fn close(&self) {
        if let Self::Live(bar) = self {
            bar.abandon();
        }
    }
}
