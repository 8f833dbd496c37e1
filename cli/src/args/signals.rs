//! Arguments that answer a waiting run.

use clap::Args;
use model::RunId;
use serde_json::Value;

use super::pair;

/// A signal to send.
#[derive(Args, Clone, Debug)]
pub struct Signal {
    /// Id of the run
    pub run: RunId,
    /// Name of the signal
    pub name: String,
    /// Payload of the signal, in JSON
    #[arg(long, value_name = "JSON", default_value = "null", value_parser = json)]
    pub payload: Value,
}

/// The task to approve.
#[derive(Args, Clone, Debug)]
pub struct Approve {
    /// Id of the run
    pub run: RunId,
    /// Name of the task that waits for approval
    pub task: String,
    /// Field of the form: JSON, or plain text
    #[arg(long = "field", value_name = "NAME=VALUE", value_parser = pair)]
    pub fields: Vec<(String, String)>,
}

/// The task to reject.
#[derive(Args, Clone, Debug)]
pub struct Reject {
    /// Id of the run
    pub run: RunId,
    /// Name of the task that waits for approval
    pub task: String,
    /// Reason, shown on the timeline
    #[arg(long)]
    pub reason: Option<String>,
}

pub(super) fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("not valid JSON: {error}"))
}
