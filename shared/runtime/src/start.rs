//! Creating runs.

use std::sync::Arc;

use engine::{Command, Graph, NewRun, RunSlice};
use language::template::{RunFacts, Scope};
use model::message::{ChildFinished, RunRequested, TaskResult};
use model::{Failure, Instant, Parent, Run, RunId, TaskState, TenantId, VersionId, Workflow};
use serde_json::{Map, Value};
use store::{Facts, RunRecord, Transaction};

use crate::cause::Cause;
use crate::concurrency;
use crate::pipeline::{Creation, Pipeline};
use crate::{Error, Planning, Result, Runtime};

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
#[derive(Clone, PartialEq, Debug)]
pub struct Started {
    /// The run: as it came into being, if this call created it. Which task started it is not looked up then.
    pub record: RunRecord,
    /// Whether this call created it.
    pub new: bool,
}

impl Runtime {
    /// Creates a run of the workflow's active version with its first tasks on their way, and publishes these
    /// once it is committed. Asking again for the same id creates nothing.
    pub async fn start(&self, request: StartRun) -> Result<Started> {
        self.start_either(request, None).await
    }

    /// The same for a run that nobody asks for by itself. Texts among its inputs are templates.
    pub async fn start_planned(&self, request: StartRun, planning: &Planning) -> Result<Started> {
        self.start_either(request, Some(planning)).await
    }

    async fn start_either(&self, request: StartRun, planning: Option<&Planning>) -> Result<Started> {
        match self.create(&request, planning).await {
            // Asked before? Then what has changed since does not matter.
            Err(error) if error.is_hopeless() => self.started_before(&request).await?.ok_or(error),
            other => other,
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

    async fn create(&self, request: &StartRun, planning: Option<&Planning>) -> Result<Started> {
        let prepared = Arc::new(self.prepare(request, planning).await?);
        let run = if prepared.needs_locks() {
            let created = self.despite_conflicts(request.id, || self.create_alone(&prepared, None)).await?;
            created.expect("without a cause, nobody can have settled it before")
        } else {
            self.submit_run(prepared.clone()).await?
        };
        let (facts, version_number) = (prepared.facts.clone(), prepared.number);
        Ok(Started { record: RunRecord { run, facts, version_number, starter: None }, new: true })
    }

    /// All that can be known of a run before it is created.
    async fn prepare(&self, request: &StartRun, planning: Option<&Planning>) -> Result<Prepared> {
        if !(-100..=100).contains(&request.priority) {
            return Err(Error::BadPriority(request.priority));
        }
        let number = planning.and_then(|planning| planning.version);
        let (version, number, graph) = self.startable(request, number).await?;
        let (now, workflow) = (self.clock.now(), graph.workflow());
        let facts = facts(request, planning, workflow, now)?;
        let lane = match planning.and_then(|planning| concurrency::of_planned(workflow, planning)) {
            Some(lane) => Some(lane),
            None => concurrency::key(workflow, &scope(request, &facts, now))?,
        };
        let new_run = NewRun {
            id: request.id,
            tenant: request.tenant,
            version,
            parent: request.parent,
            depth: request.depth,
            lane,
            held: false,
            priority: request.priority,
        };
        Ok(Prepared { new_run, number, by: request.by.clone(), graph, facts, now })
    }

    /// Creates a run in one transaction with what is to be written about its cause; none where that has been settled
    /// before.
    pub(crate) async fn create_because(&self, request: &StartRun, cause: &Cause) -> Result<Option<RunId>> {
        let prepared = self.prepare(request, None).await?;
        let created =
            self.despite_conflicts(request.id, || self.create_alone(&prepared, Some(cause))).await?;
        Ok(created.map(|run| run.id))
    }

    /// Creates a run in a transaction of its own; none where its cause had been settled before.
    async fn create_alone(&self, prepared: &Prepared, cause: Option<&Cause>) -> Result<Option<Run>> {
        let mut pipeline = Pipeline::open(self).await?;
        if let Some(cause) = cause
            && !cause.settle(pipeline.unit(), Some(prepared.new_run.id)).await?
        {
            return Ok(None);
        }
        // The group's lock comes before the parent's, as everywhere.
        let creation = match &prepared.new_run.lane {
            Some(group) => concurrency::enter(pipeline.unit(), prepared, group).await?,
            None => Creation::of(prepared),
        };
        check_wanted(pipeline.unit(), prepared.new_run.parent).await?;
        let mut written = pipeline.settle(Vec::new(), &[], vec![creation]).await?;
        self.publish(written.pending).await;
        Ok(written.created.pop())
    }

    /// The run that this very request created earlier: of the same workflow, with the inputs that are given now.
    async fn started_before(&self, request: &StartRun) -> Result<Option<Started>> {
        let found = self.store.run(request.tenant, request.id).await?;
        let same = found.filter(|record| {
            let given =
                request.inputs.iter().all(|(name, value)| record.facts.inputs.get(name) == Some(value));
            // The id that a task's attempt or a schedule's date gives is the request's identity: what the task sees may
            // have changed, and so may the schedule's inputs.
            (given || request.parent.is_some() || record.facts.planned.is_some())
                && record.run.workflow == request.workflow
                && record.facts.logical_date == request.logical_date
        });
        Ok(same.map(|record| Started { record, new: false }))
    }

    /// The active version of the workflow, or the one of that number, if it may be started.
    async fn startable(
        &self,
        request: &StartRun,
        number: Option<i32>,
    ) -> Result<(VersionId, i32, Arc<Graph>)> {
        let (tenant, name) = (request.tenant, &request.workflow);
        let unknown = || Error::NoSuchWorkflow(name.clone());
        let active = self.store.active(tenant, name).await?.ok_or_else(unknown)?;
        if active.archived {
            return Err(Error::Archived(name.clone()));
        }
        // What a task of another run asks for belongs to what is under way.
        if active.paused && request.parent.is_none() {
            return Err(Error::Paused(name.clone()));
        }
        if let Some(number) = number {
            let found = self.store.numbered_version(tenant, name, number).await?;
            let record = found.ok_or_else(|| Error::BadBackfill(format!("there is no version {number}")))?;
            return Ok((record.id, number, self.graphs.compile(record)?));
        }
        let graph = self.graph(active.version).await?.ok_or_else(unknown)?;
        Ok((active.version, active.number, graph))
    }
}

/// A run that is about to be created.
pub(crate) struct Prepared {
    pub(crate) new_run: NewRun,
    /// Its version's number within the workflow.
    number: i32,
    pub(crate) by: String,
    pub(crate) graph: Arc<Graph>,
    pub(crate) facts: Facts,
    now: Instant,
}

impl Prepared {
    /// The slice that creates it.
    pub(crate) fn slice(&self, waiting: bool) -> RunSlice<'_> {
        let new_run = NewRun { held: waiting, ..self.new_run.clone() };
        RunSlice::create(&self.graph, new_run, &self.by, self.now)
    }

    /// Whether its group or its parent must be locked first: then it shares no transaction, since another submission of
    /// the batch might hold one of these locks.
    fn needs_locks(&self) -> bool {
        self.new_run.lane.is_some() || self.new_run.parent.is_some_and(|parent| parent.waits)
    }
}

/// A task that was to wait for the run may have been cancelled meanwhile; its run stays locked, so that it cannot
/// be between this look and the commit.
async fn check_wanted(unit: &mut dyn Transaction, parent: Option<Parent>) -> Result<()> {
    let Some(parent) = parent.filter(|parent| parent.waits) else { return Ok(()) };
    unit.lock(&[parent.key.run]).await?;
    let tasks = unit.tasks(&[parent.key]).await?;
    let waits = tasks.iter().any(|(_, task)| {
        task.index == parent.key.task && task.attempt == parent.attempt && task.state == TaskState::Sleeping
    });
    if waits { Ok(()) } else { Err(Error::Unwanted) }
}

fn facts(
    request: &StartRun,
    planning: Option<&Planning>,
    workflow: &Workflow,
    now: Instant,
) -> Result<Facts> {
    let planned = planning.map(|planning| planning.planned.clone());
    let interval = planned.as_ref().map(|planned| planned.interval);
    let run = RunFacts { interval, ..run_facts(request, now) };
    let scope = Scope { run: Some(run), ..Scope::default() };
    let given = match planning {
        Some(_) => &language::inputs::render(workflow, &request.inputs, &scope).map_err(Error::BadInputs)?,
        None => &request.inputs,
    };
    let inputs = language::inputs::bind(workflow, given, &scope).map_err(Error::BadInputs)?;
    Ok(Facts {
        inputs,
        labels: request.labels.clone(),
        trigger_kind: request.trigger_kind.clone(),
        trigger_by: request.by.clone(),
        logical_date: request.logical_date,
        planned,
    })
}

fn run_facts(request: &StartRun, now: Instant) -> RunFacts {
    RunFacts {
        id: request.id.to_string(),
        logical_date: request.logical_date.unwrap_or(now),
        trigger: request.trigger_kind.clone(),
        interval: None,
    }
}

/// What the workflow's own templates can name.
fn scope(request: &StartRun, facts: &Facts, now: Instant) -> Scope {
    let interval = facts.planned.as_ref().map(|planned| planned.interval);
    let run = RunFacts { interval, ..run_facts(request, now) };
    Scope { inputs: facts.inputs.clone(), run: Some(run), ..Scope::default() }
}
