//! Creating runs.

use engine::{Command, Newborn, Scene};
use language::template::{RunFacts, Scope};
use model::message::{ChildFinished, RunRequested, TaskResult};
use model::{Failure, Instant, Parent, Run, RunId, TaskState, TenantId};
use serde_json::{Map, Value};
use store::{Birth, Created, Facts, Unit, WorkflowRecord};

use crate::cause::Cause;
use crate::lane::{self, Entry};
use crate::publish::Unsaid;
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
    /// The task that asks, if one does.
    pub parent: Option<Parent>,
    /// How many runs it shall be below the one that nobody's task or callback started.
    pub depth: u32,
    /// Added to the priority of each of its tasks.
    pub priority: i32,
}

impl From<RunRequested> for StartRun {
    fn from(request: RunRequested) -> Self {
        Self {
            id: request.run,
            tenant: request.tenant,
            workflow: request.workflow,
            inputs: request.inputs,
            labels: request.labels,
            logical_date: request.logical_date,
            by: request.trigger.clone(),
            trigger_kind: request.trigger,
            depth: request.parent.map_or(0, |parent| parent.depth),
            parent: request.parent,
            priority: request.priority,
        }
    }
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
        match self.despite_conflicts(request.id, || self.create(&request, None)).await {
            Ok(started) => Ok(started.unwrap_or(Started { run: request.id, new: false })),
            // Asked before? Then what has changed since does not matter.
            Err(error) if error.is_hopeless() => self.started_before(&request).await?.ok_or(error),
            Err(error) => Err(error),
        }
    }

    /// Creates the run that a task asks for. If it cannot be, a task that waits for it hears of it.
    pub async fn start_child(&self, request: StartRun, parent: Parent) -> Result<()> {
        let (tenant, id) = (request.tenant, request.id);
        if let Some(record) = self.store.run(tenant, id).await? {
            return self.tell_again(record.run).await;
        }
        let failure = match self.start(request).await {
            Ok(_) | Err(Error::Unwanted) => return Ok(()),
            Err(error) if !error.is_hopeless() || !parent.waits => return Err(error),
            Err(error) => Failure::permanent(format!("the run could not be started: {error}")),
        };
        let (task, attempt, started_at) = (parent.key.task, parent.attempt, self.clock.now());
        let result = TaskResult::Failed(failure);
        let report = Command::Report { task, attempt, worker: None, started_at, result };
        self.settle(parent.key.run, report).await.map(|_| ())
    }

    /// A task that asks again for a run that has ended did not hear of its end.
    async fn tell_again(&self, run: Run) -> Result<()> {
        match run.parent.filter(|parent| parent.waits && run.state.is_final()) {
            Some(parent) => {
                let Run { id: child, version, state, error, .. } = run;
                let finished = ChildFinished { parent, child, version, state, error };
                self.child_ended(&finished).await.map(|_| ())
            }
            None => Ok(()),
        }
    }

    /// Creates a run, in one transaction with what is to be written about its cause; none where that has been settled
    /// before.
    pub(crate) async fn create(&self, request: &StartRun, cause: Option<&Cause>) -> Result<Option<Started>> {
        if !(-100..=100).contains(&request.priority) {
            return Err(Error::BadPriority(request.priority));
        }
        let record = self.startable(request).await?;
        let now = self.clock.now();
        let facts = facts(request, &record, now)?;
        let lane = lane::key(&record.version.workflow, &scope(request, &facts, now))?;
        let graph = self.graphs.compile(record.version.clone())?;
        let mut unit = self.store.begin().await?;
        if let Some(cause) = cause
            && !cause.settle(&mut *unit, Some(request.id)).await?
        {
            return Ok(None);
        }
        let entry = match &lane {
            Some(lane) => {
                let above = self.ancestors(request.tenant, request.parent).await?;
                lane::enter(&mut *unit, request, &record.version.workflow, lane, &above).await?
            }
            None => Entry::default(),
        };
        self.check_wanted(&mut *unit, request).await?;
        let newborn = Newborn {
            id: request.id,
            tenant: request.tenant,
            version: record.version.id,
            parent: request.parent,
            depth: request.depth,
            lane,
            held: entry.held,
            priority: request.priority,
        };
        let mut scene = Scene::birth(&graph, newborn, &request.by, now);
        self.finish(&mut *unit, &mut scene, Some(&facts)).await?;
        self.seat(&mut *unit, vec![&mut scene]).await?;
        let mut decision = scene.close().expect("a run that comes into being changes something");
        decision.changes.outbox.extend(entry.cancelled);
        match unit.create(&Birth { facts, changes: decision.changes }).await? {
            Created::New => {
                let committed = unit.commit().await?;
                self.publish(Unsaid { announcements: decision.announcements, committed }).await;
                Ok(Some(Started { run: request.id, new: true }))
            }
            Created::DateTaken(run) => Err(Error::DateTaken(run)),
            Created::Already => Err(Error::KeyReused(request.id)),
        }
    }

    /// A task that was to wait for the run may have been cancelled meanwhile; its run stays locked, so that it cannot
    /// be between this look and the commit.
    async fn check_wanted(&self, unit: &mut dyn Unit, request: &StartRun) -> Result<()> {
        let Some(parent) = request.parent.filter(|parent| parent.waits) else { return Ok(()) };
        unit.lock(&[parent.key.run]).await?;
        let tasks = unit.tasks(&[parent.key]).await?;
        let waits = tasks.iter().any(|(_, task)| {
            task.index == parent.key.task
                && task.attempt == parent.attempt
                && task.state == TaskState::Sleeping
        });
        if waits { Ok(()) } else { Err(Error::Unwanted) }
    }

    /// The run that this very request created earlier: of the same workflow, with the inputs that are given now.
    async fn started_before(&self, request: &StartRun) -> Result<Option<Started>> {
        let found = self.store.run(request.tenant, request.id).await?;
        let same = found.is_some_and(|record| {
            let given =
                request.inputs.iter().all(|(name, value)| record.facts.inputs.get(name) == Some(value));
            // The id that a task's attempt gives is the request's identity: what the task sees may have changed.
            (given || request.parent.is_some())
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
    let scope = Scope { run: Some(run_facts(request, now)), ..Scope::default() };
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

fn run_facts(request: &StartRun, now: Instant) -> RunFacts {
    RunFacts {
        id: request.id.to_string(),
        logical_date: request.logical_date.unwrap_or(now),
        trigger: request.trigger_kind.clone(),
    }
}

/// What the workflow's own templates can name.
fn scope(request: &StartRun, facts: &Facts, now: Instant) -> Scope {
    Scope { inputs: facts.inputs.clone(), run: Some(run_facts(request, now)), ..Scope::default() }
}
