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
    /// Check the database instance on Cloud SQL, too: state, disk, backups, point-in-time recovery, maintenance
    #[arg(long)]
    pub cloud: bool,
    /// Where the database is.
    #[command(flatten)]
    pub place: CloudArgs,
}

/// Whose log filter to show or set.
#[derive(Args, Clone, Debug)]
pub struct LogLevel {
    /// The function: trigger, evaluate, execute, sweep or console; none to list the filters of all
    #[arg(value_name = "FUNCTION")]
    pub function: Option<String>,
    /// A level (debug) or levels by target (info,ebbflow_runtime=debug)
    #[arg(value_name = "FILTER", requires = "function")]
    pub filter: Option<String>,
    /// For how many minutes the filter applies
    #[arg(long, default_value_t = 60, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..=1440))]
    pub minutes: u32,
    /// Return to the configured filter
    #[arg(long, requires = "function", conflicts_with = "filter")]
    pub reset: bool,
}

/// A database instance on Cloud SQL.
#[derive(Args, Clone, Debug)]
pub struct CloudArgs {
    /// The Google Cloud project
    #[arg(long, env = "EBB_PROJECT", value_name = "PROJECT")]
    pub project: Option<String>,
    /// The Cloud SQL instance
    #[arg(long, default_value = "ebbflow", value_name = "NAME")]
    pub instance: String,
    /// A server with the API of Cloud SQL, instead of Google's.
    #[arg(long, hide = true, value_name = "URL")]
    pub sql_endpoint: Option<String>,
}

/// To which moment to restore, and where.
#[derive(Args, Clone, Debug)]
pub struct Restore {
    /// The moment, in UTC or with an offset: 2026-03-01T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub to: model::Instant,
    /// The name of the new instance [default: the instance and the moment]
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,
    /// The instance to restore, and its project.
    #[command(flatten)]
    pub place: CloudArgs,
}
