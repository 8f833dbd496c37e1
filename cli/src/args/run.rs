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
        /// The run
        id: RunId,
    },
    /// Show progress until the run has ended; the exit code is 1 if it failed or was cancelled
    Watch {
        /// The run
        id: RunId,
    },
    /// Cancel a run
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
    /// The run
    pub id: RunId,
    /// Why, for the timeline
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// A task, and why.
#[derive(Args, Clone, Debug)]
pub struct OnTask {
    /// The run
    pub id: RunId,
    /// The task
    pub task: String,
    /// Why, for the timeline
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// A task, and its state.
#[derive(Args, Clone, Debug)]
pub struct Mark {
    /// The run
    pub id: RunId,
    /// The task
    pub task: String,
    /// The state
    #[arg(value_parser = ["succeeded", "failed"])]
    pub end: String,
    /// The output, in JSON; only for `succeeded`
    #[arg(long, value_name = "JSON", default_value = "null", value_parser = signals::json)]
    pub output: Value,
    /// Why, for the timeline
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// What to do with many runs: an action, and a filter, so that a typo does not act on all runs.
#[derive(Args, Clone, Debug)]
#[command(group(ArgGroup::new("filter").required(true).multiple(true).args(RunFilter::NAMES)))]
pub struct Bulk {
    /// The action
    #[arg(value_parser = api::bulk::ACTIONS)]
    pub action: String,
    /// The runs, of which at least one filter must be given
    #[command(flatten)]
    pub filter: RunFilter,
    /// Only count them
    #[arg(long)]
    pub dry_run: bool,
    /// Why, for the timelines
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// A filter for runs.
#[derive(Args, Clone, Debug)]
pub struct RunFilter {
    /// Only of this workflow
    #[arg(long, value_name = "NAME")]
    pub workflow: Option<String>,
    /// Only in this state
    #[arg(long, value_parser = state)]
    pub state: Option<RunState>,
    /// Only runs that tasks of this run started
    #[arg(long, value_name = "RUN")]
    pub parent: Option<RunId>,
    /// Only with this label
    #[arg(long, value_name = "NAME=VALUE")]
    pub label: Option<String>,
    /// Only created at this time or later: 2026-01-31 or 2026-01-31T06:00:00Z
    #[arg(long, value_name = "TIME", value_parser = date)]
    pub created_after: Option<Instant>,
    /// Only created before this time
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
    /// Only with this text in the id, workflow, error, labels or author
    #[arg(long)]
    pub text: Option<String>,
    /// The order; a leading `-` means newest first [default: -created_at]
    #[arg(long, value_parser = api::runs::SORTS, allow_hyphen_values = true)]
    pub sort: Option<String>,
    /// The maximum number
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
}

/// What to explain.
#[derive(Args, Clone, Debug)]
pub struct Explain {
    /// The run
    pub run: RunId,
    /// One of its tasks, in more detail [default: the run]
    pub task: Option<String>,
}

/// Which log to show.
#[derive(Args, Clone, Debug)]
pub struct Logs {
    /// The run
    pub run: RunId,
    /// One of its tasks [default: all]
    pub task: Option<String>,
    /// The attempt [default: the current one]
    #[arg(long, value_name = "N", requires = "task")]
    pub attempt: Option<u32>,
    /// Follow until everything has ended
    #[arg(short, long)]
    pub follow: bool,
}
