//! Callbacks, rendered but not sent.

use model::Call;
use model::message::CallbackDue;
use runtime::{CallbackJob, Result, Runtime};
use serde_json::{Map, Value, json};

/// A rendered callback; secrets are shown by name.
pub(crate) async fn render(runtime: &Runtime, due: &CallbackDue) -> Result<Value> {
    let secrets = placeholders(runtime.callbacks().secrets(due).await?);
    let mut rendered = match runtime.callbacks().job(due, secrets).await? {
        CallbackJob::Ready { call, event, .. } => describe(call, event),
        CallbackJob::Broken(failure) => json!({"broken": failure.message}),
        CallbackJob::Gone => json!({"broken": "the callback does not exist"}),
    };
    rendered["on"] = due.event["on"].clone();
    if let Some(task) = due.event.get("task") {
        rendered["task"] = task.clone();
    }
    Ok(rendered)
}

/// A call in the form that test files use.
fn describe(call: Call, event: Value) -> Value {
    match call {
        Call::Webhook { url, headers, body } => {
            json!({"webhook": url, "headers": headers, "body": body.unwrap_or(event)})
        }
        Call::Message { topic, body } => json!({"message": topic, "body": body.unwrap_or(event)}),
        Call::Workflow { workflow, inputs } => json!({"workflow": workflow, "inputs": inputs}),
    }
}

/// Placeholders for secrets, so that a test shows where they go without needing them.
pub(crate) fn placeholders(names: impl IntoIterator<Item = String>) -> Map<String, Value> {
    names.into_iter().map(|name| (name.clone(), Value::String(format!("secrets.{name}")))).collect()
}
