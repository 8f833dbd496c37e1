//! Creating runs.

use std::borrow::Borrow;
use std::sync::{Arc, Mutex};

use engine::{Command, Graph, NewRun, RunSlice};
use language::template::{RunFacts, Scope};
use model::message::{ChildFinished, RunRequested, TaskResult};
use model::{Failure, Instant, Message, Parent, Run, RunId, TaskState, TenantId, VersionId, Workflow};
use serde_json::{Map, Value};
use store::{Birth, Created, Facts, RunRecord, Transaction};

use crate::cause::Cause;
use crate::combine::Wish;
use crate::lane::{self, Entry};
use crate::publish::Unsaid;
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
        let start = Arc::new(self.prepare(request, planning).await?);
        if start.comes_alone() {
            self.despite_conflicts(request.id, || self.create_alone(&start, None)).await?;
        } else {
            self.bring(Wish::Start(start.clone()), None).await?;
        }
        Ok(Started { record: start.record(), new: true })
    }

    /// All that can be known of a run before it comes into being.
    async fn prepare(&self, request: &StartRun, planning: Option<&Planning>) -> Result<Start> {
        if !(-100..=100).contains(&request.priority) {
            return Err(Error::BadPriority(request.priority));
        }
        let number = planning.and_then(|planning| planning.version);
        let (version, number, graph) = self.startable(request, number).await?;
        let (now, workflow) = (self.clock.now(), graph.workflow());
        let facts = facts(request, planning, workflow, now)?;
        let lane = match planning.and_then(|planning| lane::of_planned(workflow, planning)) {
            Some(lane) => Some(lane),
            None => lane::key(workflow, &scope(request, &facts, now))?,
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
        Ok(Start { new_run, number, by: request.by.clone(), graph, facts, now, born: Mutex::default() })
    }

    /// Creates a run in one transaction with what is to be written about its cause; none where that has been settled
    /// before.
    pub(crate) async fn create_because(&self, request: &StartRun, cause: &Cause) -> Result<Option<RunId>> {
        let start = self.prepare(request, None).await?;
        let new = self.despite_conflicts(request.id, || self.create_alone(&start, Some(cause))).await?;
        Ok(new.then_some(request.id))
    }

    /// Creates a run in a transaction of its own. Answers whether its cause had not been settled before.
    async fn create_alone(&self, start: &Start, cause: Option<&Cause>) -> Result<bool> {
        let mut unit = self.store.begin().await?;
        if let Some(cause) = cause
            && !cause.settle(&mut *unit, Some(start.new_run.id)).await?
        {
            return Ok(false);
        }
        let entry = match &start.new_run.lane {
            Some(lane) => lane::enter(&mut *unit, start, lane).await?,
            None => Entry::default(),
        };
        self.check_wanted(&mut *unit, start.new_run.parent).await?;
        let new_run = NewRun { held: entry.held, ..start.new_run.clone() };
        let mut slice = RunSlice::create(&start.graph, new_run, &start.by, start.now);
        self.finish(&mut *unit, &mut slice, Some(&start.facts)).await?;
        self.seat(&mut *unit, vec![&mut slice]).await?;
        slice.say(entry.cancelled);
        let announcements = bear(&mut *unit, vec![slice], std::slice::from_ref(start)).await?;
        let committed = unit.commit().await?;
        self.publish(Unsaid { announcements, committed }).await;
        Ok(true)
    }

    /// A task that was to wait for the run may have been cancelled meanwhile; its run stays locked, so that it cannot
    /// be between this look and the commit.
    async fn check_wanted(&self, unit: &mut dyn Transaction, parent: Option<Parent>) -> Result<()> {
        let Some(parent) = parent.filter(|parent| parent.waits) else { return Ok(()) };
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

/// A run that is about to come into being.
pub(crate) struct Start {
    pub(crate) new_run: NewRun,
    /// Its version's number within the workflow.
    number: i32,
    pub(crate) by: String,
    pub(crate) graph: Arc<Graph>,
    pub(crate) facts: Facts,
    now: Instant,
    /// How it came into being, for whoever asked for it.
    born: Mutex<Option<Run>>,
}

impl Start {
    pub(crate) fn slice(&self) -> RunSlice<'_> {
        RunSlice::create(&self.graph, self.new_run.clone(), &self.by, self.now)
    }

    fn is_born(&self, run: &Run) {
        *self.born.lock().expect("nothing panics while it is held") = Some(run.clone());
    }

    /// The run, once it came into being.
    fn record(&self) -> RunRecord {
        let born = self.born.lock().expect("nothing panics while it is held").take();
        let run = born.expect("it came into being");
        RunRecord { run, facts: self.facts.clone(), version_number: self.number, starter: None }
    }

    /// Whether others have to be locked first: then it shares no transaction.
    fn comes_alone(&self) -> bool {
        self.new_run.lane.is_some() || self.new_run.parent.is_some_and(|parent| parent.waits)
    }
}

/// Writes runs that come into being. Answers what there is to announce; an error if one of them cannot be.
pub(crate) async fn bear(
    unit: &mut dyn Transaction,
    slices: Vec<RunSlice<'_>>,
    starts: &[impl Borrow<Start>],
) -> Result<Vec<Message>> {
    let (mut births, mut announcements) = (Vec::new(), Vec::new());
    for (slice, start) in slices.into_iter().zip(starts) {
        let mut decision = slice.close().expect("a run that comes into being changes something");
        announcements.append(&mut decision.announcements);
        births.push(Birth { facts: start.borrow().facts.clone(), changes: decision.changes });
    }
    for ((created, birth), start) in unit.create(&births).await?.into_iter().zip(&births).zip(starts) {
        match created {
            Created::New => start.borrow().is_born(&birth.changes.run),
            Created::DateTaken(run) => return Err(Error::DateTaken(run)),
            Created::Already => return Err(Error::KeyReused(birth.changes.run.id)),
        }
    }
    Ok(announcements)
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
