//! Callbacks as tests see them: who would be told what. Nobody is.

use model::Call;
use model::message::CallbackDue;
use runtime::{CallbackJob, Result, Runtime};
use serde_json::{Map, Value, json};

/// What a callback would do, rendered; secrets are shown by name.
pub(crate) async fn render(runtime: &Runtime, due: &CallbackDue) -> Result<Value> {
    let secrets = placeholders(runtime.callback_secrets(due).await?);
    let mut told = match runtime.callback(due, secrets).await? {
        CallbackJob::Ready { call, event, .. } => describe(call, event),
        CallbackJob::Broken(failure) => json!({"broken": failure.message}),
        CallbackJob::Gone => json!({"broken": "there is no such callback"}),
    };
    told["on"] = due.event["on"].clone();
    if let Some(task) = due.event.get("task") {
        told["task"] = task.clone();
    }
    Ok(told)
}

/// The call as it is written in short, with what else belongs to it beside it.
fn describe(call: Call, event: Value) -> Value {
    match call {
        Call::Webhook { url, headers, body } => {
            json!({"webhook": url, "headers": headers, "body": body.unwrap_or(event)})
        }
        Call::Message { topic, body } => json!({"message": topic, "body": body.unwrap_or(event)}),
        Call::Workflow { workflow, inputs } => json!({"workflow": workflow, "inputs": inputs}),
    }
}

/// Stands in for secrets: a test shows where they go, and needs none.
pub(crate) fn placeholders(names: impl IntoIterator<Item = String>) -> Map<String, Value> {
    names.into_iter().map(|name| (name.clone(), Value::String(format!("secrets.{name}")))).collect()
}
