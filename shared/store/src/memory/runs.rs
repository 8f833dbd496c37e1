//! Runs as readers see them, and their logs.

use std::collections::BTreeMap;

use model::{
    AttemptRecord, Event, Limit, Run, RunId, Task, TaskIndex, TaskKey, TaskState, TenantId, Timer, TimerKind,
};
use serde_json::Value;

use super::tables::{RunRow, Tables};
use crate::{Contender, LogChunk, LogLine, RunFilter, RunRecord, Starter, TaskRecord, chunks, normal};

fn has_label(row: &RunRow, label: &str) -> bool {
    normal::labels(&row.facts.labels).contains(&*normal::label(label))
}

fn has_text(row: &RunRow, text: &str) -> bool {
    let labels = serde_json::to_string(&row.facts.labels).unwrap_or_default();
    let error = row.run.error.iter().cloned();
    let said = [row.run.id.to_string(), row.run.workflow.clone()].into_iter().chain(error);
    let said: Vec<String> = said.chain([row.facts.trigger_by.clone(), labels]).collect();
    said.join("\n").to_lowercase().contains(&normal::text(text).to_lowercase())
}

/// Whether a run is in the list at all, after the place that is left out and up to the last one.
fn is_between(filter: &RunFilter, run: &Run) -> bool {
    let Some(place) = filter.sort.place(run) else { return false };
    let (after, until) = match filter.sort.is_upwards() {
        true => {
            (filter.after.is_none_or(|after| place > after), filter.until.is_none_or(|until| place <= until))
        }
        false => {
            (filter.after.is_none_or(|after| place < after), filter.until.is_none_or(|until| place >= until))
        }
    };
    after && until
}

impl Tables {
    pub(super) fn run(&self, tenant: TenantId, id: RunId) -> Option<RunRecord> {
        self.runs.get(&id).filter(|row| row.run.tenant == tenant).map(|row| self.run_record(row))
    }

    pub(super) fn runs(&self, tenant: TenantId, filter: &RunFilter) -> Vec<RunRecord> {
        let wanted = |row: &&RunRow| {
            let run = &row.run;
            run.tenant == tenant
                && filter.workflow.as_ref().is_none_or(|workflow| *workflow == run.workflow)
                && filter.state.is_none_or(|state| state == run.state)
                && filter.parent.is_none_or(|parent| run.parent.is_some_and(|of| of.key.run == parent))
                && filter.created_after.is_none_or(|after| run.created_at >= after)
                && filter.created_before.is_none_or(|before| run.created_at < before)
                && filter.label.as_ref().is_none_or(|label| has_label(row, label))
                && filter.text.as_ref().is_none_or(|text| has_text(row, text))
                && is_between(filter, run)
        };
        let mut found: Vec<&RunRow> = self.runs.values().filter(wanted).collect();
        found.sort_by_key(|row| filter.sort.place(&row.run));
        if !filter.sort.is_upwards() {
            found.reverse();
        }
        found.into_iter().take(filter.limit as usize).map(|row| self.run_record(row)).collect()
    }

    fn run_record(&self, row: &RunRow) -> RunRecord {
        RunRecord {
            run: row.run.clone(),
            facts: row.facts.clone(),
            version_number: self.versions[&row.run.version].number,
            starter: row.run.parent.and_then(|parent| self.starter(parent.key)),
        }
    }

    fn starter(&self, key: TaskKey) -> Option<Starter> {
        let version = self.runs.get(&key.run)?.run.version;
        Some(Starter { version, child: self.tasks.get(&key).and_then(|task| task.child) })
    }

    pub(super) fn run_tasks(
        &self,
        run: RunId,
        children_of: Option<TaskIndex>,
        after: Option<TaskIndex>,
        limit: u32,
    ) -> Vec<TaskRecord> {
        let record = |(key, task): (&TaskKey, &Task)| TaskRecord {
            task: task.clone(),
            output: self.outputs.get(key).cloned(),
            timer: self.first_timer(*key).cloned(),
            shared_with: self.waiters.get(key).map(|(owner, _)| *owner),
        };
        let of = |task: &Task| task.child.map(|child| child.of) == children_of;
        let wanted =
            self.tasks_of(run, after).filter(|(_, task)| of(task) && task.state != TaskState::Removed);
        wanted.take(limit as usize).map(record).collect()
    }

    pub(super) fn holders(&self, tenant: TenantId, runs: u32) -> Vec<Contender> {
        let unfinished = |row: &&RunRow| row.run.tenant == tenant && row.run.finished_at.is_none();
        let tasks = |row: &RunRow| self.tasks_of(row.run.id, None);
        let placed = self.runs.values().filter(unfinished).take(runs as usize).flat_map(tasks);
        placed
            .filter(|(_, task)| task.state.is_placed())
            .filter_map(|(key, _)| self.contender(*key))
            .collect()
    }

    pub(super) fn line(&self, limit: &Limit, tenant: TenantId, count: u32) -> Vec<Contender> {
        let line = self.places.line(limit, tenant).into_iter();
        line.filter_map(|key| self.contender(key)).take(count as usize).collect()
    }

    fn contender(&self, key: TaskKey) -> Option<Contender> {
        let (run, task) = (&self.runs.get(&key.run)?.run, self.tasks.get(&key)?.clone());
        Some(Contender { run: key.run, workflow: run.workflow.clone(), version: run.version, task })
    }

    /// The timer of a task that is due first.
    fn first_timer(&self, key: TaskKey) -> Option<&Timer> {
        let timers = TimerKind::ALL.map(|kind| self.timers.get(&(key.run, Some(key.task), kind)));
        timers.into_iter().flatten().min_by_key(|timer| (timer.wake_at, timer.kind.name()))
    }

    pub(super) fn attempts(&self, key: TaskKey) -> Vec<AttemptRecord> {
        self.attempts.range((key, 0)..=(key, u32::MAX)).map(|(_, attempt)| attempt.clone()).collect()
    }

    pub(super) fn events(&self, run: RunId, from: i64, limit: u32) -> Vec<(i64, Event)> {
        let rows = self.events.range((run, 0)..=(run, i64::MAX));
        chunks::numbered(rows.map(|((_, first), events)| (*first, events.clone())), from, limit)
    }

    pub(super) fn own_events(
        &self,
        run: RunId,
        with: Option<TaskIndex>,
        from: i64,
        limit: u32,
    ) -> Vec<(i64, Event)> {
        let own = |(_, event): &(i64, Event)| event.child.is_none() || event.task == with;
        let all = self.events(run, from, u32::MAX).into_iter();
        all.filter(own).take(limit as usize).collect()
    }

    pub(super) fn outputs(&self, run: RunId, tasks: &[TaskIndex]) -> BTreeMap<TaskIndex, Value> {
        let output =
            |task: &TaskIndex| Some((*task, self.outputs.get(&TaskKey { run, task: *task })?.clone()));
        tasks.iter().filter_map(output).collect()
    }

    pub(super) fn append_log(&mut self, chunk: &LogChunk) {
        if !chunk.lines.is_empty() {
            self.logs.entry((chunk.key, chunk.attempt, chunk.first)).or_insert_with(|| chunk.lines.clone());
        }
    }

    pub(super) fn log(&self, key: TaskKey, attempt: u32, from: u32, limit: u32) -> Vec<(u32, LogLine)> {
        let rows = self.logs.range((key, attempt, 0)..=(key, attempt, u32::MAX));
        let rows = rows.map(|((_, _, first), lines)| (i64::from(*first), lines.clone()));
        let lines = chunks::numbered(rows, from.into(), limit);
        lines.into_iter().map(|(number, line)| (number as u32, line)).collect()
    }
}
