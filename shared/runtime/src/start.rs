//! Creating runs.

use engine::Scene;
use language::template::{RunFacts, Scope};
use model::{Instant, RunId, TenantId};
use serde_json::{Map, Value};
use store::{Birth, Context, Created, Facts, WorkflowRecord};

use crate::{Error, Result, Runtime};

/// A run that is asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct StartRun {
    /// The id it shall have; asking twice for one id creates one run.
    pub id: RunId,
    /// For whom.
    pub tenant: TenantId,
    /// Of which workflow.
    pub workflow: String,
    /// Its inputs, as given.
    pub inputs: Map<String, Value>,
    /// Labels to find it by.
    pub labels: Map<String, Value>,
    /// The date it is about, if it is about one.
    pub logical_date: Option<Instant>,
    /// What asks: `api`, `message`, …
    pub trigger_kind: String,
    /// Who asks.
    pub by: String,
}

/// A run that exists now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Started {
    /// Its id.
    pub run: RunId,
    /// Whether this call created it.
    pub new: bool,
}

impl Runtime {
    /// Creates a run of the workflow's active version with its first tasks on their way, and publishes these
    /// once it is committed. Asking again for the same id creates nothing.
    pub async fn start(&self, request: StartRun) -> Result<Started> {
        match self.create(&request).await {
            // Asked before? Then what has changed since does not matter.
            Err(error) if error.is_hopeless() => self.started_before(&request).await?.ok_or(error),
            other => other,
        }
    }

    async fn create(&self, request: &StartRun) -> Result<Started> {
        let record = self.startable(request).await?;
        let now = self.clock.now();
        let facts = facts(request, &record, now)?;
        let (id, version) = (request.id, record.version.id);
        let graph = self.graphs.compile(record.version)?;
        let mut scene = Scene::birth(&graph, id, request.tenant, version, &request.by, now);
        let context = Context { facts, outputs: Default::default() };
        loop {
            let need = scene.settle();
            if need.is_nothing() {
                break;
            }
            for task in need.directives {
                let directive = crate::direct::directive(&scene, task, &context, now);
                scene.direct(task, directive);
            }
        }
        let decision = scene.close().expect("a run that comes into being changes something");
        let birth = Birth { facts: context.facts, changes: decision.changes };
        let mut unit = self.store.begin().await?;
        match unit.create(&birth).await? {
            Created::New => {
                let unsent = unit.commit().await?;
                self.say(decision.announcements, unsent).await;
                Ok(Started { run: id, new: true })
            }
            Created::DateTaken(run) => Err(Error::DateTaken(run)),
            Created::Already => Err(Error::KeyReused(id)),
        }
    }

    /// The run that this very request created earlier: of the same workflow, with the inputs that are given now.
    async fn started_before(&self, request: &StartRun) -> Result<Option<Started>> {
        let found = self.store.run(request.tenant, request.id).await?;
        let same = found.is_some_and(|record| {
            let given =
                request.inputs.iter().all(|(name, value)| record.facts.inputs.get(name) == Some(value));
            given
                && record.run.workflow == request.workflow
                && record.facts.logical_date == request.logical_date
        });
        Ok(same.then_some(Started { run: request.id, new: false }))
    }

    async fn startable(&self, request: &StartRun) -> Result<WorkflowRecord> {
        let found = self.store.workflow(request.tenant, &request.workflow).await?;
        let record = found.ok_or_else(|| Error::NoSuchWorkflow(request.workflow.clone()))?;
        if record.archived { Err(Error::Archived(record.name)) } else { Ok(record) }
    }
}

fn facts(request: &StartRun, record: &WorkflowRecord, now: Instant) -> Result<Facts> {
    let run = RunFacts {
        id: request.id.to_string(),
        logical_date: request.logical_date.unwrap_or(now),
        trigger: request.trigger_kind.clone(),
    };
    let scope = Scope { run: Some(run), ..Scope::default() };
    let inputs = language::inputs::bind(&record.version.workflow, &request.inputs, &scope)
        .map_err(Error::BadInputs)?;
    Ok(Facts {
        inputs,
        labels: request.labels.clone(),
        trigger_kind: request.trigger_kind.clone(),
        trigger_by: request.by.clone(),
        logical_date: request.logical_date,
    })
}
