//! Inspections.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{Audit, Counts, Instant, RunId, TaskIndex, TaskState};

use super::Memory;
use super::tables::{RunRow, Tables};
use crate::inspection::{MAX_COUNTED, OVERDUE_AFTER, PAGE_SIZE, SILENT_AFTER, Seen, UNCLAIMED_AFTER};
use crate::{Fault, Finding, Inspection, Inspections, Result};

#[async_trait]
impl Inspections for Memory {
    async fn inspect(&self, now: Instant, after: Option<RunId>) -> Result<Inspection> {
        let tables = self.shared.tables();
        let mut findings = if after.is_none() { of_the_whole(&tables, now) } else { Vec::new() };
        let open = tables.runs.values().filter(|row| row.run.finished_at.is_none());
        let open = open.filter(|row| after.is_none_or(|after| row.run.id > after));
        let seen: Vec<Seen> = open.take(PAGE_SIZE as usize).map(|row| inspect(&tables, row, now)).collect();
        findings.extend(seen.iter().flat_map(|seen| seen.findings(now)));
        let next = seen.last().filter(|_| seen.len() == PAGE_SIZE as usize).map(|seen| seen.run.id);
        Ok(Inspection { findings, versions: seen.iter().map(Seen::version).collect(), next })
    }
}

fn inspect(tables: &Tables, row: &RunRow, now: Instant) -> Seen {
    let tasks = || tables.tasks_of(row.run.id, None).map(|(_, task)| task);
    let is_unclaimed =
        |task: &&model::Task| task.state == TaskState::Dispatched && task.since + UNCLAIMED_AFTER <= now;
    Seen {
        recheck_at: row.recheck_at,
        counts: counts(tables, row.run.id),
        unclaimed: tasks().filter(is_unclaimed).count() as u32,
        moved_at: tasks().map(|task| task.since).max(),
        run: row.run.clone(),
    }
}

fn counts(tables: &Tables, run: RunId) -> Counts {
    let mut counts = [0; TaskState::ALL.len()];
    tables.tasks_of(run, None).for_each(|(_, task)| counts[task.state as usize] += 1);
    Counts::from_array(counts)
}

fn of_the_whole(tables: &Tables, now: Instant) -> Vec<Finding> {
    let bounded = |mut found: Vec<Instant>| {
        found.sort_unstable();
        found.truncate(MAX_COUNTED as usize);
        found
    };
    let timers = tables.timers.values().map(|timer| timer.wake_at).filter(|at| *at + OVERDUE_AFTER <= now);
    let unsent = tables.outbox.values().map(|(at, _)| *at).filter(|at| *at + OVERDUE_AFTER <= now);
    let rechecks =
        tables.runs.values().filter_map(|row| row.recheck_at).filter(|at| *at + UNCLAIMED_AFTER <= now);
    let silent = tables.silent(now - SILENT_AFTER, MAX_COUNTED);
    let lost = tables.lost(&silent, MAX_COUNTED).into_iter().filter_map(|held| tables.tasks.get(&held.key));
    let letters = tables.dead_letters.values().map(|letter| letter.at);
    let kinds = [
        (Fault::OverdueTimers, timers.collect()),
        (Fault::UnsentMessages, unsent.collect()),
        (Fault::OverdueRechecks, rechecks.collect()),
        (Fault::DeadWorkers, lost.map(|task| task.since).collect()),
        (Fault::DeadLetters, letters.collect()),
    ];
    let findings = kinds.into_iter().filter_map(|(fault, found)| Finding::of_all(fault, bounded(found)));
    findings.chain(orphans_overdue(tables, now)).collect()
}

fn orphans_overdue(tables: &Tables, now: Instant) -> Vec<Finding> {
    let mut by_run: BTreeMap<RunId, (u32, Instant)> = BTreeMap::new();
    let overdue = tables.timers.iter().filter(|(_, timer)| timer.wake_at + OVERDUE_AFTER <= now);
    for ((run, ..), timer) in overdue.filter(|((run, task, _), _)| is_orphaned(tables, *run, *task)) {
        let (count, since) = by_run.entry(*run).or_insert((0, timer.wake_at));
        (*count, *since) = (*count + 1, timer.wake_at.min(*since));
    }
    by_run.into_iter().map(|(run, (count, since))| Finding::orphaned_timers(run, count, since)).collect()
}

/// Whether nothing waits for timers of that owner.
fn is_orphaned(tables: &Tables, run: RunId, task: Option<TaskIndex>) -> bool {
    match task {
        Some(task) => {
            tables.tasks.get(&model::TaskKey { run, task }).is_some_and(|task| task.finished_at.is_some())
        }
        None => tables.runs.get(&run).is_some_and(|row| row.run.finished_at.is_some()),
    }
}

pub(super) fn audit(tables: &Tables, run: RunId) -> Audit {
    let tasks = tables.tasks_of(run, None).map(|(_, task)| task).filter(|task| task.child.is_none());
    let badly = tasks.filter(|task| matches!(task.state, TaskState::Failed | TaskState::UpstreamFailed));
    let owners = tables.timers.keys().filter(|(of, ..)| *of == run).map(|(_, owner, _)| *owner);
    let mut orphaned_timers: Vec<_> = owners.filter(|owner| is_orphaned(tables, run, *owner)).collect();
    orphaned_timers.dedup();
    let ended_badly = badly.map(|task| task.index).collect();
    Audit { counts: counts(tables, run), ended_badly, orphaned_timers }
}
