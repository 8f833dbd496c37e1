//! What a worker is given to carry out one attempt.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::Graph;
use language::template;
use model::message::TaskDispatched;
use model::{Failure, TaskSpec, TenantId};
use serde_json::{Map, Value};
use store::Context;

use crate::activate::render;
use crate::template_scope::{At, scope};
use crate::{Result, Runtime};

/// What a worker needs to execute one attempt.
#[derive(Clone, Debug)]
pub struct Brief {
    /// The tenant that the run belongs to.
    pub tenant: TenantId,
    /// The task's rendered config.
    pub config: Value,
    /// What templates could name, as one document: inputs, outputs, run, task. Secrets are not in it.
    pub document: Value,
}

/// What has to be done for a dispatched task.
#[derive(Clone, Debug)]
pub enum Job {
    /// It can be executed.
    Ready(Brief),
    /// Its config cannot be rendered: it fails before it reaches a worker.
    Broken(Failure),
    /// Its run is gone.
    Gone,
}

/// The names of the secrets that a task's config uses.
pub fn secrets_of(spec: &TaskSpec) -> BTreeSet<String> {
    template::secrets_of(&spec.config)
}

impl Runtime {
    /// Renders the config of a dispatched task, with the secrets that it names. It reads from the store only what the
    /// task's templates refer to.
    pub async fn job(
        &self,
        work: &TaskDispatched,
        graph: &Arc<Graph>,
        secrets: Map<String, Value>,
    ) -> Result<Job> {
        let (task, child) = (work.key.task, work.child);
        let spec = graph.spec_at(task, child);
        if spec.kind.is_inline() && template::is_plain(&spec.config) {
            return Ok(Job::Ready(Brief {
                tenant: work.tenant,
                config: spec.config.clone(),
                document: Value::Null,
            }));
        }
        let Some(record) = self.store.run(work.tenant, work.key.run).await? else { return Ok(Job::Gone) };
        let anchor = child.map_or(task, |child| child.of);
        let outputs = self.store.outputs(work.key.run, &graph.ancestors(anchor)).await?;
        let item = if child.is_some() { self.store.item(work.key).await? } else { None };
        let context = Context { facts: record.facts, outputs };
        let at = At { task, child, attempt: work.attempt };
        let mut scope = scope(graph, &record.run, at, &context, item);
        scope.secrets = secrets;
        Ok(match render(spec, &scope) {
            Ok(config) => Job::Ready(Brief { tenant: work.tenant, config, document: scope.to_json() }),
            Err(failure) => Job::Broken(failure),
        })
    }
}
