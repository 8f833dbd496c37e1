//! Arguments about triggers.

use clap::{Args, Subcommand};

/// Which triggers to list, or what to do with one.
#[derive(Args, Clone, Debug)]
pub struct Triggers {
    /// What to do [default: list]
    #[command(subcommand)]
    pub action: Option<TriggerAction>,
    /// The filter.
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
    /// Pause a trigger
    Pause {
        /// The trigger.
        #[command(flatten)]
        of: TriggerName,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Resume a trigger; a sensor polls at once
    Resume(TriggerName),
}

/// Names one trigger.
#[derive(Args, Clone, Debug)]
pub struct TriggerName {
    /// The workflow's name
    pub workflow: String,
    /// The trigger's name
    pub name: String,
}

/// Which triggers to list.
#[derive(Args, Clone, Debug)]
pub struct ListTriggers {
    /// Only of this workflow
    #[arg(long, value_name = "NAME")]
    pub workflow: Option<String>,
    /// The maximum number
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
}
