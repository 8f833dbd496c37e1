//! What a callback shall do: its definition, rendered from the run it is about and what happened.

use std::collections::BTreeSet;

use language::template::{self, Scope};
use model::message::CallbackDue;
use model::{Call, Callback, Failure};
use serde_json::{Map, Value, json};
use store::RunRecord;
use uuid::Uuid;

use crate::activate::MAX_DEPTH;
use crate::template_scope::run_facts;
use crate::{Result, Runtime};

/// What there is to do for a callback.
#[derive(Clone, PartialEq, Debug)]
pub enum CallbackJob {
    /// It can be done.
    Ready {
        /// What to do.
        call: Call,
        /// What happened: the default body.
        event: Value,
        /// How deep the run is below the one that nobody's task or callback started.
        depth: u32,
    },
    /// It cannot be rendered.
    Broken(Failure),
    /// There is no such run or callback.
    Gone,
}

impl Runtime {
    /// The names of the secrets that a callback uses.
    pub async fn callback_secrets(&self, due: &CallbackDue) -> Result<BTreeSet<String>> {
        let callback = callback_of(self, due).await?;
        Ok(match callback.map(|callback| callback.call) {
            Some(Call::Webhook { url, headers, body }) => template::secrets_of(&json!([url, headers, body])),
            _ => BTreeSet::new(),
        })
    }

    /// Renders what a callback shall do, with the secrets that it names.
    pub async fn callback(&self, due: &CallbackDue, secrets: Map<String, Value>) -> Result<CallbackJob> {
        let (callback, record) = (callback_of(self, due).await?, self.store.run(due.tenant, due.run).await?);
        let (Some(callback), Some(record)) = (callback, record) else { return Ok(CallbackJob::Gone) };
        let event = event(due, &record);
        let scope = Scope {
            inputs: record.facts.inputs.clone(),
            run: Some(run_facts(&record.run, &record.facts)),
            event: Some(event.clone()),
            secrets,
            ..Scope::default()
        };
        Ok(match template::render_call(&callback.call, &scope) {
            Ok(Call::Workflow { .. }) if record.run.depth >= MAX_DEPTH => {
                CallbackJob::Broken(Failure::permanent(format!("runs start runs at most {MAX_DEPTH} deep")))
            }
            Ok(call) => CallbackJob::Ready { call, event, depth: record.run.depth },
            Err(error) => CallbackJob::Broken(Failure::permanent(error.to_string())),
        })
    }
}

async fn callback_of(runtime: &Runtime, due: &CallbackDue) -> Result<Option<Callback>> {
    let Some(graph) = runtime.graph(due.version).await? else { return Ok(None) };
    let callbacks = match due.task {
        Some(task) if graph.has(task, due.child) => &graph.spec_at(task, due.child).callbacks,
        Some(_) => return Ok(None),
        None => &graph.workflow().callbacks,
    };
    Ok(callbacks.get(due.place as usize).cloned())
}

/// What happened, for templates and for the receiver. The same callback about the same event has the same id.
fn event(due: &CallbackDue, record: &RunRecord) -> Value {
    let mut event = due.event.clone();
    let name = format!("{:?} {} {}", due.task, due.place, due.event);
    event["id"] = json!(Uuid::new_v5(&due.run.0, name.as_bytes()));
    event["run"] = json!(due.run);
    event["workflow"] = json!(record.run.workflow);
    event
}
