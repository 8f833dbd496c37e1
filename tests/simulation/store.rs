//! The in-memory store with a stop before and after each step of a transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use model::{
    Ask, AttemptRecord, Audit, Changes, Event, Instant, Leave, Limit, Order, Run, RunId, RunState, Seat,
    Task, TaskIndex, TaskKey, TenantId, VersionId, WorkerId,
};
use serde_json::Value;
use store::{
    Activated, Agenda, Birth, Committed, Context, Created, DeadLetter, DueTimer, Facts, Granted, Health,
    Held, InLine, Inspection, LaneMember, LetterFilter, LimitRecord, LogChunk, LogLine, Memory, NewVersion,
    Part, Registered, Result, RunFilter, RunRecord, Share, ShareAsk, Sign, Silence, StandingRecord, Store,
    TaskRecord, TimerFilter, TimerRecord, Told, Unit, Unsent, VersionRecord, WorkerRecord, WorkflowRecord,
};

use crate::scheduler::Points;

/// The in-memory store, interrupted.
pub(crate) struct Interrupted {
    pub(crate) inner: Arc<Memory>,
    pub(crate) points: Points,
}

struct InterruptedUnit {
    inner: Box<dyn Unit>,
    points: Points,
}

#[async_trait]
impl Unit for InterruptedUnit {
    async fn lock(&mut self, runs: &[RunId]) -> Result<Vec<Run>> {
        self.inner.lock(runs).await
    }

    async fn tasks(&mut self, keys: &[TaskKey]) -> Result<Vec<(RunId, Task)>> {
        self.inner.tasks(keys).await
    }

    async fn unfinished(&mut self, runs: &[RunId]) -> Result<Vec<(RunId, Task)>> {
        self.inner.unfinished(runs).await
    }

    async fn all_tasks(&mut self, runs: &[RunId]) -> Result<Vec<(RunId, Task)>> {
        self.inner.all_tasks(runs).await
    }

    async fn version(&mut self, id: VersionId) -> Result<Option<VersionRecord>> {
        self.inner.version(id).await
    }

    async fn context(&mut self, run: RunId, tasks: &[TaskIndex]) -> Result<Option<Context>> {
        self.inner.context(run, tasks).await
    }

    async fn items(&mut self, run: RunId, children: &[TaskIndex]) -> Result<BTreeMap<TaskIndex, Value>> {
        self.inner.items(run, children).await
    }

    async fn delivered(
        &mut self,
        run: RunId,
        first: TaskIndex,
        count: u32,
    ) -> Result<BTreeMap<TaskIndex, Value>> {
        self.inner.delivered(run, first, count).await
    }

    async fn share(&mut self, ask: &ShareAsk) -> Result<Share> {
        self.inner.share(ask).await
    }

    async fn lane(&mut self, tenant: TenantId, workflow: &str, lane: &str) -> Result<Vec<LaneMember>> {
        self.inner.lane(tenant, workflow, lane).await
    }

    async fn audit(&mut self, run: RunId) -> Result<Audit> {
        self.inner.audit(run).await
    }

    async fn signal(&mut self, run: RunId, name: &str) -> Result<Option<Value>> {
        self.inner.signal(run, name).await
    }

    async fn due_timers(&mut self, now: Instant, limit: u32) -> Result<Vec<DueTimer>> {
        self.inner.due_timers(now, limit).await
    }

    async fn create(&mut self, birth: &Birth) -> Result<Created> {
        self.inner.create(birth).await
    }

    async fn save(&mut self, changes: &[Changes]) -> Result<()> {
        self.inner.save(changes).await
    }

    async fn seat(&mut self, asks: &[Ask], leaves: &[Leave], now: Instant) -> Result<Vec<Seat>> {
        self.inner.seat(asks, leaves, now).await
    }

    async fn grant(&mut self, now: Instant) -> Result<()> {
        self.inner.grant(now).await
    }

    async fn commit(self: Box<Self>) -> Result<Committed> {
        self.points.stop().await;
        let committed = self.inner.commit().await?;
        self.points.stop().await;
        Ok(committed)
    }
}

/// Passes calls on to the store within, after a stop.
macro_rules! pass_on {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Store for Interrupted {
            async fn begin(&self) -> Result<Box<dyn Unit>> {
                self.points.stop().await;
                let inner = self.inner.begin().await?;
                Ok(Box::new(InterruptedUnit { inner, points: self.points.clone() }))
            }

            $(async fn $name(&self, $($argument: $type),*) -> Result<$answer> {
                self.points.stop().await;
                self.inner.$name($($argument),*).await
            })*
        }
    };
}

pass_on! {
    fn ping() -> ();
    fn register_all(new: &[NewVersion]) -> Vec<Registered>;
    fn archive(tenant: TenantId, workflow: &str, at: Instant) -> bool;
    fn workflow(tenant: TenantId, name: &str) -> Option<WorkflowRecord>;
    fn workflows(tenant: TenantId, after: Option<&str>, limit: u32) -> Vec<WorkflowRecord>;
    fn version(id: VersionId) -> Option<VersionRecord>;
    fn versions(tenant: TenantId, workflow: &str, before: Option<i32>, limit: u32) -> Vec<VersionRecord>;
    fn numbered_version(tenant: TenantId, workflow: &str, number: i32) -> Option<VersionRecord>;
    fn activate(tenant: TenantId, workflow: &str, number: i32, at: Instant) -> Activated;
    fn run(tenant: TenantId, id: RunId) -> Option<RunRecord>;
    fn runs(tenant: TenantId, filter: &RunFilter) -> Vec<RunRecord>;
    fn facts(run: RunId) -> Option<Facts>;
    fn run_tasks(
        run: RunId,
        children_of: Option<TaskIndex>,
        after: Option<TaskIndex>,
        limit: u32
    ) -> Vec<TaskRecord>;
    fn item(child: TaskKey) -> Option<Value>;
    fn waiters(owner: TaskKey, limit: u32) -> Vec<(TaskKey, u32)>;
    fn in_lane(tenant: TenantId, workflow: &str, lane: &str, limit: u32) -> Vec<LaneMember>;
    fn limits(tenant: TenantId) -> Vec<LimitRecord>;
    fn set_places(limit: &Limit, places: Option<u32>) -> ();
    fn tenant(name: &str, now: Instant) -> TenantId;
    fn set_weight(tenant: TenantId, weight: u32) -> ();
    fn standings(limit: &Limit) -> Vec<StandingRecord>;
    fn in_line(key: TaskKey) -> Option<InLine>;
    fn untaken(before: Instant, limit: u32) -> Vec<Granted>;
    fn attempts(key: TaskKey) -> Vec<AttemptRecord>;
    fn events(run: RunId, from: i64, limit: u32) -> Vec<(i64, Event)>;
    fn own_events(run: RunId, with: Option<TaskIndex>, from: i64, limit: u32) -> Vec<(i64, Event)>;
    fn outputs(run: RunId, tasks: &[TaskIndex]) -> BTreeMap<TaskIndex, Value>;
    fn timers(tenant: TenantId, filter: &TimerFilter) -> Vec<TimerRecord>;
    fn append_log(chunk: &LogChunk) -> ();
    fn log(key: TaskKey, attempt: u32, from: u32, limit: u32) -> Vec<(u32, LogLine)>;
    fn agenda(now: Instant) -> Agenda;
    fn postpone(run: RunId, now: Instant, until: Instant) -> ();
    fn due_timers(now: Instant, limit: u32) -> Vec<DueTimer>;
    fn due_checkups(now: Instant, limit: u32) -> Vec<RunId>;
    fn check_all(now: Instant) -> u64;
    fn unsent(before: Instant, limit: u32) -> Vec<Unsent>;
    fn sent(ids: &[i64]) -> ();
    fn inspect(now: Instant, after: Option<RunId>) -> Inspection;
    fn health() -> Health;
    fn take_retention(now: Instant, until: Instant) -> bool;
    fn rest_retention(until: Instant) -> ();
    fn expired(part: Part, state: RunState, before: Instant) -> Vec<RunId>;
    fn documents(part: Part, runs: &[RunId]) -> Vec<Value>;
    fn turn_pages(now: Instant, before: Instant) -> ();
    fn forget(part: Part, runs: &[RunId]) -> ();
    fn beat(sign: &Sign) -> Told;
    fn farewell(worker: WorkerId) -> Option<Order>;
    fn give_order(worker: WorkerId, order: &Order) -> Option<Order>;
    fn silent(since: Instant, limit: u32) -> Vec<Silence>;
    fn lost(silent: &[Silence], limit: u32) -> Vec<Held>;
    fn forget_workers(silent: &[Silence]) -> u64;
    fn workers(tenant: TenantId, after: Option<WorkerId>, limit: u32) -> Vec<WorkerRecord>;
    fn bury(letter: &DeadLetter) -> ();
    fn dead_letters(filter: &LetterFilter) -> Vec<DeadLetter>;
    fn dead_letter(id: &str) -> Option<DeadLetter>;
    fn discard(id: &str) -> bool;
}
