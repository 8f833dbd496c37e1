//! What a worker is given to carry out one attempt.

use std::sync::Arc;

use engine::Graph;
use language::kinds::kind;
use language::template;
use model::message::TaskDispatched;
use model::{Failure, TenantId};
use serde_json::Value;
use store::Context;

use crate::direct::{render, scope};
use crate::{Result, Runtime};

/// What a worker is given to carry out one attempt.
#[derive(Clone, Debug)]
pub struct Brief {
    /// Whose work it is.
    pub tenant: TenantId,
    /// The task's rendered config.
    pub config: Value,
    /// What templates could name, as one document: inputs, outputs, run, task.
    pub document: Value,
}

/// Where an attempt stands before it is carried out.
#[derive(Clone, Debug)]
pub enum Job {
    /// It can be carried out.
    Ready(Brief),
    /// Its config cannot be rendered: it fails before it reaches a worker.
    Broken(Failure),
    /// Its run is gone.
    Gone,
}

impl Runtime {
    /// Renders what a dispatched task shall do. It reads the store for what the task can see, and not at all
    /// for one that looks at nothing.
    pub async fn job(&self, work: &TaskDispatched, graph: &Arc<Graph>) -> Result<Job> {
        let task = work.key.task;
        let spec = graph.spec(task);
        if kind(&spec.kind).is_some_and(|kind| kind.instant) && template::is_plain(&spec.config) {
            return Ok(Job::Ready(Brief {
                tenant: work.tenant,
                config: spec.config.clone(),
                document: Value::Null,
            }));
        }
        let Some(record) = self.store.run(work.tenant, work.key.run).await? else { return Ok(Job::Gone) };
        let outputs = self.store.outputs(work.key.run, &graph.ancestors(task)).await?;
        let context = Context { facts: record.facts, outputs };
        let scope = scope(graph, &record.run, task, work.attempt, &context);
        Ok(match render(graph, task, &scope) {
            Ok(config) => Job::Ready(Brief { tenant: work.tenant, config, document: scope.to_json() }),
            Err(failure) => Job::Broken(failure),
        })
    }
}
