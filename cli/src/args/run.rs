//! Arguments about one run, and about many.

use clap::{ArgGroup, Args, Subcommand};
use model::{Instant, RunId, RunState};
use serde_json::Value;

use super::{date, signals, state};

/// What to do with one run.
#[derive(Subcommand, Clone, Debug)]
pub enum Run {
    /// Show a run and its tasks
    Show {
        /// Id of the run
        id: RunId,
    },
    /// Show the attempts of a task: worker, exit code, error, decision and time of the next one
    #[command(after_help = "Example:\n  ebb run attempts RUN load")]
    Attempts {
        /// Id of the run
        id: RunId,
        /// Name of the task
        task: String,
    },
    /// Show progress until the run has ended; the exit code is 1 if it failed or was cancelled
    Watch {
        /// Id of the run
        id: RunId,
    },
    /// Cancel a run and its unfinished tasks
    Cancel(OnRun),
    /// Start no more tasks of a run until it is resumed; running tasks finish
    Pause(OnRun),
    /// Resume a paused run
    Resume(OnRun),
    /// Re-run what failed or was cancelled, and everything downstream
    #[command(after_help = "Example:\n  ebb run retry RUN --reason 'the disk is larger now'")]
    Retry(OnRun),
    /// Re-evaluate a run now, in case a message was lost
    Evaluate(OnRun),
    /// Re-run a task, and everything downstream
    #[command(after_help = "Examples:\n  ebb run clear RUN load\n  ebb run clear RUN split__3")]
    Clear(OnTask),
    /// Mark a task as succeeded or failed
    #[command(
        after_help = "Examples:\n  ebb run mark RUN load succeeded --output '{\"rows\": 12}'\n  ebb run mark RUN load failed --reason 'the numbers are wrong'\n\nIf the task had ended in another state, tasks downstream are re-run."
    )]
    Mark(Mark),
    /// End a task's sleep, or the delay before its next attempt
    Wake(OnTask),
}

/// A run, and why.
#[derive(Args, Clone, Debug)]
pub struct OnRun {
    /// Id of the run
    pub id: RunId,
    /// Reason, shown on the timeline
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// A task, and why.
#[derive(Args, Clone, Debug)]
pub struct OnTask {
    /// Id of the run
    pub id: RunId,
    /// Name of the task
    pub task: String,
    /// Reason, shown on the timeline
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// A task, and its state.
#[derive(Args, Clone, Debug)]
pub struct Mark {
    /// Id of the run
    pub id: RunId,
    /// Name of the task
    pub task: String,
    /// State that the task ends in
    #[arg(value_parser = ["succeeded", "failed"])]
    pub end: String,
    /// Output of the task, in JSON; only for `succeeded`
    #[arg(long, value_name = "JSON", default_value = "null", value_parser = signals::json)]
    pub output: Value,
    /// Reason, shown on the timeline
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// What to do with many runs: an action, and a filter, so that a typo does not act on all runs.
#[derive(Args, Clone, Debug)]
#[command(group(ArgGroup::new("filter").required(true).multiple(true).args(RunFilter::NAMES)))]
pub struct Bulk {
    /// Action to apply to each run
    #[arg(value_parser = api::bulk::ACTIONS)]
    pub action: String,
    /// The runs to act on; at least one filter is required
    #[command(flatten)]
    pub filter: RunFilter,
    /// Count the runs and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Reason, shown on the timelines
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// A filter for runs.
#[derive(Args, Clone, Debug)]
pub struct RunFilter {
    /// Only runs of this workflow
    #[arg(long, value_name = "NAME")]
    pub workflow: Option<String>,
    /// Only runs in this state
    #[arg(long, value_parser = state)]
    pub state: Option<RunState>,
    /// Only runs that tasks of this run started
    #[arg(long, value_name = "RUN")]
    pub parent: Option<RunId>,
    /// Only runs with this label
    #[arg(long, value_name = "NAME=VALUE")]
    pub label: Option<String>,
    /// Only runs created at this time or later: 2026-01-31 or 2026-01-31T06:00:00Z
    #[arg(long, value_name = "TIME", value_parser = date)]
    pub created_after: Option<Instant>,
    /// Only runs created before this time
    #[arg(long, value_name = "TIME", value_parser = date)]
    pub created_before: Option<Instant>,
}

impl RunFilter {
    /// The names of the arguments.
    const NAMES: [&str; 6] = ["workflow", "state", "parent", "label", "created_after", "created_before"];
}

/// Which runs to list.
#[derive(Args, Clone, Debug)]
pub struct Runs {
    /// The runs to list
    #[command(flatten)]
    pub filter: RunFilter,
    /// Only runs with this text in the id, workflow, error, labels or author
    #[arg(long)]
    pub text: Option<String>,
    /// Order of the list; a leading `-` means newest first [default: -created_at]
    #[arg(long, value_parser = api::runs::SORTS, allow_hyphen_values = true)]
    pub sort: Option<String>,
    /// Maximum number of runs
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
}

/// The run or task to explain.
#[derive(Args, Clone, Debug)]
pub struct Explain {
    /// Id of the run
    pub run: RunId,
    /// Task to explain in more detail [default: the whole run]
    pub task: Option<String>,
}

/// Which log to show.
#[derive(Args, Clone, Debug)]
pub struct Logs {
    /// Id of the run
    pub run: RunId,
    /// Task whose log to show [default: all tasks]
    pub task: Option<String>,
    /// Number of the attempt [default: the current one]
    #[arg(long, value_name = "N", requires = "task")]
    pub attempt: Option<u32>,
    /// Print new lines until everything has ended
    #[arg(short, long)]
    pub follow: bool,
}
