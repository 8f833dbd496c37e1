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
    /// List active workflows with their versions
    List(ListWorkflows),
    /// Pause a workflow: no new runs start until it is resumed; existing runs continue
    Pause {
        /// Name of the workflow
        name: String,
        /// Reason, shown with the workflow
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Resume a paused workflow
    Resume {
        /// Name of the workflow
        name: String,
        /// Missed instants of its schedules that get a run [default: their `catchup`]
        #[arg(long, value_parser = ["all", "latest", "none"])]
        missed: Option<String>,
    },
}

/// Which workflows to list.
#[derive(Args, Clone, Debug)]
pub struct ListWorkflows {
    /// Only workflows with this tag
    #[arg(long)]
    pub tag: Option<String>,
    /// Only workflows with this text in the name, description or tags
    #[arg(long)]
    pub text: Option<String>,
    /// Order of the list; a leading `-` reverses it [default: name]
    #[arg(long, value_parser = api::workflows::SORTS, allow_hyphen_values = true)]
    pub sort: Option<String>,
}

/// The workflow whose versions to list.
#[derive(Args, Clone, Debug)]
pub struct Versions {
    /// Name of the workflow
    pub name: String,
}

/// The version to activate again.
#[derive(Args, Clone, Debug)]
pub struct Rollback {
    /// Name of the workflow
    pub name: String,
    /// Number of the version, as `ebb versions` lists it: 3 or v3
    #[arg(value_parser = super::version)]
    pub version: i32,
}

/// The workflow to archive.
#[derive(Args, Clone, Debug)]
pub struct Archive {
    /// Name of the workflow
    pub name: String,
}
