//! Callbacks: their definitions, rendered from the run they are about and what happened.

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

/// The action of a due callback.
#[derive(Clone, PartialEq, Debug)]
pub enum CallbackJob {
    /// It can be performed.
    Ready {
        /// The call, with its templates rendered.
        call: Call,
        /// The event that it follows: the default body.
        event: Value,
        /// How many runs are above this one, linked by tasks or callbacks that started them.
        depth: u32,
    },
    /// It cannot be rendered.
    Broken(Failure),
    /// There is no such run or callback.
    Gone,
}

/// Renders callbacks, whose calls an executor performs.
#[derive(Clone, Copy)]
pub struct Callbacks<'r> {
    runtime: &'r Runtime,
}

impl Runtime {
    /// Callbacks: what follows the ends, retries and missed deadlines of runs and tasks.
    pub fn callbacks(&self) -> Callbacks<'_> {
        Callbacks { runtime: self }
    }
}

impl Callbacks<'_> {
    /// The names of the secrets that a callback uses.
    pub async fn secrets(self, due: &CallbackDue) -> Result<BTreeSet<String>> {
        let callback = callback_of(self.runtime, due).await?;
        Ok(match callback.map(|callback| callback.call) {
            Some(Call::Webhook { url, headers, body }) => template::secrets_of(&json!([url, headers, body])),
            _ => BTreeSet::new(),
        })
    }

    /// Renders a callback, with the secrets that it names.
    pub async fn job(self, due: &CallbackDue, secrets: Map<String, Value>) -> Result<CallbackJob> {
        let (callback, record) =
            (callback_of(self.runtime, due).await?, self.runtime.store.run(due.tenant, due.run).await?);
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

/// The event, for templates and for the receiver. The same callback about the same event has the same id.
fn event(due: &CallbackDue, record: &RunRecord) -> Value {
    let mut event = due.event.clone();
    let name = format!("{:?} {} {}", due.task, due.place, due.event);
    event["id"] = json!(Uuid::new_v5(&due.run.0, name.as_bytes()));
    event["run"] = json!(due.run);
    event["workflow"] = json!(record.run.workflow);
    event
}
