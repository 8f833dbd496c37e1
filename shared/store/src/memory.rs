//! The store in memory: for virtual time, where a thousand runs must pass in a second and a seed must replay.
//!
//! Units take turns, whatever they lock; readers see what was committed and wait for no one, as in Postgres.
//! Nothing here needs a runtime or a clock, and every answer has one order only.

mod backfills;
mod checkpoints;
mod constraints;
mod deeds;
mod definitions;
mod draft;
mod identities;
mod inspection;
mod load;
mod news;
mod outline;
mod places;
mod retention;
mod runs;
mod schedules;
mod shares;
mod sweep;
mod tables;
mod tenants;
mod triggers;
mod units;
mod workers;
mod workflows;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use model::{
    AttemptRecord, Event, Instant, Limit, Order, RunId, RunState, TaskIndex, TaskKey, TenantId, VersionId,
    WorkerId,
};
use serde_json::Value;

use crate::{
    Activated, Active, Agenda, Contender, DeadLetter, DueTimer, Facts, Granted, Health, Held, InLine,
    Inspection, LaneMember, LetterFilter, LimitRecord, LogChunk, LogLine, NewVersion, Part, Registered,
    Result, RunFilter, RunRecord, Sign, Silence, StandingRecord, Store, TaskRecord, TimerFilter, TimerRecord,
    Told, Unit, Unsent, VersionRecord, WorkerRecord, WorkflowRecord, normal,
};
use tables::Tables;

/// All state in memory; clones share it.
#[derive(Clone, Default)]
pub struct Memory {
    shared: Shared,
    /// Held by the one open unit.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// The tables, locked for the moment of one read or one write and never across an `await`.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Tables>>);

impl Shared {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for Memory {
    async fn begin(&self) -> Result<Box<dyn Unit>> {
        let turn = self.turn.clone().lock_owned().await;
        Ok(Box::new(units::MemoryUnit::new(self.shared.clone(), turn)))
    }

    async fn ping(&self) -> Result<()> {
        Ok(())
    }

    async fn register_all(&self, new: &[NewVersion]) -> Result<Vec<Registered>> {
        self.shared.tables().register_all(new)
    }

    async fn archive(&self, tenant: TenantId, workflow: &str, at: Instant) -> Result<bool> {
        Ok(self.shared.tables().archive(tenant, workflow, at))
    }

    async fn workflow(&self, tenant: TenantId, name: &str) -> Result<Option<WorkflowRecord>> {
        Ok(self.shared.tables().workflow(tenant, name))
    }

    async fn active(&self, tenant: TenantId, name: &str) -> Result<Option<Active>> {
        let found = self.shared.tables().workflow(tenant, name);
        Ok(found.map(|found| Active {
            version: found.version.id,
            number: found.version.number,
            archived: found.archived,
            paused: found.pause.is_some(),
        }))
    }

    async fn workflows(
        &self,
        tenant: TenantId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<WorkflowRecord>> {
        Ok(self.shared.tables().workflows(tenant, after, limit))
    }

    async fn version(&self, id: VersionId) -> Result<Option<VersionRecord>> {
        Ok(self.shared.tables().versions.get(&id).cloned())
    }

    async fn versions(
        &self,
        tenant: TenantId,
        workflow: &str,
        before: Option<i32>,
        limit: u32,
    ) -> Result<Vec<VersionRecord>> {
        Ok(self.shared.tables().versions(tenant, workflow, before, limit))
    }

    async fn numbered_version(
        &self,
        tenant: TenantId,
        workflow: &str,
        number: i32,
    ) -> Result<Option<VersionRecord>> {
        Ok(self.shared.tables().numbered_version(tenant, workflow, number))
    }

    async fn activate(
        &self,
        tenant: TenantId,
        workflow: &str,
        number: i32,
        at: Instant,
    ) -> Result<Activated> {
        Ok(self.shared.tables().activate(tenant, workflow, number, at))
    }

    async fn run(&self, tenant: TenantId, id: RunId) -> Result<Option<RunRecord>> {
        Ok(self.shared.tables().run(tenant, id))
    }

    async fn runs(&self, tenant: TenantId, filter: &RunFilter) -> Result<Vec<RunRecord>> {
        Ok(self.shared.tables().runs(tenant, filter))
    }

    async fn facts(&self, run: RunId) -> Result<Option<Facts>> {
        Ok(self.shared.tables().runs.get(&run).map(|row| row.facts.clone()))
    }

    async fn run_tasks(
        &self,
        run: RunId,
        children_of: Option<TaskIndex>,
        after: Option<TaskIndex>,
        limit: u32,
    ) -> Result<Vec<TaskRecord>> {
        Ok(self.shared.tables().run_tasks(run, children_of, after, limit))
    }

    async fn item(&self, child: TaskKey) -> Result<Option<Value>> {
        Ok(self.shared.tables().items.get(&child).cloned())
    }

    async fn waiters(&self, owner: TaskKey, limit: u32) -> Result<Vec<(TaskKey, u32)>> {
        Ok(self.shared.tables().waiters(owner, limit))
    }

    async fn in_lane(
        &self,
        tenant: TenantId,
        workflow: &str,
        lane: &str,
        limit: u32,
    ) -> Result<Vec<LaneMember>> {
        Ok(self.shared.tables().in_lane(tenant, workflow, lane, limit))
    }

    async fn limits(&self, tenant: TenantId) -> Result<Vec<LimitRecord>> {
        Ok(self.shared.tables().places.list(tenant))
    }

    async fn set_places(&self, limit: &Limit, places: Option<u32>) -> Result<()> {
        let _turn = self.turn.lock().await;
        self.shared.tables().places.set_places(limit, places);
        Ok(())
    }

    async fn tenant(&self, name: &str, now: Instant) -> Result<TenantId> {
        Ok(self.shared.tables().tenant(name, now))
    }

    async fn set_weight(&self, tenant: TenantId, weight: u32) -> Result<()> {
        let _turn = self.turn.lock().await;
        self.shared.tables().places.set_weight(tenant, weight);
        Ok(())
    }

    async fn standings(&self, limit: &Limit) -> Result<Vec<StandingRecord>> {
        Ok(self.shared.tables().places.standings(limit))
    }

    async fn holders(&self, tenant: TenantId, runs: u32) -> Result<Vec<Contender>> {
        Ok(self.shared.tables().holders(tenant, runs))
    }

    async fn line(&self, limit: &Limit, tenant: TenantId, count: u32) -> Result<Vec<Contender>> {
        Ok(self.shared.tables().line(limit, tenant, count))
    }

    async fn in_line(&self, key: TaskKey) -> Result<Option<InLine>> {
        Ok(self.shared.tables().places.in_line(key))
    }

    async fn untaken(&self, before: Instant, limit: u32) -> Result<Vec<Granted>> {
        Ok(self.shared.tables().places.untaken(before, limit))
    }

    async fn attempts(&self, key: TaskKey) -> Result<Vec<AttemptRecord>> {
        Ok(self.shared.tables().attempts(key))
    }

    async fn events(&self, run: RunId, from: i64, limit: u32) -> Result<Vec<(i64, Event)>> {
        Ok(self.shared.tables().events(run, from, limit))
    }

    async fn own_events(
        &self,
        run: RunId,
        with: Option<TaskIndex>,
        from: i64,
        limit: u32,
    ) -> Result<Vec<(i64, Event)>> {
        Ok(self.shared.tables().own_events(run, with, from, limit))
    }

    async fn outputs(&self, run: RunId, tasks: &[TaskIndex]) -> Result<BTreeMap<TaskIndex, Value>> {
        Ok(self.shared.tables().outputs(run, tasks))
    }

    async fn timers(&self, tenant: TenantId, filter: &TimerFilter) -> Result<Vec<TimerRecord>> {
        Ok(self.shared.tables().timers(tenant, filter))
    }

    async fn append_log(&self, chunk: &LogChunk) -> Result<()> {
        self.shared.tables().append_log(chunk);
        Ok(())
    }

    async fn log(&self, key: TaskKey, attempt: u32, from: u32, limit: u32) -> Result<Vec<(u32, LogLine)>> {
        Ok(self.shared.tables().log(key, attempt, from, limit))
    }

    async fn agenda(&self, now: Instant) -> Result<Agenda> {
        Ok(self.shared.tables().agenda(now))
    }

    async fn due_timers(&self, now: Instant, limit: u32) -> Result<Vec<DueTimer>> {
        Ok(self.shared.tables().due_timers(now, limit))
    }

    async fn due_checkups(&self, now: Instant, limit: u32) -> Result<Vec<RunId>> {
        Ok(self.shared.tables().due_checkups(now, limit))
    }

    async fn postpone(&self, run: RunId, now: Instant, until: Instant) -> Result<()> {
        self.shared.tables().postpone(run, now, until);
        Ok(())
    }

    async fn give_up_date(&self, run: RunId) -> Result<()> {
        let mut tables = self.shared.tables();
        if tables.runs.get(&run).is_some_and(|row| row.run.state.is_final()) {
            tables.dates.retain(|_, of| *of != run);
        }
        Ok(())
    }

    async fn check_all(&self, now: Instant) -> Result<u64> {
        Ok(self.shared.tables().check_all(now))
    }

    async fn unsent(&self, before: Instant, limit: u32) -> Result<Vec<Unsent>> {
        Ok(self.shared.tables().unsent(before, limit))
    }

    async fn sent(&self, ids: &[i64]) -> Result<()> {
        self.shared.tables().sent(ids);
        Ok(())
    }

    async fn inspect(&self, now: Instant, after: Option<RunId>) -> Result<Inspection> {
        Ok(self.shared.tables().inspect(now, after))
    }

    async fn health(&self) -> Result<Health> {
        Ok(Health { schema_is_current: true, ..Health::default() })
    }

    async fn take_retention(&self, now: Instant, until: Instant) -> Result<bool> {
        Ok(self.shared.tables().take_retention(now, until))
    }

    async fn rest_retention(&self, until: Instant) -> Result<()> {
        self.shared.tables().retention_at = Some(until);
        Ok(())
    }

    async fn expired(&self, part: Part, state: RunState, before: Instant) -> Result<Vec<RunId>> {
        Ok(self.shared.tables().expired(part, state, before))
    }

    async fn documents(&self, part: Part, runs: &[RunId]) -> Result<Vec<Value>> {
        Ok(self.shared.tables().documents(part, runs))
    }

    async fn turn_pages(&self, _: Instant, _: Instant) -> Result<()> {
        // Nothing lies in partitions here.
        Ok(())
    }

    async fn forget(&self, part: Part, runs: &[RunId]) -> Result<()> {
        self.shared.tables().forget(part, runs);
        Ok(())
    }

    async fn beat(&self, sign: &Sign) -> Result<Told> {
        Ok(self.shared.tables().beat(sign))
    }

    async fn farewell(&self, worker: WorkerId) -> Result<Option<Order>> {
        Ok(self.shared.tables().farewell(worker))
    }

    async fn give_order(&self, worker: WorkerId, order: &Order) -> Result<Option<Order>> {
        Ok(self.shared.tables().give_order(worker, order))
    }

    async fn silent(&self, since: Instant, limit: u32) -> Result<Vec<Silence>> {
        Ok(self.shared.tables().silent(since, limit))
    }

    async fn lost(&self, silent: &[Silence], limit: u32) -> Result<Vec<Held>> {
        Ok(self.shared.tables().lost(silent, limit))
    }

    async fn forget_workers(&self, silent: &[Silence]) -> Result<u64> {
        Ok(self.shared.tables().forget_workers(silent))
    }

    async fn workers(
        &self,
        tenant: TenantId,
        after: Option<WorkerId>,
        limit: u32,
    ) -> Result<Vec<WorkerRecord>> {
        Ok(self.shared.tables().list_workers(tenant, after, limit))
    }

    async fn bury(&self, letter: &DeadLetter) -> Result<()> {
        self.shared.tables().bury(letter);
        Ok(())
    }

    async fn dead_letters(&self, filter: &LetterFilter) -> Result<Vec<DeadLetter>> {
        Ok(self.shared.tables().dead_letters(filter))
    }

    async fn dead_letter(&self, id: &str) -> Result<Option<DeadLetter>> {
        Ok(self.shared.tables().letters.get(&normal::letter_id(id)).cloned())
    }

    async fn discard(&self, id: &str) -> Result<bool> {
        Ok(self.shared.tables().letters.remove(&normal::letter_id(id)).is_some())
    }
}
