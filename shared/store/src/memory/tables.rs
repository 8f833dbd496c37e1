//! The tables, keyed as their rows in Postgres are.

use std::collections::BTreeMap;

use model::{
    AttemptRecord, BackfillId, Event, Instant, Message, Progress, Run, RunId, RunState, Task, TaskIndex,
    TaskKey, TenantId, Timer, TimerKind, TriggerKey, VersionId, WorkerId,
};
use serde_json::Value;

use super::admission::SlotTables;
use super::breakers::BreakerTable;
use super::offers::{NewOffers, OfferRow};
use super::shares::{ShareKey, ShareRow, Waiter};
use super::tenants::TenantRow;
use super::triggers::{TriggerEvents, TriggerRow};
use super::workers::WorkerRow;
use crate::{
    BackfillDate, BackfillRecord, Checkpoint, DeadLetter, Facts, LogLine, Part, Pause, ScheduleRecord,
    VersionRecord,
};

/// Whose timer it is, none for the run's own, and what it is for.
pub(super) type TimerKey = (RunId, Option<TaskIndex>, TimerKind);

/// All tables of the store in memory.
#[derive(Default)]
pub(super) struct Tables {
    /// Those that were created after the default one, in order.
    pub(super) tenants: Vec<TenantRow>,
    pub(super) workflows: BTreeMap<(TenantId, String), WorkflowRow>,
    pub(super) versions: BTreeMap<VersionId, VersionRecord>,
    pub(super) runs: BTreeMap<RunId, RunRow>,
    /// Which run has a logical date of a workflow's schedule.
    pub(super) dates: BTreeMap<(TenantId, String, String, Instant), RunId>,
    pub(super) tasks: BTreeMap<TaskKey, Task>,
    /// The items of children.
    pub(super) items: BTreeMap<TaskKey, Value>,
    pub(super) outputs: BTreeMap<TaskKey, Value>,
    /// By task and attempt.
    pub(super) attempts: BTreeMap<(TaskKey, u32), AttemptRecord>,
    /// By run and the number of the first one.
    pub(super) events: BTreeMap<(RunId, i64), Vec<Event>>,
    /// The keys of these in the order in which they were committed.
    pub(super) written: Vec<(RunId, i64)>,
    /// By task, attempt and the number of the first line; with the size of the log up to there.
    pub(super) logs: BTreeMap<(TaskKey, u32, u32), (Vec<LogLine>, i64)>,
    pub(super) checkpoints: BTreeMap<TaskKey, Checkpoint>,
    /// By task and attempt.
    pub(super) progress: BTreeMap<(TaskKey, u32), Progress>,
    pub(super) timers: BTreeMap<TimerKey, Timer>,
    pub(super) shares: BTreeMap<ShareKey, ShareRow>,
    pub(super) waiters: BTreeMap<TaskKey, Waiter>,
    pub(super) signals: BTreeMap<(RunId, String), Value>,
    pub(super) slots: SlotTables,
    pub(super) breakers: BreakerTable,
    pub(super) outbox: BTreeMap<i64, (Instant, Vec<Message>)>,
    /// The id of the message written last; ids are not used again.
    pub(super) last_post: i64,
    pub(super) workers: BTreeMap<WorkerId, WorkerRow>,
    pub(super) offers: BTreeMap<TaskKey, OfferRow>,
    pub(super) new_offers: NewOffers,
    pub(super) schedules: BTreeMap<(TenantId, String, String), ScheduleRecord>,
    pub(super) backfills: BTreeMap<BackfillId, BackfillRecord>,
    pub(super) backfill_dates: BTreeMap<(BackfillId, Instant), BackfillDate>,
    pub(super) dead_letters: BTreeMap<String, DeadLetter>,
    pub(super) triggers: BTreeMap<TriggerKey, TriggerRow>,
    pub(super) trigger_events: TriggerEvents,
    /// When the next turn at retention is; none before the first.
    pub(super) retention_at: Option<Instant>,
    /// Up to which run a part was deleted of those that ended in a state.
    pub(super) forgotten: BTreeMap<(Part, RunState), (Instant, RunId)>,
}

/// A workflow without its version's content.
pub(super) struct WorkflowRow {
    pub(super) archived: bool,
    pub(super) pause: Option<Pause>,
    pub(super) active: VersionId,
    pub(super) created_at: Instant,
    pub(super) updated_at: Instant,
}

/// A run with what steps do not touch.
pub(super) struct RunRow {
    pub(super) run: Run,
    pub(super) facts: Facts,
    pub(super) recheck_at: Option<Instant>,
}

impl Tables {
    /// The tenant of that name, which is created if there is none.
    pub(super) fn tenant(&mut self, name: &str, now: Instant) -> TenantId {
        self.tenant_named(name).unwrap_or_else(|| {
            self.tenants.push(TenantRow { name: name.to_owned(), created_at: now });
            self.last_tenant()
        })
    }

    /// The tenant of that name, if there is one.
    pub(super) fn tenant_named(&self, name: &str) -> Option<TenantId> {
        let known = || self.tenants.iter().position(|known| known.name == name);
        match name {
            "default" => Some(TenantId::DEFAULT),
            _ => known().map(|place| TenantId(TenantId::DEFAULT.0 + 1 + place as i32)),
        }
    }

    /// Tenants are numbered one after the other.
    pub(super) fn last_tenant(&self) -> TenantId {
        TenantId(TenantId::DEFAULT.0 + self.tenants.len() as i32)
    }

    /// The tasks of a run in index order, after the given one.
    pub(super) fn tasks_of(
        &self,
        run: RunId,
        after: Option<TaskIndex>,
    ) -> impl Iterator<Item = (&TaskKey, &Task)> {
        let first = after.map_or(0, |task| task.0.saturating_add(1));
        let keys = TaskKey { run, task: TaskIndex(first) }..=TaskKey { run, task: TaskIndex(u32::MAX) };
        self.tasks.range(keys)
    }
}
