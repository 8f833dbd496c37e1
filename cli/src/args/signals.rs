//! Arguments that answer a waiting run.

use clap::Args;
use model::RunId;
use serde_json::Value;

use super::pair;

/// A signal to send.
#[derive(Args, Clone, Debug)]
pub struct Signal {
    /// The run
    pub run: RunId,
    /// The signal's name
    pub name: String,
    /// The payload, in JSON
    #[arg(long, value_name = "JSON", default_value = "null", value_parser = json)]
    pub payload: Value,
}

/// What to approve.
#[derive(Args, Clone, Debug)]
pub struct Approve {
    /// The run
    pub run: RunId,
    /// The task that waits for approval
    pub task: String,
    /// A field of the form: JSON, or plain text
    #[arg(long = "field", value_name = "NAME=VALUE", value_parser = pair)]
    pub fields: Vec<(String, String)>,
}

/// What to reject.
#[derive(Args, Clone, Debug)]
pub struct Reject {
    /// The run
    pub run: RunId,
    /// The task that waits for approval
    pub task: String,
    /// Why
    #[arg(long)]
    pub reason: Option<String>,
}

pub(super) fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("not valid JSON: {error}"))
}
