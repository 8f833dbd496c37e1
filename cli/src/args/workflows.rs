//! Arguments about registered workflows.

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
    /// List active workflows
    List(ListWorkflows),
    /// Start no runs of a workflow until it is resumed; existing runs continue
    Pause {
        /// The workflow
        name: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Resume a paused workflow
    Resume {
        /// The workflow
        name: String,
        /// Which missed instants of its schedules get a run [default: their `catchup`]
        #[arg(long, value_parser = ["all", "latest", "none"])]
        missed: Option<String>,
    },
}

/// Which workflows to list.
#[derive(Args, Clone, Debug)]
pub struct ListWorkflows {
    /// Only with this tag
    #[arg(long)]
    pub tag: Option<String>,
    /// Only with this text in the name, description or tags
    #[arg(long)]
    pub text: Option<String>,
    /// The order; a leading `-` reverses it [default: name]
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

/// What to archive.
#[derive(Args, Clone, Debug)]
pub struct Archive {
    /// The workflow's name
    pub name: String,
}
