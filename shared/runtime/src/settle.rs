//! Settling commands: lock the runs they are about, decide, save, commit, publish.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;
use engine::{Command, Decision, Graph, Outcome, Reach, RunSlice};
use model::{Changes, Message, Run, RunId, TaskIndex, TaskKey};
use store::{Facts, Transaction};

use crate::combine::Wish;
use crate::counting;
use crate::graphs::readable;
use crate::publish::Unsaid;
use crate::start::{self, Start};
use crate::{Error, Result, Runtime};

/// A conflict is tried again so often before the caller hears of it.
const TRIES: u32 = 5;

/// What became of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settled {
    /// It changed the run.
    Applied,
    /// The task or run had moved on; nothing was changed.
    Stale,
    /// There is no such run.
    NoSuchRun,
}

impl Runtime {
    /// Settles commands about any number of runs in one transaction, and publishes what follows once it is
    /// committed. Settling a command again finds it stale.
    pub async fn settle_all(&self, commands: &[(RunId, Command)]) -> Result<Vec<Settled>> {
        let (settled, unsaid) = self.settle_unsaid(commands).await?;
        self.publish(unsaid).await;
        Ok(settled)
    }

    /// Settles commands in one transaction, and leaves to the caller to publish what follows.
    pub(crate) async fn settle_unsaid(
        &self,
        commands: &[(RunId, Command)],
    ) -> Result<(Vec<Settled>, Unsaid)> {
        if commands.is_empty() {
            return Ok(Default::default());
        }
        self.despite_conflicts(commands[0].0, || self.try_settle(commands, &[])).await
    }

    /// Settles wishes in one transaction. A run that cannot come into being is an error, and nothing is settled.
    pub(crate) async fn settle_wishes(&self, wishes: &[Wish]) -> Result<(Vec<Settled>, Unsaid)> {
        let (mut commands, mut starts) = (Vec::new(), Vec::new());
        for wish in wishes {
            match wish {
                Wish::Settle(run, command) => commands.push((*run, command.clone())),
                Wish::Start(start) => starts.push(start.clone()),
            }
        }
        let settle = || self.try_settle(&commands, &starts);
        let (settled, unsaid) = self.despite_conflicts(wishes[0].run(), settle).await?;
        let mut settled = settled.into_iter();
        let settled = wishes.iter().map(|wish| match wish {
            Wish::Settle(..) => settled.next().expect("each command is settled"),
            Wish::Start(_) => Settled::Applied,
        });
        Ok((settled.collect(), unsaid))
    }

    /// Does it again where another change came first, a few times.
    pub(crate) async fn despite_conflicts<T, F>(&self, run: RunId, mut once: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut tries = 1;
        loop {
            match once().await {
                Err(Error::Store(store::Error::Conflict)) if tries < TRIES => {
                    counting::conflict();
                    self.back_off(run, tries).await;
                    tries += 1;
                }
                other => return other,
            }
        }
    }

    async fn try_settle(
        &self,
        commands: &[(RunId, Command)],
        starts: &[Arc<Start>],
    ) -> Result<(Vec<Settled>, Unsaid)> {
        self.settle_in(self.store.begin().await?, commands, starts).await
    }

    /// Settles commands and starts runs in a unit that is open, and commits it.
    pub(crate) async fn settle_in(
        &self,
        mut unit: Box<dyn Transaction>,
        commands: &[(RunId, Command)],
        starts: &[Arc<Start>],
    ) -> Result<(Vec<Settled>, Unsaid)> {
        let ids: BTreeSet<RunId> = commands.iter().map(|(run, _)| *run).collect();
        let runs = match ids.is_empty() {
            true => Vec::new(),
            false => unit.lock(&ids.into_iter().collect::<Vec<_>>()).await?,
        };
        let graphs = self.graphs_of(&mut *unit, &runs).await?;
        let mut stage = Stage::set(&graphs, runs, self.clock.now());
        stage.load(&mut *unit, commands).await?;
        let settled = commands.iter().map(|(run, command)| stage.decide(*run, command)).collect();
        for slice in stage.0.values_mut() {
            self.finish(&mut *unit, slice, None).await?;
        }
        let mut new_run: Vec<RunSlice<'_>> = starts.iter().map(|start| start.slice()).collect();
        for (slice, start) in new_run.iter_mut().zip(starts) {
            self.finish(&mut *unit, slice, Some(&start.facts)).await?;
        }
        let seated = self.seat(&mut *unit, stage.0.values_mut().chain(&mut new_run).collect()).await?;
        let mut announcements = Vec::new();
        if !starts.is_empty() {
            announcements = start::bear(&mut *unit, new_run, starts).await?;
        }
        let mut unsaid = self.conclude(unit, stage.close(), seated || !starts.is_empty()).await?;
        counting::starts(starts.len());
        unsaid.announcements.append(&mut announcements);
        Ok((settled, unsaid))
    }

    /// Writes and commits decisions. Nothing decided and nothing written before, nothing written. Answers what there is
    /// to publish.
    pub(crate) async fn conclude(
        &self,
        mut unit: Box<dyn Transaction>,
        decisions: Vec<Decision>,
        written: bool,
    ) -> Result<Unsaid> {
        if decisions.is_empty() && !written {
            return Ok(Unsaid::default());
        }
        let (changes, announcements): (Vec<Changes>, Vec<Vec<Message>>) =
            decisions.into_iter().map(|decision| (decision.changes, decision.announcements)).unzip();
        unit.save(&changes).await?;
        let committed = unit.commit().await?;
        counting::durations(&changes);
        Ok(Unsaid { announcements: announcements.concat(), committed })
    }

    /// Gives a slice the rows and directives that it asks for, until it asks no more. What a run was created with is
    /// given where it comes into being only now.
    pub(crate) async fn finish(
        &self,
        unit: &mut dyn Transaction,
        slice: &mut RunSlice<'_>,
        new_run: Option<&Facts>,
    ) -> Result<()> {
        loop {
            let need = slice.propagate();
            if need.is_nothing() {
                return Ok(());
            }
            let keys: Vec<TaskKey> = need.tasks.iter().map(|task| slice.key(*task)).collect();
            if !keys.is_empty() {
                unit.tasks(&keys).await?.into_iter().for_each(|(_, task)| slice.add(task));
            }
            if let Some(gone) = need.tasks.iter().find(|task| !slice.knows(**task)) {
                let why = format!("task {} of run {} has no row", gone.0, slice.run().id);
                return Err(store::Error::Unreadable { what: "task", why }.into());
            }
            self.direct(unit, slice, need.directives, new_run).await?;
        }
    }

    pub(crate) async fn graphs_of(
        &self,
        unit: &mut dyn Transaction,
        runs: &[Run],
    ) -> Result<BTreeMap<RunId, Arc<Graph>>> {
        let mut graphs = BTreeMap::new();
        for run in runs {
            let graph = match self.graphs.get(run.version) {
                Some(graph) => graph,
                None => {
                    let gone = || Error::Unusable { version: run.version, why: "it does not exist".into() };
                    let record = readable(run.version, unit.version(run.version).await)?.ok_or_else(gone)?;
                    self.graphs.compile(record)?
                }
            };
            graphs.insert(run.id, graph);
        }
        Ok(graphs)
    }

    /// Waits a little longer after each try, and not the same time for every run.
    async fn back_off(&self, run: RunId, tries: u32) {
        let jitter = i64::from(run.0.as_bytes()[15] % 8);
        let wait = TimeDelta::milliseconds(5 * (1 << tries) + jitter);
        self.clock.wait_until(self.clock.now() + wait).await;
    }
}

/// Tells a slice what its run needs to be done anew: what the switches chose, which stands in their outputs. Without these
/// a branch would be taken for one that was not chosen. Where all of it is done anew, nothing is needed.
async fn recall<'c>(
    unit: &mut dyn Transaction,
    slice: &mut RunSlice<'_>,
    commands: impl Iterator<Item = &'c Command>,
) -> Result<()> {
    if unit.has_forgotten_outputs(slice.run()).await? {
        return match slice.is_rerun_by(commands) {
            true => Ok(()),
            false => Err(Error::OutputsForgotten(slice.run().id)),
        };
    }
    let graph = slice.graph();
    let switches: Vec<TaskIndex> =
        graph.indices().filter(|task| !graph.spec(*task).cases.is_empty()).collect();
    if !switches.is_empty()
        && let Some(context) = unit.context(slice.run().id, &switches).await?
    {
        context.outputs.iter().for_each(|(switch, output)| slice.recall_choice(*switch, output));
    }
    Ok(())
}

/// The slices of all runs that one transaction is about, in id order.
struct Stage<'g>(BTreeMap<RunId, RunSlice<'g>>);

impl<'g> Stage<'g> {
    fn set(graphs: &'g BTreeMap<RunId, Arc<Graph>>, runs: Vec<Run>, now: model::Instant) -> Self {
        Self(runs.into_iter().map(|run| (run.id, RunSlice::of(&graphs[&run.id], run, now))).collect())
    }

    /// Loads the tasks that the commands are about, and their dependants in the same statement, since a
    /// completion nearly always needs them.
    async fn load(&mut self, unit: &mut dyn Transaction, commands: &[(RunId, Command)]) -> Result<()> {
        let mut keys = BTreeSet::new();
        let (mut open, mut all) = (BTreeSet::new(), BTreeSet::new());
        for (run, command) in commands {
            let Some(slice) = self.0.get(run) else { continue };
            match command.reach() {
                Reach::Run => true,
                Reach::One(task) => keys.insert(slice.key(task)),
                Reach::Neighbourhood(task) => {
                    keys.extend(slice.neighbourhood(task).map(|task| TaskKey { run: *run, task }));
                    true
                }
                Reach::Waiting(signal) => {
                    let waiting: Vec<TaskIndex> = slice.graph().waiting_for(&signal).collect();
                    let near = waiting.into_iter().flat_map(|task| slice.neighbourhood(task));
                    keys.extend(near.map(|task| TaskKey { run: *run, task }));
                    true
                }
                Reach::Unfinished => open.insert(*run),
                Reach::All => all.insert(*run),
            };
        }
        let mut rows = Vec::new();
        if !keys.is_empty() {
            rows.extend(unit.tasks(&keys.into_iter().collect::<Vec<_>>()).await?);
        }
        if !open.is_empty() {
            rows.extend(unit.unfinished(&open.into_iter().collect::<Vec<_>>()).await?);
        }
        if !all.is_empty() {
            let all: Vec<RunId> = all.iter().copied().collect();
            rows.extend(unit.all_tasks(&all).await?);
        }
        for (run, task) in rows {
            if let Some(slice) = self.0.get_mut(&run) {
                slice.add(task);
            }
        }
        for run in all {
            if let Some(slice) = self.0.get_mut(&run) {
                let about = commands.iter().filter(|(about, _)| *about == run).map(|(_, command)| command);
                recall(unit, slice, about).await?;
            }
        }
        Ok(())
    }

    fn decide(&mut self, run: RunId, command: &Command) -> Settled {
        match self.0.get_mut(&run).map(|slice| slice.decide(command)) {
            Some(Outcome::Applied) => Settled::Applied,
            Some(Outcome::Stale) => Settled::Stale,
            None => Settled::NoSuchRun,
        }
    }

    fn close(self) -> Vec<Decision> {
        self.0.into_values().filter_map(RunSlice::close).collect()
    }
}
