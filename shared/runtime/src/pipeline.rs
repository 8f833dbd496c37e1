//! The write path: the only place that opens a slice of a run.
//!
//! ```text
//! lock ─▶ load ─▶ decide ─▶ propagate ─▶ admit ─▶ save ─▶ commit
//! ```
//!
//! A caller opens a [`Pipeline`], takes the locks that must come first (a concurrency group, due timers, a parent run),
//! locks the runs, and hands everything to [`Pipeline::settle`]. All reads go through the open transaction: a second
//! connection could deadlock the pool, once each caller holds one and waits for another.

mod batch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;
use engine::breaker::attempt_ends;
use engine::{Allocator, Command, Graph, RunSlice};
use model::{Changes, Message, Run, RunId, SlotRequest, TaskKey};
use store::{Created, Facts, NewRunRecord, Transaction};
use tracing::error;

use batch::Batch;

use crate::activate;
use crate::breakers;
use crate::counting;
use crate::graphs::readable;
use crate::inbox::{Halving, catching_panics};
use crate::publish;
use crate::publish::Pending;
use crate::slots::{self, Granting};
use crate::start::Prepared;
use crate::{Error, Result, Runtime};

/// How many times a transaction that met a conflict is made before the caller gets the error.
const MAX_TRIES: u32 = 5;

/// How long a run that cannot be settled is left alone.
const POSTPONED_FOR: TimeDelta = TimeDelta::minutes(10);

/// The outcome of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settled {
    /// It changed the run.
    Applied,
    /// The task or run had moved on; nothing was changed. Or a breaker refused the claim, and the task waits again.
    Stale,
    /// There is no such run.
    NoSuchRun,
}

/// A run to create in this transaction.
pub(crate) struct Creation<'s> {
    pub(crate) prepared: &'s Prepared,
    /// Whether its concurrency group is full.
    pub(crate) waiting: bool,
    /// Messages that must go out with it.
    pub(crate) messages: Vec<Message>,
}

impl<'s> Creation<'s> {
    /// The creation of a run that starts at once.
    pub(crate) fn of(prepared: &'s Prepared) -> Self {
        Self { prepared, waiting: false, messages: Vec::new() }
    }
}

/// The rows that a committed transaction wrote, and the steps that follow.
#[derive(Default)]
pub(crate) struct Written {
    /// One for each command, in order.
    pub(crate) settled: Vec<Settled>,
    /// The created runs, in order.
    pub(crate) created: Vec<Run>,
    pub(crate) pending: Pending,
}

/// An open transaction. Dropped before it is settled, it leaves no trace.
pub(crate) struct Pipeline<'r> {
    runtime: &'r Runtime,
    unit: Box<dyn Transaction>,
}

impl<'r> Pipeline<'r> {
    pub(crate) async fn open(runtime: &'r Runtime) -> Result<Self> {
        Ok(Self { runtime, unit: runtime.store.begin().await? })
    }

    /// The transaction, for locks and reads that come before the runs are locked.
    pub(crate) fn unit(&mut self) -> &mut dyn Transaction {
        &mut *self.unit
    }

    /// Locks the runs that commands are about.
    pub(crate) async fn lock(&mut self, commands: &[(RunId, Command)]) -> Result<Vec<Run>> {
        let ids: BTreeSet<RunId> = commands.iter().map(|(run, _)| *run).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.unit.lock(&ids.into_iter().collect::<Vec<_>>()).await?)
    }

    /// Decides commands about locked runs, creates runs, and commits. Where nothing changed, nothing is written. A run
    /// that cannot be created is an error, and nothing is written either.
    pub(crate) async fn settle(
        mut self,
        locked: Vec<Run>,
        commands: &[(RunId, Command)],
        creations: Vec<Creation<'_>>,
    ) -> Result<Written> {
        let graphs = self.graphs_of(&locked).await?;
        let mut batch = Batch::of(&graphs, locked, self.runtime.clock.now());
        batch.load(&mut *self.unit, commands).await?;
        batch.load_gates(&mut *self.unit, commands).await?;
        let settled =
            commands.iter().map(|(run, command)| batch.decide(*run, command, &self.runtime.types)).collect();
        for slice in batch.slices() {
            self.propagate(slice, None).await?;
        }
        let mut new: Vec<RunSlice<'_>> =
            creations.iter().map(|creation| creation.prepared.slice(creation.waiting)).collect();
        for (slice, creation) in new.iter_mut().zip(&creations) {
            self.propagate(slice, Some(&creation.prepared.facts)).await?;
        }
        let ends: Vec<_> = batch.slices().flat_map(|slice| attempt_ends(slice).to_vec()).collect();
        let broken = breakers::count(&mut *self.unit, &ends, self.runtime.clock.now()).await?;
        // One admission for all runs of the transaction: it locks limits, which come after runs and breakers in the lock order.
        let granting = self.admit(batch.slices().chain(&mut new).collect(), &broken).await?;
        let (created, mut messages) = self.create(new, creations).await?;
        let changes = batch.close(&mut messages);
        if changes.is_empty() && created.is_empty() && granting.is_none() {
            return Ok(Written { settled, ..Written::default() });
        }
        self.unit.save(&changes).await?;
        let now = self.runtime.clock.now();
        let (unsent, granting) = slots::commit(self.unit, granting.unwrap_or_default(), now).await?;
        counting::committed(&changes, &created);
        messages.extend(broken.committed(now));
        let created = created.into_iter().map(|changes| changes.run).collect();
        Ok(Written { settled, created, pending: Pending { messages, unsent, granting } })
    }

    /// The graphs of these runs' versions.
    pub(crate) async fn graphs_of(&mut self, runs: &[Run]) -> Result<BTreeMap<RunId, Arc<Graph>>> {
        let mut graphs = BTreeMap::new();
        for run in runs {
            graphs.insert(run.id, self.graph_of(run).await?);
        }
        Ok(graphs)
    }

    /// The graph of a run's version, from the cache or through the transaction.
    pub(crate) async fn graph_of(&mut self, run: &Run) -> Result<Arc<Graph>> {
        if let Some(graph) = self.runtime.graphs.get(run.version) {
            return Ok(graph);
        }
        let gone = || Error::Unusable { version: run.version, why: "it does not exist".into() };
        let record = readable(run.version, self.unit.version(run.version).await)?.ok_or_else(gone)?;
        self.runtime.graphs.compile(record)
    }

    /// Gives a slice the rows and directives that it needs, until it needs no more. A run that is being created has no
    /// facts in the store yet: they are passed in.
    async fn propagate(&mut self, slice: &mut RunSlice<'_>, facts: Option<&Facts>) -> Result<()> {
        loop {
            // Each round may end tasks, whose dependants then need rows or directives of their own.
            let need = slice.propagate();
            if need.is_nothing() {
                return Ok(());
            }
            let keys: Vec<TaskKey> = need.tasks.iter().map(|task| slice.key(*task)).collect();
            if !keys.is_empty() {
                self.unit.tasks(&keys).await?.into_iter().for_each(|(_, task)| slice.add(task));
            }
            // Without this check a missing row would be asked for again and again.
            if let Some(gone) = need.tasks.iter().find(|task| !slice.knows(**task)) {
                let why = format!("task {} of run {} has no row", gone.0, slice.run().id);
                return Err(store::Error::Unreadable { what: "task", why }.into());
            }
            activate::activate(self.runtime, &mut *self.unit, slice, need.directives, facts).await?;
        }
    }

    /// Requests slots for all tasks of these slices that need one, and releases those that are not needed any more.
    /// Returns the waiters that were granted slots; none if there was nothing to request or release.
    async fn admit(
        &mut self,
        slices: Vec<&mut RunSlice<'_>>,
        broken: &breakers::Changed,
    ) -> Result<Option<Granting>> {
        let mut requests: Vec<_> = slices.iter().flat_map(|slice| slice.slot_requests()).collect();
        // Of those that come together, the most urgent is served first.
        requests.sort_by_key(SlotRequest::rank);
        let releases: Vec<_> = slices.iter().flat_map(|slice| slice.slot_releases()).collect();
        if requests.is_empty() && releases.is_empty() && broken.resized.is_empty() {
            return Ok(None);
        }
        let keys: Vec<TaskKey> = requests.iter().map(|request| request.key).collect();
        let resized = broken.resized.clone();
        let allocator = Allocator::admit_and_resize(requests, releases, resized, self.runtime.clock.now());
        let (admissions, granting) = slots::allocate(&mut *self.unit, allocator).await?;
        let mut slices: BTreeMap<RunId, &mut RunSlice<'_>> =
            slices.into_iter().map(|slice| (slice.run().id, slice)).collect();
        for (key, admission) in keys.into_iter().zip(admissions) {
            if let Some(slice) = slices.get_mut(&key.run) {
                slice.admit(key.task, admission);
            }
        }
        Ok(Some(granting))
    }

    /// Inserts new runs. Returns what was written of them, and what to publish.
    async fn create(
        &mut self,
        slices: Vec<RunSlice<'_>>,
        creations: Vec<Creation<'_>>,
    ) -> Result<(Vec<Changes>, Vec<Message>)> {
        if slices.is_empty() {
            return Ok(Default::default());
        }
        let (mut new_runs, mut messages) = (Vec::new(), Vec::new());
        for (mut slice, creation) in slices.into_iter().zip(creations) {
            slice.publish(creation.messages);
            let mut decision = slice.close().expect("creating a run changes something");
            messages.append(&mut decision.messages);
            new_runs.push(NewRunRecord { facts: creation.prepared.facts.clone(), changes: decision.changes });
        }
        for (created, new_run) in self.unit.create(&new_runs).await?.into_iter().zip(&new_runs) {
            match created {
                Created::New => {}
                Created::DateTaken(run) => return Err(Error::DateTaken(run)),
                Created::Already => return Err(Error::KeyReused(new_run.changes.run.id)),
            }
        }
        Ok((new_runs.into_iter().map(|new_run| new_run.changes).collect(), messages))
    }
}

impl Runtime {
    /// Settles commands about any number of runs in one transaction, and publishes what follows once it is
    /// committed. Settling a command again finds it stale.
    pub async fn settle_all(&self, commands: &[(RunId, Command)]) -> Result<Vec<Settled>> {
        let written = write_all(self, commands).await?;
        publish::publish(self, written.pending).await;
        Ok(written.settled)
    }

    /// Settles commands in as few transactions as possible. A run that cannot be settled is postponed and does not hold
    /// up the others. Returns how many commands changed anything.
    pub async fn settle_or_postpone(&self, commands: Vec<(RunId, Command)>) -> Result<usize> {
        let (mut applied, mut batches) = (0, Halving::of(commands));
        while let Some(batch) = batches.next() {
            match catching_panics(self.settle_all(&batch)).await {
                Ok(settled) => {
                    applied += settled.into_iter().filter(|settled| *settled == Settled::Applied).count()
                }
                Err(error) => match batches.failed(batch, &error) {
                    None => {}
                    Some(_) if error.is_passing() => return Err(error),
                    Some(failed) => {
                        for (run, _) in failed {
                            error!(event = "unsettled", %run, "Run {run} cannot be settled: {error}");
                            let now = self.clock.now();
                            self.store.postpone(run, now, now + POSTPONED_FOR).await?;
                        }
                    }
                },
            }
        }
        Ok(applied)
    }
}

/// Settles commands in one transaction, and leaves it to the caller to publish what follows.
pub(crate) async fn write_all(runtime: &Runtime, commands: &[(RunId, Command)]) -> Result<Written> {
    match commands.first() {
        Some((run, _)) => despite_conflicts(runtime, *run, || try_write(runtime, commands, &[])).await,
        None => Ok(Written::default()),
    }
}

/// Settles commands and creates runs, once.
pub(crate) async fn try_write(
    runtime: &Runtime,
    commands: &[(RunId, Command)],
    prepared: &[Arc<Prepared>],
) -> Result<Written> {
    let mut pipeline = Pipeline::open(runtime).await?;
    let locked = pipeline.lock(commands).await?;
    let creations = prepared.iter().map(|prepared| Creation::of(prepared)).collect();
    pipeline.settle(locked, commands, creations).await
}

/// Repeats a transaction that met a conflict, a few times.
pub(crate) async fn despite_conflicts<T, F>(
    runtime: &Runtime,
    run: RunId,
    mut once: impl FnMut() -> F,
) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut tries = 1;
    loop {
        match once().await {
            Err(Error::Store(store::Error::Conflict)) if tries < MAX_TRIES => {
                counting::conflict();
                back_off(runtime, run, tries).await;
                tries += 1;
            }
            other => return other,
        }
    }
}

/// Waits a little longer after each try, and not the same time for every run.
async fn back_off(runtime: &Runtime, run: RunId, tries: u32) {
    let jitter = i64::from(run.0.as_bytes()[15] % 8);
    let wait = TimeDelta::milliseconds(5 * (1 << tries) + jitter);
    runtime.clock.wait_until(runtime.clock.now() + wait).await;
}
