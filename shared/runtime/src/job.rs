//! The job that a worker receives to execute one attempt.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::Graph;
use language::template::{self, Scope};
use language::types::TaskType;
use model::message::TaskDispatched;
use model::{Failure, TaskIndex, TaskSpec, TenantId};
use serde_json::{Map, Value, json};
use store::Context;

use crate::activate::render;
use crate::template_scope::{At, named_outputs, scope, too_large, used_by_config};
use crate::{Result, Runtime};

/// Everything that a worker needs to execute one attempt.
#[derive(Clone, Debug)]
pub struct Brief {
    /// The tenant that the run belongs to.
    pub tenant: TenantId,
    /// The task's rendered config.
    pub config: Value,
    /// What templates could name, as one document: inputs, outputs, run, task; of what is no program, only the outputs that it
    /// uses. Beside these, its tenant, workflow, labels, data interval and checkpoint. Secrets are not in it.
    pub document: Value,
}

/// The action for a dispatched task.
#[derive(Clone, Debug)]
pub enum Job {
    /// It can be executed.
    Ready(Brief),
    /// Its config cannot be rendered: it fails before it reaches a worker.
    Broken(Failure),
    /// Its run was deleted.
    Gone,
}

/// The names of the secrets that a task's config uses.
pub fn secrets_of(spec: &TaskSpec) -> BTreeSet<String> {
    let kind = TaskType::of(&spec.kind);
    match &spec.config {
        // Code and files are not templates, whatever they contain.
        Value::Object(settings) => {
            let templates = settings.iter().filter(|(name, _)| !kind.is_code(name));
            templates.flat_map(|(_, value)| template::secrets_of(value)).collect()
        }
        config => template::secrets_of(config),
    }
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
        let leased = spec.leased;
        // A later attempt at a leased task may continue from a checkpoint, which the document holds.
        let may_continue = leased && work.attempt > 1;
        if spec.kind.is_inline() && template::is_plain(&spec.config) && !may_continue {
            return Ok(Job::Ready(Brief {
                tenant: work.tenant,
                config: spec.config.clone(),
                document: Value::Null,
            }));
        }
        let Some(record) = self.store.run(work.tenant, work.key.run).await? else { return Ok(Job::Gone) };
        let anchor = child.map_or(task, |child| child.of);
        // A program is given all outputs, whichever it uses; everything else only what its templates name.
        let (is_program, used) = (spec.kind.runs_user_code() || leased, used_by_config(spec));
        let (wanted, what) = match is_program {
            true => (
                graph.ancestors(anchor),
                "the outputs of the tasks before it, which its program is given, are",
            ),
            false => (named_outputs(graph, Some(anchor), &used), "the outputs that it uses are"),
        };
        let outputs = match self.store.outputs(work.key.run, &wanted).await {
            Err(store::Error::TooLarge) => return Ok(Job::Broken(too_large(what))),
            found => found?,
        };
        let item = if child.is_some() { self.store.item(work.key).await? } else { None };
        let named = |(task, output): (TaskIndex, Value)| (graph.spec(task).name.clone(), output);
        let outputs: Map<String, Value> = outputs.into_iter().map(named).collect();
        let context = Context { facts: record.facts, outputs: BTreeMap::new() };
        let at = At { task, child, attempt: work.attempt };
        // Rendering copies what it is given, so it is given no more than it uses.
        let is_used = |name: &String| used.contains(&None) || used.contains(&Some(name.clone()));
        let visible = outputs.iter().filter(|(name, _)| is_used(name));
        let visible = visible.map(|(name, output)| (name.clone(), output.clone())).collect();
        let scope = Scope { secrets, outputs: visible, ..scope(graph, &record.run, at, &context, item) };
        let rendered = render(spec, &scope).and_then(|config| {
            self.types.check_config(work.version, graph, &spec.kind, &config)?;
            Ok(config)
        });
        let config = match rendered {
            Ok(config) => config,
            Err(failure) => return Ok(Job::Broken(failure)),
        };
        let mut document = Scope { outputs, ..scope }.into_json();
        if !spec.kind.is_inline() || leased {
            add_surroundings(self, work, graph, &context.facts.labels, &mut document).await?;
        }
        Ok(Job::Ready(Brief { tenant: work.tenant, config, document }))
    }
}

/// Adds to a document what a program may want to know beyond what templates can name.
async fn add_surroundings(
    runtime: &Runtime,
    work: &TaskDispatched,
    graph: &Graph,
    labels: &Map<String, Value>,
    document: &mut Value,
) -> Result<()> {
    // Only a second attempt can continue from a checkpoint.
    let checkpoint = match work.attempt {
        0 | 1 => None,
        _ => runtime.store.checkpoint(work.key).await?.map(|checkpoint| checkpoint.data),
    };
    let tenant = runtime.tenants().name(work.tenant).await?;
    let workflow = &graph.workflow().name;
    Surroundings { tenant: tenant.as_str(), workflow, labels, checkpoint }.add_to(document);
    Ok(())
}

/// Facts for programs beyond the names available to templates.
#[derive(Clone, Debug)]
pub struct Surroundings<'s> {
    /// The name of its tenant.
    pub tenant: &'s str,
    /// The name of its workflow.
    pub workflow: &'s str,
    /// The labels of its run.
    pub labels: &'s Map<String, Value>,
    /// The checkpoint that it continues from.
    pub checkpoint: Option<Value>,
}

impl Surroundings<'_> {
    /// Adds it to the document that a program is given.
    pub fn add_to(self, document: &mut Value) {
        let interval = json!({
            "start": document["run"]["data_interval_start"], "end": document["run"]["data_interval_end"],
        });
        document["tenant"] = self.tenant.into();
        document["workflow"] = self.workflow.into();
        document["labels"] = self.labels.clone().into();
        document["data_interval"] = interval;
        document["checkpoint"] = self.checkpoint.into();
    }
}
