//! The locked runs of one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::breaker::{add_gate, gate_of};
use engine::{Command, Graph, Outcome, Reach, RunSlice};
use model::{BreakerKey, Changes, Instant, Message, Run, RunId, TaskIndex, TaskKey};
use store::Transaction;

use crate::custom_types::TypeCache;
use crate::{Error, Result, Settled};

/// The slices of all locked runs of one transaction, in id order.
pub(super) struct Batch<'g>(BTreeMap<RunId, RunSlice<'g>>);

impl<'g> Batch<'g> {
    pub(super) fn of(graphs: &'g BTreeMap<RunId, Arc<Graph>>, runs: Vec<Run>, now: Instant) -> Self {
        Self(runs.into_iter().map(|run| (run.id, RunSlice::of(&graphs[&run.id], run, now))).collect())
    }

    /// Loads the tasks that the commands are about, in at most three statements however many commands there are.
    pub(super) async fn load(
        &mut self,
        unit: &mut dyn Transaction,
        commands: &[(RunId, Command)],
    ) -> Result<()> {
        let mut keys = BTreeSet::new();
        let (mut open, mut all) = (BTreeSet::new(), BTreeSet::new());
        for (run, command) in commands {
            let Some(slice) = self.0.get(run) else { continue };
            match command.reach() {
                Reach::Run => {}
                Reach::One(task) => keys.extend([slice.key(task)]),
                // The dependants come with the same statement, since a completion nearly always needs them.
                Reach::Neighbourhood(task) => keys.extend(neighbourhood(slice, task)),
                Reach::Waiting(signal) => {
                    keys.extend(
                        slice.graph().waiting_for(&signal).flat_map(|task| neighbourhood(slice, task)),
                    );
                }
                Reach::Unfinished => open.extend([*run]),
                Reach::All => all.extend([*run]),
            }
        }
        let mut rows = Vec::new();
        if !keys.is_empty() {
            rows.extend(unit.tasks(&keys.into_iter().collect::<Vec<_>>()).await?);
        }
        if !open.is_empty() {
            rows.extend(unit.unfinished(&open.into_iter().collect::<Vec<_>>()).await?);
        }
        if !all.is_empty() {
            rows.extend(unit.all_tasks(&all.iter().copied().collect::<Vec<_>>()).await?);
        }
        for (run, task) in rows {
            if let Some(slice) = self.0.get_mut(&run) {
                slice.add(task);
            }
        }
        for run in all {
            if let Some(slice) = self.0.get_mut(&run) {
                let about = commands.iter().filter(|(about, _)| *about == run).map(|(_, command)| command);
                recall_choices(unit, slice, about).await?;
            }
        }
        Ok(())
    }

    /// Loads the breakers that may refuse claims. Without a claim of a task that has one, nothing is read.
    pub(super) async fn load_gates(
        &mut self,
        unit: &mut dyn Transaction,
        commands: &[(RunId, Command)],
    ) -> Result<()> {
        let mut gates: BTreeMap<BreakerKey, BTreeSet<RunId>> = BTreeMap::new();
        for (run, command) in commands {
            if let Some(key) = self.0.get(run).and_then(|slice| gate_of(slice, command)) {
                gates.entry(key).or_default().insert(*run);
            }
        }
        if gates.is_empty() {
            return Ok(());
        }
        let keys: Vec<BreakerKey> = gates.keys().cloned().collect();
        for gate in unit.breaker_gates(&keys).await? {
            for run in gates.get(&gate.key).into_iter().flatten() {
                self.0.get_mut(run).into_iter().for_each(|slice| add_gate(slice, gate.clone()));
            }
        }
        Ok(())
    }

    pub(super) fn decide(&mut self, run: RunId, command: &Command, types: &TypeCache) -> Settled {
        let decide = |slice: &mut RunSlice<'g>| {
            let command = types.checked(slice, command);
            slice.decide(&command)
        };
        match self.0.get_mut(&run).map(decide) {
            Some(Outcome::Applied) => Settled::Applied,
            Some(Outcome::Stale) => Settled::Stale,
            None => Settled::NoSuchRun,
        }
    }

    /// The changes; messages to publish are collected separately.
    pub(super) fn slices(&mut self) -> impl Iterator<Item = &mut RunSlice<'g>> {
        self.0.values_mut()
    }

    pub(super) fn close(self, messages: &mut Vec<Message>) -> Vec<Changes> {
        let decisions = self.0.into_values().filter_map(RunSlice::close);
        decisions
            .map(|mut decision| {
                messages.append(&mut decision.messages);
                decision.changes
            })
            .collect()
    }
}

fn neighbourhood<'g>(slice: &RunSlice<'g>, task: TaskIndex) -> impl Iterator<Item = TaskKey> + use<'g> {
    let run = slice.run().id;
    slice.neighbourhood(task).map(move |task| TaskKey { run, task })
}

/// Gives a slice what a rerun needs: what the switches chose, which is in their outputs. Without it a chosen branch would
/// be taken for one that was passed over. Where every task is rerun, nothing is needed.
async fn recall_choices<'c>(
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
