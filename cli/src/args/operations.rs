//! Arguments of commands for operators.

use clap::{Args, Subcommand};
use model::RunId;

/// What to do with dead letters.
#[derive(Args, Clone, Debug)]
pub struct DeadLetters {
    /// What to do [default: list]
    #[command(subcommand)]
    pub action: Option<DeadLetterAction>,
}

/// What to do with dead letters.
#[derive(Subcommand, Clone, Debug)]
pub enum DeadLetterAction {
    /// List dead letters, newest first
    List(ListDeadLetters),
    /// Show a dead letter with its body
    Show {
        /// Id of the dead letter
        id: String,
    },
    /// Publish the message of a dead letter again, and remove the dead letter
    Replay(SelectedDeadLetters),
    /// Remove a dead letter for good
    Discard(SelectedDeadLetters),
}

/// Which dead letters to list.
#[derive(Args, Clone, Debug)]
pub struct ListDeadLetters {
    /// The dead letters to select.
    #[command(flatten)]
    pub filter: DeadLetterFilter,
    /// Maximum number of dead letters
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
}

/// A filter for dead letters.
#[derive(Args, Clone, Debug, Default)]
pub struct DeadLetterFilter {
    /// Only dead letters of this source
    #[arg(long)]
    pub source: Option<String>,
    /// Only dead letters with this text in the reason or body
    #[arg(long)]
    pub text: Option<String>,
}

/// One dead letter, or all that match a filter.
#[derive(Args, Clone, Debug)]
pub struct SelectedDeadLetters {
    /// Id of the dead letter
    #[arg(required_unless_present = "all")]
    pub id: Option<String>,
    /// Select all that match --source and --text
    #[arg(long, conflicts_with = "id")]
    pub all: bool,
    /// The dead letters to select.
    #[command(flatten)]
    pub filter: DeadLetterFilter,
    /// Count the dead letters and change nothing
    #[arg(long, requires = "all")]
    pub dry_run: bool,
}

/// Which entries of the audit log to show.
#[derive(Args, Clone, Debug)]
pub struct Audit {
    /// Only entries of this account or service token
    #[arg(long)]
    pub actor: Option<String>,
    /// Only entries of this action, as the OpenAPI document names it
    #[arg(long)]
    pub action: Option<String>,
    /// Only entries with this text in the path
    #[arg(long)]
    pub text: Option<String>,
    /// Only entries from this instant on
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Only entries before this instant
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// Maximum number of entries
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
    /// Print every entry, one JSON object per line
    #[arg(long)]
    pub export: bool,
}

/// Which timers to list.
#[derive(Args, Clone, Debug)]
pub struct Timers {
    /// Only timers of this run
    #[arg(long, value_name = "RUN")]
    pub run: Option<RunId>,
    /// Only timers of this workflow
    #[arg(long, value_name = "NAME")]
    pub workflow: Option<String>,
    /// Maximum number of timers
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
}

/// What to do besides checking.
#[derive(Args, Clone, Debug)]
pub struct Doctor {
    /// Repair what needs no human decision
    #[arg(long)]
    pub repair: bool,
}
