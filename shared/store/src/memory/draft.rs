//! The uncommitted writes of a transaction: the changed rows of each table, laid over the tables.

use std::collections::{BTreeMap, BTreeSet};

use model::change::Recheck;
use model::wait_queue::{SlotChanges, SlotRead, SlotRows};
use model::{
    AttemptRecord, Changes, Event, Instant, Limit, Message, Run, RunId, Task, TaskIndex, TaskKey, TaskState,
    Timer, TimerKind, TriggerKey,
};
use serde_json::Value;

use super::admission::SlotTables;
use super::breakers::BreakerTable;
use super::constraints::{self, holds};
use super::offers::{self, OfferRow};
use super::outbox;
use super::shares::{ShareKey, ShareRow, Waiter};
use super::tables::{RunRow, Tables, TimerKey};
use super::triggers::{self, TriggerEvents, TriggerRow};
use crate::outputs::{Outputs, only};
use crate::{Context, Created, Error, Facts, NewRunRecord, Result, Unsent, normal};

/// The rows that a transaction has written.
#[derive(Default)]
pub(super) struct Draft {
    new_runs: BTreeMap<RunId, Facts>,
    runs: BTreeMap<RunId, (Run, Recheck)>,
    tasks: BTreeMap<TaskKey, Task>,
    items: BTreeMap<TaskKey, Value>,
    pub(super) outputs: BTreeMap<TaskKey, Value>,
    /// Outputs in the tables that no longer count.
    pub(super) withdrawn: BTreeSet<TaskKey>,
    attempts: BTreeMap<(TaskKey, u32), AttemptRecord>,
    events: BTreeMap<(RunId, i64), Vec<Event>>,
    /// None if a timer is unset.
    timers: BTreeMap<TimerKey, Option<Timer>>,
    signals: BTreeMap<(RunId, String), Option<Value>>,
    /// None if the execution of a shared task failed.
    pub(super) shares: BTreeMap<ShareKey, Option<ShareRow>>,
    /// None if a wait is over.
    pub(super) waiters: BTreeMap<TaskKey, Option<Waiter>>,
    /// None if a task is no longer offered.
    offers: BTreeMap<TaskKey, Option<OfferRow>>,
    /// The limits and wait queues, once the transaction has read or written any.
    slots: Option<SlotTables>,
    /// The limits whose slots were only counted.
    counted: BTreeSet<Limit>,
    /// The breakers, once the transaction has locked or written any.
    pub(super) breakers: Option<BreakerTable>,
    outbox: Vec<(Instant, Message)>,
    pub(super) triggers: BTreeMap<TriggerKey, TriggerRow>,
    pub(super) trigger_events: TriggerEvents,
}

impl Draft {
    /// A run as the transaction sees it.
    pub(super) fn run<'a>(&'a self, tables: &'a Tables, id: RunId) -> Option<&'a Run> {
        let written = self.runs.get(&id).map(|(run, _)| run);
        written.or_else(|| tables.runs.get(&id).map(|row| &row.run))
    }

    /// The runs that the transaction has written.
    pub(super) fn written_runs(&self) -> impl Iterator<Item = &RunId> {
        self.runs.keys()
    }

    /// A task as the transaction sees it.
    pub(super) fn task<'a>(&'a self, tables: &'a Tables, key: TaskKey) -> Option<&'a Task> {
        self.tasks.get(&key).or_else(|| tables.tasks.get(&key))
    }

    /// The tasks of a run as the transaction sees them.
    pub(super) fn tasks_of(&self, tables: &Tables, run: RunId) -> Vec<(RunId, Task)> {
        let written = self.tasks.iter().filter(|(key, _)| key.run == run);
        let rows: BTreeMap<&TaskKey, &Task> = tables.tasks_of(run, None).chain(written).collect();
        rows.into_values().map(|task| (run, task.clone())).collect()
    }

    /// The data for rendering templates, as the transaction sees it.
    pub(super) fn context(
        &self,
        tables: &Tables,
        run: RunId,
        tasks: &[TaskIndex],
    ) -> Result<Option<Context>> {
        let facts = self.new_runs.get(&run).or_else(|| tables.runs.get(&run).map(|row| &row.facts));
        let Some(facts) = facts else { return Ok(None) };
        let mut outputs = tables.outputs(run, tasks);
        outputs.retain(|task, _| !self.withdrawn.contains(&TaskKey { run, task: *task }));
        let written = self.outputs.iter().filter(|(key, _)| key.run == run && tasks.contains(&key.task));
        outputs.extend(written.map(|(key, output)| (key.task, output.clone())));
        Ok(Some(Context { facts: facts.clone(), outputs: Outputs::gather(outputs)? }))
    }

    pub(super) fn items(
        &self,
        tables: &Tables,
        run: RunId,
        children: &[TaskIndex],
    ) -> BTreeMap<TaskIndex, Value> {
        let item = |child: &TaskIndex| {
            let key = TaskKey { run, task: *child };
            Some((*child, self.items.get(&key).or_else(|| tables.items.get(&key))?.clone()))
        };
        children.iter().filter_map(item).collect()
    }

    pub(super) fn delivered(
        &self,
        tables: &Tables,
        run: RunId,
        first: TaskIndex,
        count: u32,
        field: Option<&str>,
    ) -> Result<BTreeMap<TaskIndex, Value>> {
        let keys =
            (first.0..first.0.saturating_add(count)).map(|index| TaskKey { run, task: TaskIndex(index) });
        let succeeded =
            |key: &TaskKey| self.task(tables, *key).is_some_and(|task| task.state == TaskState::Succeeded);
        let output = |key: TaskKey| (key.task, only(field, self.output(tables, key)));
        Outputs::gather(keys.filter(succeeded).map(output))
    }

    pub(super) fn signal(&self, tables: &Tables, run: RunId, name: &str) -> Option<Value> {
        let key = (run, name.to_owned());
        self.signals.get(&key).cloned().unwrap_or_else(|| tables.signals.get(&key).cloned())
    }

    /// Writes a new run, unless its id or date is taken.
    pub(super) fn create(&mut self, tables: &Tables, new_run: &NewRunRecord) -> Result<Created> {
        let run = &new_run.changes.run;
        if self.run(tables, run.id).is_some() {
            return Ok(Created::Already);
        }
        if let Some(other) = self.run_of_date(tables, new_run) {
            return Ok(Created::DateTaken(other));
        }
        holds(tables.versions.contains_key(&run.version), "runs_version_fkey")?;
        self.put_run(&new_run.changes)?;
        self.new_runs.insert(run.id, normal::facts(&new_run.facts));
        for task in new_run.changes.tasks.iter().chain(&new_run.changes.new_tasks) {
            self.insert_task(tables, run.id, task)?;
        }
        self.append(tables, &new_run.changes).map(|()| Created::New)
    }

    /// Writes changes over the revisions they were read at.
    pub(super) fn save(&mut self, tables: &Tables, changes: &Changes) -> Result<()> {
        let run = &changes.run;
        let read = self.run(tables, run.id).ok_or(Error::Conflict)?;
        if read.revision != run.revision {
            return Err(Error::Conflict);
        }
        self.put_run(changes)?;
        self.runs.entry(run.id).and_modify(|(run, _)| run.revision += 1);
        for task in &changes.tasks {
            let key = TaskKey { run: run.id, task: task.index };
            if self.task(tables, key).is_none_or(|read| read.revision != task.revision) {
                return Err(Error::Conflict);
            }
            self.put_task(run.id, Task { revision: task.revision + 1, ..normal::task(task) })?;
        }
        for task in &changes.new_tasks {
            self.insert_task(tables, run.id, task)?;
        }
        self.append(tables, changes)
    }

    fn run_of_date(&self, tables: &Tables, new_run: &NewRunRecord) -> Option<RunId> {
        let (run, date) = (&new_run.changes.run, new_run.facts.logical_date?);
        let same = |other: &Run| other.tenant == run.tenant && other.workflow == run.workflow;
        let schedule = normal::schedule_of(&new_run.facts);
        let written = self.new_runs.iter().find(|(id, facts)| {
            facts.logical_date == Some(date)
                && normal::schedule_of(facts) == schedule
                && same(&self.runs[id].0)
        });
        let key = (run.tenant, run.workflow.clone(), schedule.into_owned(), date);
        written.map(|(id, _)| *id).or_else(|| tables.dates.get(&key).copied())
    }

    fn put_run(&mut self, changes: &Changes) -> Result<()> {
        let run = normal::run(&changes.run);
        constraints::run(&run)?;
        let earlier = self.runs.get(&run.id).map_or(Recheck::Keep, |(_, recheck)| *recheck);
        let recheck = match normal::recheck(changes) {
            Recheck::Keep => earlier,
            Recheck::By(instant) => match earlier {
                Recheck::At(before) => Recheck::At(before.min(instant)),
                Recheck::By(before) => Recheck::By(before.min(instant)),
                Recheck::Keep | Recheck::Never => Recheck::By(instant),
            },
            other => other,
        };
        self.runs.insert(run.id, (run, recheck));
        Ok(())
    }

    fn insert_task(&mut self, tables: &Tables, run: RunId, task: &Task) -> Result<()> {
        let there = self.task(tables, TaskKey { run, task: task.index }).is_some();
        holds(!there, "tasks_pkey")?;
        self.put_task(run, normal::task(task))
    }

    fn put_task(&mut self, run: RunId, task: Task) -> Result<()> {
        constraints::task(&task)?;
        self.tasks.insert(TaskKey { run, task: task.index }, task);
        Ok(())
    }

    /// Writes everything but runs and tasks.
    fn append(&mut self, tables: &Tables, changes: &Changes) -> Result<()> {
        let run = changes.run.id;
        for (child, item) in &changes.items {
            let key = TaskKey { run, task: *child };
            let second = tables.items.contains_key(&key) || self.items.insert(key, item.clone()).is_some();
            holds(!second, "items_pkey")?;
        }
        for key in changes.withdrawn.iter().map(|task| TaskKey { run, task: *task }) {
            self.outputs.remove(&key);
            self.withdrawn.insert(key);
        }
        for (task, output) in &changes.outputs {
            let key = TaskKey { run, task: *task };
            let there = tables.outputs.contains_key(&key) && !self.withdrawn.contains(&key);
            let second = self.outputs.insert(key, output.clone()).is_some() || there;
            holds(!second, "outputs_pkey")?;
        }
        for over in &changes.attempts {
            constraints::attempt(over)?;
            self.attempts.insert((TaskKey { run, task: over.task }, over.attempt), normal::attempt(over));
        }
        self.append_events(tables, changes)?;
        self.set_timers(tables, changes)?;
        for name in &changes.taken_signals {
            self.signals.insert((run, name.clone()), None);
        }
        for signal in &changes.kept_signals {
            self.signals.insert((run, signal.name.clone()), Some(signal.payload.clone()));
        }
        self.offers.extend(offers::written(changes));
        self.end_shares(tables, changes);
        let decided_at = normal::decided_at(changes);
        self.outbox.extend(changes.outbox.iter().map(|message| (decided_at, message.clone())));
        Ok(())
    }

    fn set_timers(&mut self, tables: &Tables, changes: &Changes) -> Result<()> {
        let run = changes.run.id;
        for task in &changes.unset_timers {
            self.timers.extend(TimerKind::ALL.map(|kind| ((run, *task, kind), None)));
        }
        for timer in &changes.timers {
            constraints::timer(timer)?;
            let there = |task| self.task(tables, TaskKey { run, task }).is_some();
            holds(timer.task.is_none_or(there), "a_timer_belongs_to_a_task")?;
            self.timers.insert((run, timer.task, timer.kind), Some(timer.clone()));
        }
        Ok(())
    }

    fn append_events(&mut self, tables: &Tables, changes: &Changes) -> Result<()> {
        if changes.events.is_empty() {
            return Ok(());
        }
        let first = normal::first_event(changes);
        let key = (changes.run.id, first);
        holds(first >= 0, "events_are_numbered_from_zero")?;
        let second =
            tables.events.contains_key(&key) || self.events.insert(key, changes.events.clone()).is_some();
        holds(!second, "events_pkey")
    }

    pub(super) fn read_slots(&mut self, tables: &Tables, read: &SlotRead) -> SlotRows {
        let slots = self.slots.get_or_insert_with(|| tables.slots.clone());
        slots.read(read, |backfill| tables.backfills.get(&backfill).map(|row| row.weight))
    }

    pub(super) fn save_slots(&mut self, tables: &Tables, changes: &SlotChanges) {
        let slots = self.slots.get_or_insert_with(|| tables.slots.clone());
        slots.save(changes);
        self.counted.extend(changes.counted.keys().cloned());
    }

    /// Slots are counted when they are saved: no other transaction waits for their limits.
    pub(super) fn count_slots(&mut self) -> Option<SlotRows> {
        let counted = std::mem::take(&mut self.counted);
        self.slots.as_ref()?.counted(counted.iter())
    }

    /// Commits the rows. Returns the messages with the ids they were given.
    pub(super) fn apply(mut self, tables: &mut Tables) -> Option<Unsent> {
        for (id, (run, recheck)) in self.runs {
            match self.new_runs.remove(&id) {
                Some(facts) => insert_run(tables, run, facts, recheck),
                None => rewrite(tables, run, recheck),
            }
        }
        // One by one: appending would rebuild the whole table.
        tables.tasks.extend(std::mem::take(&mut self.tasks));
        tables.items.extend(std::mem::take(&mut self.items));
        for key in &self.withdrawn {
            tables.outputs.remove(key);
        }
        tables.outputs.extend(std::mem::take(&mut self.outputs));
        tables.attempts.extend(std::mem::take(&mut self.attempts));
        tables.written.extend(self.events.keys());
        tables.events.extend(std::mem::take(&mut self.events));
        lay_over(&mut tables.timers, self.timers);
        lay_over(&mut tables.signals, self.signals);
        lay_over(&mut tables.shares, self.shares);
        lay_over(&mut tables.waiters, self.waiters);
        tables.new_offers.publish(self.offers.values().flatten());
        lay_over(&mut tables.offers, self.offers);
        tables.triggers.append(&mut self.triggers);
        triggers::remember(&mut tables.trigger_events, self.trigger_events);
        if let Some(slots) = self.slots {
            tables.slots = slots;
        }
        if let Some(breakers) = self.breakers {
            tables.breakers = breakers;
        }
        outbox::post(tables, self.outbox)
    }
}

/// Writes rows over existing ones; none deletes a row.
fn lay_over<K: Ord, V>(rows: &mut BTreeMap<K, V>, written: BTreeMap<K, Option<V>>) {
    for (key, row) in written {
        match row {
            Some(row) => rows.insert(key, row),
            None => rows.remove(&key),
        };
    }
}

fn insert_run(tables: &mut Tables, run: Run, facts: Facts, recheck: Recheck) {
    if let Some(date) = facts.logical_date {
        let schedule = normal::schedule_of(&facts).into_owned();
        tables.dates.insert((run.tenant, run.workflow.clone(), schedule, date), run.id);
    }
    tables.runs.insert(run.id, RunRow { recheck_at: recheck_at(recheck, None), run, facts });
}

fn rewrite(tables: &mut Tables, run: Run, recheck: Recheck) {
    if let Some(row) = tables.runs.get_mut(&run.id) {
        row.recheck_at = recheck_at(recheck, row.recheck_at);
        row.run = run;
    }
}

fn recheck_at(recheck: Recheck, before: Option<Instant>) -> Option<Instant> {
    match recheck {
        Recheck::Keep => before,
        Recheck::At(instant) => Some(instant),
        Recheck::By(instant) => Some(before.map_or(instant, |before| before.min(instant))),
        Recheck::Never => None,
    }
}
