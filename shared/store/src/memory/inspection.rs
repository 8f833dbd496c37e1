//! Looking for what should not be.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{Audit, Counts, Instant, RunId, TaskIndex, TaskState};

use super::Memory;
use super::tables::{RunRow, Tables};
use crate::inspection::{MAX_COUNTED, OVERDUE_AFTER, PAGE_SIZE, SILENT_AFTER, Seen, UNHEARD_AFTER};
use crate::{Fault, Finding, Inspection, Inspections, Result};

#[async_trait]
impl Inspections for Memory {
    async fn inspect(&self, now: Instant, after: Option<RunId>) -> Result<Inspection> {
        let tables = self.shared.tables();
        let mut findings = if after.is_none() { tables.of_the_whole(now) } else { Vec::new() };
        let open = tables.runs.values().filter(|row| row.run.finished_at.is_none());
        let open = open.filter(|row| after.is_none_or(|after| row.run.id > after));
        let seen: Vec<Seen> = open.take(PAGE_SIZE as usize).map(|row| tables.look_at(row, now)).collect();
        findings.extend(seen.iter().flat_map(|seen| seen.findings(now)));
        let next = seen.last().filter(|_| seen.len() == PAGE_SIZE as usize).map(|seen| seen.run.id);
        Ok(Inspection { findings, versions: seen.iter().map(Seen::version).collect(), next })
    }
}

impl Tables {
    fn look_at(&self, row: &RunRow, now: Instant) -> Seen {
        let tasks = || self.tasks_of(row.run.id, None).map(|(_, task)| task);
        let is_unheard =
            |task: &&model::Task| task.state == TaskState::Dispatched && task.since + UNHEARD_AFTER <= now;
        Seen {
            recheck_at: row.recheck_at,
            counts: self.counts(row.run.id),
            unheard: tasks().filter(is_unheard).count() as u32,
            moved_at: tasks().map(|task| task.since).max(),
            run: row.run.clone(),
        }
    }

    fn counts(&self, run: RunId) -> Counts {
        let mut counts = [0; TaskState::ALL.len()];
        self.tasks_of(run, None).for_each(|(_, task)| counts[task.state as usize] += 1);
        Counts::from_array(counts)
    }

    fn of_the_whole(&self, now: Instant) -> Vec<Finding> {
        let bounded = |mut found: Vec<Instant>| {
            found.sort_unstable();
            found.truncate(MAX_COUNTED as usize);
            found
        };
        let timers = self.timers.values().map(|timer| timer.wake_at).filter(|at| *at + OVERDUE_AFTER <= now);
        let unsent = self.outbox.values().map(|(at, _)| *at).filter(|at| *at + OVERDUE_AFTER <= now);
        let rechecks =
            self.runs.values().filter_map(|row| row.recheck_at).filter(|at| *at + UNHEARD_AFTER <= now);
        let silent = self.silent(now - SILENT_AFTER, MAX_COUNTED);
        let lost = self.lost(&silent, MAX_COUNTED).into_iter().filter_map(|held| self.tasks.get(&held.key));
        let letters = self.dead_letters.values().map(|letter| letter.at);
        let kinds = [
            (Fault::OverdueTimers, timers.collect()),
            (Fault::UnsentMessages, unsent.collect()),
            (Fault::OverdueRechecks, rechecks.collect()),
            (Fault::DeadWorkers, lost.map(|task| task.since).collect()),
            (Fault::DeadLetters, letters.collect()),
        ];
        let findings = kinds.into_iter().filter_map(|(fault, found)| Finding::of_all(fault, bounded(found)));
        findings.chain(self.orphans_overdue(now)).collect()
    }

    fn orphans_overdue(&self, now: Instant) -> Vec<Finding> {
        let mut by_run: BTreeMap<RunId, (u32, Instant)> = BTreeMap::new();
        let overdue = self.timers.iter().filter(|(_, timer)| timer.wake_at + OVERDUE_AFTER <= now);
        for ((run, ..), timer) in overdue.filter(|((run, task, _), _)| self.is_orphaned(*run, *task)) {
            let (count, since) = by_run.entry(*run).or_insert((0, timer.wake_at));
            (*count, *since) = (*count + 1, timer.wake_at.min(*since));
        }
        by_run.into_iter().map(|(run, (count, since))| Finding::orphaned_timers(run, count, since)).collect()
    }

    /// Whether nothing waits for timers of that owner.
    fn is_orphaned(&self, run: RunId, task: Option<TaskIndex>) -> bool {
        match task {
            Some(task) => {
                self.tasks.get(&model::TaskKey { run, task }).is_some_and(|task| task.finished_at.is_some())
            }
            None => self.runs.get(&run).is_some_and(|row| row.run.finished_at.is_some()),
        }
    }

    pub(super) fn audit(&self, run: RunId) -> Audit {
        let tasks = self.tasks_of(run, None).map(|(_, task)| task).filter(|task| task.child.is_none());
        let badly = tasks.filter(|task| matches!(task.state, TaskState::Failed | TaskState::UpstreamFailed));
        let owners = self.timers.keys().filter(|(of, ..)| *of == run).map(|(_, owner, _)| *owner);
        let mut orphaned_timers: Vec<_> = owners.filter(|owner| self.is_orphaned(run, *owner)).collect();
        orphaned_timers.dedup();
        let ended_badly = badly.map(|task| task.index).collect();
        Audit { counts: self.counts(run), ended_badly, orphaned_timers }
    }
}
