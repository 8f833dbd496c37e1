//! Arguments about triggers.

use clap::{Args, Subcommand};

/// Which triggers to list, or what to do with one.
#[derive(Args, Clone, Debug)]
pub struct Triggers {
    /// What to do [default: list]
    #[command(subcommand)]
    pub action: Option<TriggerAction>,
    /// The triggers to list.
    #[command(flatten)]
    pub list: ListTriggers,
}

/// What to do with triggers.
#[derive(Subcommand, Clone, Debug)]
pub enum TriggerAction {
    /// List triggers with their last event
    List(ListTriggers),
    /// Show a trigger: its condition, its watermark and its events
    Show(TriggerName),
    /// Pause a trigger: it starts no runs until it is resumed
    Pause {
        /// The trigger to pause.
        #[command(flatten)]
        of: TriggerName,
        /// Reason, shown with the trigger
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Resume a trigger; a sensor polls at once
    Resume(TriggerName),
}

/// The names that identify a trigger.
#[derive(Args, Clone, Debug)]
pub struct TriggerName {
    /// Name of the workflow
    pub workflow: String,
    /// Name of the trigger
    pub name: String,
}

/// Which triggers to list.
#[derive(Args, Clone, Debug)]
pub struct ListTriggers {
    /// Only triggers of this workflow
    #[arg(long, value_name = "NAME")]
    pub workflow: Option<String>,
    /// Maximum number of triggers
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
}
