//! All that can be known of a run before it is created.

use std::sync::Arc;

use engine::{Graph, RunSlice};
use language::template::{RunFacts, Scope};
use model::{Instant, Run, VersionId, Workflow};
use store::Facts;

use super::StartRun;
use crate::concurrency;
use crate::{Error, Result, Runtime};

/// A run that is about to be created.
pub(crate) struct Prepared {
    pub(crate) run: Run,
    /// Its version's number within the workflow.
    pub(super) number: i32,
    pub(crate) by: String,
    pub(crate) graph: Arc<Graph>,
    pub(crate) facts: Facts,
}

impl Prepared {
    /// The slice that creates it.
    pub(crate) fn slice(&self, waiting: bool) -> RunSlice<'_> {
        RunSlice::create(&self.graph, Run { waiting, ..self.run.clone() }, &self.by)
    }

    /// Whether its group or its parent must be locked first: then it shares no transaction, since another submission of
    /// the batch might hold one of these locks.
    pub(super) fn needs_locks(&self) -> bool {
        self.run.concurrency_group.is_some() || self.run.parent.is_some_and(|parent| parent.waits)
    }
}

pub(super) async fn prepare(runtime: &Runtime, request: &StartRun) -> Result<Prepared> {
    if !(-100..=100).contains(&request.priority) {
        return Err(Error::BadPriority(request.priority));
    }
    let (version, number, graph) = startable(runtime, request).await?;
    let (now, workflow) = (runtime.clock.now(), graph.workflow());
    let facts = facts(request, workflow, now)?;
    let group = match concurrency::of_origin(workflow, &request.origin) {
        Some(group) => Some(group),
        None => concurrency::key(workflow, &scope(request, &facts, now))?,
    };
    let run = Run {
        parent: request.origin.parent(),
        depth: request.origin.depth(),
        concurrency_group: group,
        priority: request.priority,
        ..Run::new(request.id, request.tenant, &workflow.name, version, graph.len(), now)
    };
    Ok(Prepared { run, number, by: request.origin.by(), graph, facts })
}

/// The version that the run takes, its number and its graph, if the workflow may be started.
async fn startable(runtime: &Runtime, request: &StartRun) -> Result<(VersionId, i32, Arc<Graph>)> {
    let (tenant, name) = (request.tenant, &request.workflow);
    let unknown = || Error::NoSuchWorkflow(name.clone());
    let active = runtime.store.active(tenant, name).await?.ok_or_else(unknown)?;
    if active.archived {
        return Err(Error::Archived(name.clone()));
    }
    // A run that a task starts belongs to what is under way.
    if active.paused && request.origin.parent().is_none() {
        return Err(Error::Paused(name.clone()));
    }
    if let Some(number) = request.origin.version() {
        let found = runtime.store.numbered_version(tenant, name, number).await?;
        let record = found.ok_or_else(|| Error::BadBackfill(format!("there is no version {number}")))?;
        return Ok((record.id, number, runtime.graphs.compile(record)?));
    }
    let graph = runtime.graph(active.version).await?.ok_or_else(unknown)?;
    Ok((active.version, active.number, graph))
}

fn facts(request: &StartRun, workflow: &Workflow, now: Instant) -> Result<Facts> {
    let planned = request.origin.planned();
    let scope = Scope { run: Some(run_facts(request, now)), ..Scope::default() };
    let given = match planned {
        Some(_) => &language::inputs::render(workflow, &request.inputs, &scope).map_err(Error::BadInputs)?,
        None => &request.inputs,
    };
    let inputs = language::inputs::bind(workflow, given, &scope).map_err(Error::BadInputs)?;
    Ok(Facts {
        inputs,
        labels: request.labels.clone(),
        trigger_kind: request.origin.trigger_kind().to_owned(),
        trigger_by: request.origin.by(),
        logical_date: request.logical_date,
        planned: planned.cloned(),
    })
}

fn run_facts(request: &StartRun, now: Instant) -> RunFacts {
    RunFacts {
        id: request.id.to_string(),
        logical_date: request.logical_date.unwrap_or(now),
        trigger: request.origin.trigger_kind().to_owned(),
        interval: request.origin.planned().map(|planned| planned.interval),
    }
}

/// The names available to the workflow's own templates.
fn scope(request: &StartRun, facts: &Facts, now: Instant) -> Scope {
    Scope { inputs: facts.inputs.clone(), run: Some(run_facts(request, now)), ..Scope::default() }
}
