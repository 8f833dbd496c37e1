//! What can be said about workflows in use.

use clap::{Args, Subcommand};

/// Which workflows to list, or which one to pause or resume.
#[derive(Args, Clone, Debug)]
pub struct Workflows {
    /// What to do [default: list]
    #[command(subcommand)]
    pub action: Option<WorkflowAction>,
}

/// What to do with workflows.
#[derive(Subcommand, Clone, Debug)]
pub enum WorkflowAction {
    /// List them
    List(ListWorkflows),
    /// Let no run of a workflow begin until it is resumed; runs that are there go on
    Pause {
        /// The workflow
        name: String,
        /// Why, for others
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Let a paused workflow go on
    Resume {
        /// The workflow
        name: String,
        /// Which of the instants that its schedules missed get their runs [default: as each schedule says]
        #[arg(long, value_parser = ["all", "latest", "none"])]
        missed: Option<String>,
    },
}

/// Which workflows to list.
#[derive(Args, Clone, Debug)]
pub struct ListWorkflows {
    /// Only those with this tag
    #[arg(long)]
    pub tag: Option<String>,
    /// Only those with this text in their name, description or tags
    #[arg(long)]
    pub text: Option<String>,
    /// By name or by when they last changed; a `-` before it: from the end [default: name]
    #[arg(long, value_parser = api::workflows::SORTS, allow_hyphen_values = true)]
    pub sort: Option<String>,
}

/// Whose versions to list.
#[derive(Args, Clone, Debug)]
pub struct Versions {
    /// The workflow's name
    pub name: String,
}

/// What to go back to.
#[derive(Args, Clone, Debug)]
pub struct Rollback {
    /// The workflow's name
    pub name: String,
    /// The version's number, as `ebb versions` lists it: 3 or v3
    #[arg(value_parser = super::version)]
    pub version: i32,
}

/// What to take out of use.
#[derive(Args, Clone, Debug)]
pub struct Archive {
    /// The workflow's name
    pub name: String,
}
