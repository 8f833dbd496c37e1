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
        /// The dead letter
        id: String,
    },
    /// Publish the message again and remove the dead letter
    Replay(SelectedDeadLetters),
    /// Remove the dead letter
    Discard(SelectedDeadLetters),
}

/// Which dead letters to list.
#[derive(Args, Clone, Debug)]
pub struct ListDeadLetters {
    /// The filter.
    #[command(flatten)]
    pub filter: DeadLetterFilter,
    /// The maximum number
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
}

/// A filter for dead letters.
#[derive(Args, Clone, Debug, Default)]
pub struct DeadLetterFilter {
    /// Only of this source
    #[arg(long)]
    pub source: Option<String>,
    /// Only with this text in the reason or body
    #[arg(long)]
    pub text: Option<String>,
}

/// One dead letter, or all that match a filter.
#[derive(Args, Clone, Debug)]
pub struct SelectedDeadLetters {
    /// The dead letter
    #[arg(required_unless_present = "all")]
    pub id: Option<String>,
    /// All that match --source and --text
    #[arg(long, conflicts_with = "id")]
    pub all: bool,
    /// The filter.
    #[command(flatten)]
    pub filter: DeadLetterFilter,
    /// Only count them
    #[arg(long, requires = "all")]
    pub dry_run: bool,
}

/// Which entries of the audit log to show.
#[derive(Args, Clone, Debug)]
pub struct Audit {
    /// Only of this person or program
    #[arg(long)]
    pub actor: Option<String>,
    /// Only of this action, as the OpenAPI document names it
    #[arg(long)]
    pub action: Option<String>,
    /// Only with this text in the path
    #[arg(long)]
    pub text: Option<String>,
    /// Only from this instant on
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Only before this instant
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// The maximum number
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
    /// Print all entries, one JSON object per line
    #[arg(long)]
    pub export: bool,
}

/// Which timers to list.
#[derive(Args, Clone, Debug)]
pub struct Timers {
    /// Only of this run
    #[arg(long, value_name = "RUN")]
    pub run: Option<RunId>,
    /// Only of this workflow
    #[arg(long, value_name = "NAME")]
    pub workflow: Option<String>,
    /// The maximum number
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
}

/// How to check.
#[derive(Args, Clone, Debug)]
pub struct Doctor {
    /// Repair what needs no human decision
    #[arg(long)]
    pub repair: bool,
}
