//! Deletes what has expired.

use std::collections::BTreeSet;

use async_trait::async_trait;
use model::{Instant, Run, RunId, RunState};
use serde_json::{Value, json};

use super::Memory;
use super::tables::Tables;
use crate::retention::{MAX_DELETED_AT_ONCE, at_once};
use crate::triggers::TRIGGER_EVENT_TTL;
use crate::{Part, Result, Retention};

#[async_trait]
impl Retention for Memory {
    async fn take_retention(&self, now: Instant, until: Instant) -> Result<bool> {
        let mut tables = self.shared.tables();
        let free = tables.retention_at.is_none_or(|at| at <= now);
        if free {
            tables.retention_at = Some(until);
        }
        Ok(free)
    }

    async fn rest_retention(&self, until: Instant) -> Result<()> {
        self.shared.tables().retention_at = Some(until);
        Ok(())
    }

    async fn expired(&self, part: Part, state: RunState, before: Instant) -> Result<Vec<RunId>> {
        let tables = self.shared.tables();
        let ended = tables.runs.values().map(|row| &row.run).filter(|run| run.state == state);
        let ended = ended.filter_map(|run| Some((run.finished_at?, run.id, run.counts.total())));
        let place = tables.forgotten.get(&(part, state));
        let mut ended: Vec<_> = ended
            .filter(|(at, id, _)| *at <= before && place.is_none_or(|place| (*at, *id) > *place))
            .collect();
        ended.sort_unstable();
        Ok(at_once(ended.into_iter().take(MAX_DELETED_AT_ONCE as usize).map(|(_, id, tasks)| (id, tasks))))
    }

    async fn documents(&self, part: Part, runs: &[RunId]) -> Result<Vec<Value>> {
        Ok(documents(&self.shared.tables(), part, runs))
    }

    async fn turn_pages(&self, _: Instant, _: Instant) -> Result<()> {
        // Nothing lies in partitions here.
        Ok(())
    }

    async fn forget(&self, part: Part, runs: &[RunId]) -> Result<()> {
        let mut tables = self.shared.tables();
        let ended = |run: &RunId| tables.runs.get(run).is_some_and(|row| row.run.finished_at.is_some());
        let gone: BTreeSet<RunId> = runs.iter().copied().filter(ended).collect();
        if let Some(row) = runs.last().and_then(|run| tables.runs.get(run)) {
            let place = row.run.finished_at.map(|at| ((part, row.run.state), (at, row.run.id)));
            tables.forgotten.extend(place.filter(|_| part != Part::Whole));
        }
        if part != Part::Logs {
            tables.outputs.retain(|key, _| !gone.contains(&key.run));
        }
        if part != Part::Outputs {
            tables.logs.retain(|(key, ..), _| !gone.contains(&key.run));
        }
        if part == Part::Whole {
            tables.runs.retain(|run, _| !gone.contains(run));
            tables.dates.retain(|_, run| !gone.contains(run));
            tables.tasks.retain(|key, _| !gone.contains(&key.run));
            tables.items.retain(|key, _| !gone.contains(&key.run));
            tables.checkpoints.retain(|key, _| !gone.contains(&key.run));
            tables.progress.retain(|(key, _), _| !gone.contains(&key.run));
            tables.attempts.retain(|(key, _), _| !gone.contains(&key.run));
            tables.events.retain(|(run, _), _| !gone.contains(run));
            tables.timers.retain(|(run, ..), _| !gone.contains(run));
            tables.signals.retain(|(run, _), _| !gone.contains(run));
            tables.waiters.retain(|key, _| !gone.contains(&key.run));
            tables.offers.retain(|key, _| !gone.contains(&key.run));
            tables.shares.retain(|_, share| !gone.contains(&share.owner.run));
        }
        Ok(())
    }

    async fn delete_dead_letters(&self, before: Instant) -> Result<u64> {
        let dead_letters = &mut self.shared.tables().dead_letters;
        let old = dead_letters.values().filter(|letter| letter.at <= before);
        let mut old: Vec<_> = old.map(|letter| (letter.at, letter.id.clone())).collect();
        old.sort_unstable();
        old.truncate(MAX_DELETED_AT_ONCE as usize);
        old.iter().for_each(|(_, id)| drop(dead_letters.remove(id)));
        Ok(old.len() as u64)
    }

    async fn forget_trigger_events(&self, now: Instant) -> Result<u64> {
        let events = &mut self.shared.tables().trigger_events;
        let old = events.iter().filter(|(_, event)| event.at < now - TRIGGER_EVENT_TTL);
        let mut old: Vec<_> = old.map(|(place, event)| (event.at, place.clone())).collect();
        old.sort_unstable();
        old.truncate(MAX_DELETED_AT_ONCE as usize);
        old.iter().for_each(|(_, place)| drop(events.remove(place)));
        Ok(old.len() as u64)
    }

    async fn forget_breakers(&self, before: Instant) -> Result<u64> {
        Ok(self.shared.tables().breakers.forget(before, MAX_DELETED_AT_ONCE as usize))
    }
}

pub(super) fn documents(tables: &Tables, part: Part, runs: &[RunId]) -> Vec<Value> {
    let wanted: BTreeSet<RunId> = runs.iter().copied().collect();
    match part {
        Part::Outputs => {
            let outputs = tables.outputs.iter().filter(|(key, _)| wanted.contains(&key.run));
            let outputs =
                outputs.map(|(key, output)| json!({"run": key.run, "task": key.task, "output": output}));
            outputs.collect()
        }
        Part::Logs => {
            let logs = tables.logs.iter().filter(|((key, ..), _)| wanted.contains(&key.run));
            let document = |((key, attempt, first), (lines, bytes)): (
                &(model::TaskKey, u32, u32),
                &(Vec<_>, _),
            )| {
                let count = lines.len();
                json!({"run": key.run, "idx": key.task, "attempt": attempt, "first": first, "count": count,
                       "lines": lines, "bytes": bytes})
            };
            logs.map(document).collect()
        }
        Part::Whole => runs.iter().filter_map(|run| document(tables, *run)).collect(),
    }
}

fn document(tables: &Tables, id: RunId) -> Option<Value> {
    let row = tables.runs.get(&id)?;
    let tasks = tables.tasks_of(id, None).map(|(key, task)| {
        json!({"run": id, "idx": key.task, "state": task.state.name(), "attempt": task.attempt})
    });
    let events: Vec<Value> = tables.events(id, 0, u32::MAX).iter().map(|(_, event)| json!(event)).collect();
    Some(json!({
        "run": {"id": id, "workflow": row.run.workflow, "state": row.run.state.name()},
        "facts": {"inputs": row.facts.inputs, "labels": row.facts.labels},
        "tasks": tasks.collect::<Vec<_>>(),
        "outputs": documents(tables, Part::Outputs, &[id]),
        "logs": documents(tables, Part::Logs, &[id]),
        "events": events,
    }))
}

pub(super) fn has_forgotten(tables: &Tables, part: Part, run: &Run) -> bool {
    let place = tables.forgotten.get(&(part, run.state));
    run.finished_at.is_some_and(|at| place.is_some_and(|place| (at, run.id) <= *place))
}
