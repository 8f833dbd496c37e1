//! What can be said to keep an Ebbflow healthy.

use clap::{Args, Subcommand};
use model::RunId;

/// What to do with dead letters.
#[derive(Args, Clone, Debug)]
pub struct DeadLetters {
    /// What to do [default: list]
    #[command(subcommand)]
    pub action: Option<LetterAction>,
}

/// What to do with dead letters.
#[derive(Subcommand, Clone, Debug)]
pub enum LetterAction {
    /// List them, newest first
    List(ListLetters),
    /// Show one with its body
    Show {
        /// The letter
        id: String,
    },
    /// Publish the message again, and forget the letter
    Replay(Letters),
    /// Throw the letter away
    Discard(Letters),
}

/// Which dead letters to list.
#[derive(Args, Clone, Debug)]
pub struct ListLetters {
    /// Which of them.
    #[command(flatten)]
    pub filter: LetterFilter,
    /// At most so many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
}

/// Which dead letters are meant.
#[derive(Args, Clone, Debug, Default)]
pub struct LetterFilter {
    /// Only of this source
    #[arg(long)]
    pub source: Option<String>,
    /// Only those with this text in their reason or body
    #[arg(long)]
    pub text: Option<String>,
}

/// One dead letter, or all that a filter lets pass.
#[derive(Args, Clone, Debug)]
pub struct Letters {
    /// The letter
    #[arg(required_unless_present = "all")]
    pub id: Option<String>,
    /// All of them, or all that --source and --text let pass
    #[arg(long, conflicts_with = "id")]
    pub all: bool,
    /// Which of them.
    #[command(flatten)]
    pub filter: LetterFilter,
    /// Only say how many it would be
    #[arg(long, requires = "all")]
    pub dry_run: bool,
}

/// Which entries of the audit log to show.
#[derive(Args, Clone, Debug)]
pub struct Audit {
    /// Only of this person or program
    #[arg(long)]
    pub actor: Option<String>,
    /// Only of this endpoint, as the OpenAPI document names it
    #[arg(long)]
    pub action: Option<String>,
    /// Only those with this text in their address
    #[arg(long)]
    pub text: Option<String>,
    /// Only from this instant on
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Only before this instant
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
    /// All of them, a JSON object a line
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
    /// At most so many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
}

/// How thoroughly to look.
#[derive(Args, Clone, Debug)]
pub struct Doctor {
    /// Put right what can be put right without a person
    #[arg(long)]
    pub repair: bool,
}
