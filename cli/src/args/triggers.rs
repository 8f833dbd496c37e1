//! What starts runs by itself.

use clap::{Args, Subcommand};

/// Which triggers to list, or what to do with one.
#[derive(Args, Clone, Debug)]
pub struct Triggers {
    /// What to do [default: list]
    #[command(subcommand)]
    pub action: Option<TriggerAction>,
    /// Which of them.
    #[command(flatten)]
    pub list: ListTriggers,
}

/// What to do with triggers.
#[derive(Subcommand, Clone, Debug)]
pub enum TriggerAction {
    /// List triggers with what they heard of last
    List(ListTriggers),
    /// Show one trigger: what it waits for, what it has seen and heard of
    Show(TriggerName),
    /// Let a trigger start nothing until it is resumed
    Pause {
        /// Which one.
        #[command(flatten)]
        of: TriggerName,
        /// For whoever wonders
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Let a trigger go on; a sensor looks at once
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
    /// At most so many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
}
