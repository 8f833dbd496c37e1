//! The store on Postgres. SQL lives below this module and nowhere else: one module per aggregate, statements
//! of more than a dozen lines in `queries/`.

mod backfills;
mod beginning;
mod births;
mod checkpoints;
mod connecting;
mod deeds;
mod definitions;
mod identities;
mod inspection;
mod items;
mod lanes;
mod letters;
mod limits;
mod load;
mod login;
mod logs;
mod news;
mod outbox;
mod outline;
mod partitions;
mod picking;
mod places;
mod reading;
mod receipts;
mod retention;
mod rows;
mod runs;
mod saves;
mod schedules;
mod scribe;
mod shares;
mod signals;
mod sweep;
mod tenants;
mod timers;
mod triggers;
mod units;
mod workers;
mod workflows;

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{
    AttemptRecord, Event, Instant, Limit, Order, RunId, RunState, TaskIndex, TaskKey, TenantId, VersionId,
    WorkerId,
};
use serde_json::Value;
use sqlx::Connection;
use sqlx::migrate::Migrator;
use sqlx::postgres::PgPool;

use self::beginning::{UNIT, begin_with};
use crate::{
    Activated, Active, Agenda, Contender, DeadLetter, DueTimer, Facts, Granted, Health, Held, InLine,
    Inspection, LaneMember, LetterFilter, LimitRecord, LogChunk, LogLine, NewVersion, Part, Registered,
    Result, RunFilter, RunRecord, Sign, Silence, StandingRecord, Store, TaskRecord, TimerFilter, TimerRecord,
    Told, Unit, Unsent, VersionRecord, WorkerRecord, WorkflowRecord,
};

/// The schema, step by step.
static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

/// All state in a Postgres database.
#[derive(Clone, Debug)]
pub struct Postgres {
    pool: PgPool,
    scribe: scribe::Scribe,
}

#[async_trait]
impl Store for Postgres {
    async fn begin(&self) -> Result<Box<dyn Unit>> {
        Ok(Box::new(units::PostgresUnit::new(begin_with(&self.pool, UNIT).await?)))
    }

    async fn ping(&self) -> Result<()> {
        Ok(self.pool.acquire().await?.ping().await?)
    }

    async fn register_all(&self, new: &[NewVersion]) -> Result<Vec<Registered>> {
        definitions::register_all(&self.pool, new).await
    }

    async fn archive(&self, tenant: TenantId, workflow: &str, at: Instant) -> Result<bool> {
        definitions::archive(&self.pool, tenant, workflow, at).await
    }

    async fn workflow(&self, tenant: TenantId, name: &str) -> Result<Option<WorkflowRecord>> {
        definitions::workflow(&mut *self.reading().await?, tenant, name).await
    }

    async fn active(&self, tenant: TenantId, name: &str) -> Result<Option<Active>> {
        definitions::active(&self.pool, tenant, name).await
    }

    async fn workflows(
        &self,
        tenant: TenantId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<WorkflowRecord>> {
        definitions::workflows(&mut *self.reading().await?, tenant, after, limit).await
    }

    async fn version(&self, id: VersionId) -> Result<Option<VersionRecord>> {
        definitions::version(&self.pool, id).await
    }

    async fn versions(
        &self,
        tenant: TenantId,
        workflow: &str,
        before: Option<i32>,
        limit: u32,
    ) -> Result<Vec<VersionRecord>> {
        definitions::versions(&mut *self.reading().await?, tenant, workflow, before, limit).await
    }

    async fn numbered_version(
        &self,
        tenant: TenantId,
        workflow: &str,
        number: i32,
    ) -> Result<Option<VersionRecord>> {
        definitions::numbered_version(&self.pool, tenant, workflow, number).await
    }

    async fn activate(
        &self,
        tenant: TenantId,
        workflow: &str,
        number: i32,
        at: Instant,
    ) -> Result<Activated> {
        definitions::activate(&self.pool, tenant, workflow, number, at).await
    }

    async fn run(&self, tenant: TenantId, id: RunId) -> Result<Option<RunRecord>> {
        runs::run(&mut *self.reading().await?, tenant, id).await
    }

    async fn runs(&self, tenant: TenantId, filter: &RunFilter) -> Result<Vec<RunRecord>> {
        runs::runs(&mut *self.reading().await?, tenant, filter).await
    }

    async fn facts(&self, run: RunId) -> Result<Option<Facts>> {
        runs::facts(&self.pool, run).await
    }

    async fn run_tasks(
        &self,
        run: RunId,
        children_of: Option<TaskIndex>,
        after: Option<TaskIndex>,
        limit: u32,
    ) -> Result<Vec<TaskRecord>> {
        runs::tasks(&mut *self.reading().await?, run, children_of, after, limit).await
    }

    async fn item(&self, child: TaskKey) -> Result<Option<Value>> {
        items::find_one(&self.pool, child).await
    }

    async fn waiters(&self, owner: TaskKey, limit: u32) -> Result<Vec<(TaskKey, u32)>> {
        shares::waiters(&self.pool, owner, limit).await
    }

    async fn in_lane(
        &self,
        tenant: TenantId,
        workflow: &str,
        lane: &str,
        limit: u32,
    ) -> Result<Vec<LaneMember>> {
        lanes::read(&self.pool, tenant, workflow, lane, limit).await
    }

    async fn limits(&self, tenant: TenantId) -> Result<Vec<LimitRecord>> {
        limits::list(&self.pool, tenant).await
    }

    async fn set_places(&self, limit: &Limit, places: Option<u32>) -> Result<()> {
        limits::set_places(&self.pool, limit, places).await
    }

    async fn tenant(&self, name: &str, now: Instant) -> Result<TenantId> {
        limits::tenant(&self.pool, name, now).await
    }

    async fn set_weight(&self, tenant: TenantId, weight: u32) -> Result<()> {
        limits::set_weight(&self.pool, tenant, weight).await
    }

    async fn standings(&self, limit: &Limit) -> Result<Vec<StandingRecord>> {
        limits::standings(&self.pool, limit).await
    }

    async fn holders(&self, tenant: TenantId, runs: u32) -> Result<Vec<Contender>> {
        limits::holders(&self.pool, tenant, runs).await
    }

    async fn line(&self, limit: &Limit, tenant: TenantId, count: u32) -> Result<Vec<Contender>> {
        limits::line(&self.pool, limit, tenant, count).await
    }

    async fn in_line(&self, key: TaskKey) -> Result<Option<InLine>> {
        limits::in_line(&self.pool, key).await
    }

    async fn untaken(&self, before: Instant, limit: u32) -> Result<Vec<Granted>> {
        limits::untaken(&self.pool, before, limit).await
    }

    async fn attempts(&self, key: TaskKey) -> Result<Vec<AttemptRecord>> {
        runs::attempts(&mut *self.reading().await?, key).await
    }

    async fn events(&self, run: RunId, from: i64, limit: u32) -> Result<Vec<(i64, Event)>> {
        runs::events(&mut *self.reading().await?, run, from, limit).await
    }

    async fn own_events(
        &self,
        run: RunId,
        with: Option<TaskIndex>,
        from: i64,
        limit: u32,
    ) -> Result<Vec<(i64, Event)>> {
        runs::own_events(&mut *self.reading().await?, run, with, from, limit).await
    }

    async fn outputs(&self, run: RunId, tasks: &[TaskIndex]) -> Result<BTreeMap<TaskIndex, Value>> {
        runs::outputs(&self.pool, run, tasks).await
    }

    async fn timers(&self, tenant: TenantId, filter: &TimerFilter) -> Result<Vec<TimerRecord>> {
        timers::list(&mut *self.reading().await?, tenant, filter).await
    }

    async fn append_log(&self, chunk: &LogChunk) -> Result<()> {
        logs::append(&self.pool, chunk).await
    }

    async fn log(&self, key: TaskKey, attempt: u32, from: u32, limit: u32) -> Result<Vec<(u32, LogLine)>> {
        logs::read(&mut *self.reading().await?, key, attempt, from, limit).await
    }

    async fn agenda(&self, now: Instant) -> Result<Agenda> {
        sweep::agenda(&self.pool, now).await
    }

    async fn due_timers(&self, now: Instant, limit: u32) -> Result<Vec<DueTimer>> {
        sweep::due_timers(&self.pool, now, limit).await
    }

    async fn due_checkups(&self, now: Instant, limit: u32) -> Result<Vec<RunId>> {
        sweep::due_checkups(&self.pool, now, limit).await
    }

    async fn postpone(&self, run: RunId, now: Instant, until: Instant) -> Result<()> {
        sweep::postpone(&self.pool, run, now, until).await
    }

    async fn give_up_date(&self, run: RunId) -> Result<()> {
        runs::give_up_date(&self.pool, run).await
    }

    async fn check_all(&self, now: Instant) -> Result<u64> {
        sweep::check_all(&self.pool, now).await
    }

    async fn unsent(&self, before: Instant, limit: u32) -> Result<Vec<Unsent>> {
        outbox::unsent(&self.pool, before, limit).await
    }

    async fn sent(&self, ids: &[i64]) -> Result<()> {
        outbox::sent(&self.pool, ids).await
    }

    async fn inspect(&self, now: Instant, after: Option<RunId>) -> Result<Inspection> {
        inspection::inspect(&self.pool, now, after).await
    }

    async fn health(&self) -> Result<Health> {
        inspection::health(&self.pool, MIGRATIONS.iter().map(|migration| migration.version).max()).await
    }

    async fn take_retention(&self, now: Instant, until: Instant) -> Result<bool> {
        retention::take(&self.pool, now, until).await
    }

    async fn rest_retention(&self, until: Instant) -> Result<()> {
        retention::rest(&self.pool, until).await
    }

    async fn expired(&self, part: Part, state: RunState, before: Instant) -> Result<Vec<RunId>> {
        retention::expired(&self.pool, part, state, before).await
    }

    async fn documents(&self, part: Part, runs: &[RunId]) -> Result<Vec<Value>> {
        retention::documents(&self.pool, part, runs).await
    }

    async fn turn_pages(&self, now: Instant, before: Instant) -> Result<()> {
        partitions::turn(&self.pool, now, before).await
    }

    async fn forget(&self, part: Part, runs: &[RunId]) -> Result<()> {
        retention::forget(&self.pool, part, runs).await
    }

    async fn beat(&self, sign: &Sign) -> Result<Told> {
        workers::beat(&self.pool, sign).await
    }

    async fn farewell(&self, worker: WorkerId) -> Result<Option<Order>> {
        workers::farewell(&self.pool, worker).await
    }

    async fn give_order(&self, worker: WorkerId, order: &Order) -> Result<Option<Order>> {
        workers::give_order(&self.pool, worker, order).await
    }

    async fn silent(&self, since: Instant, limit: u32) -> Result<Vec<Silence>> {
        workers::silent(&self.pool, since, limit).await
    }

    async fn lost(&self, silent: &[Silence], limit: u32) -> Result<Vec<Held>> {
        workers::lost(&self.pool, silent, limit).await
    }

    async fn forget_workers(&self, silent: &[Silence]) -> Result<u64> {
        workers::forget(&self.pool, silent).await
    }

    async fn workers(
        &self,
        tenant: TenantId,
        after: Option<WorkerId>,
        limit: u32,
    ) -> Result<Vec<WorkerRecord>> {
        workers::list(&self.pool, tenant, after, limit).await
    }

    async fn bury(&self, letter: &DeadLetter) -> Result<()> {
        letters::bury(&self.pool, letter).await
    }

    async fn dead_letters(&self, filter: &LetterFilter) -> Result<Vec<DeadLetter>> {
        letters::list(&self.pool, filter).await
    }

    async fn dead_letter(&self, id: &str) -> Result<Option<DeadLetter>> {
        letters::find(&self.pool, id).await
    }

    async fn discard(&self, id: &str) -> Result<bool> {
        letters::discard(&self.pool, id).await
    }
}
