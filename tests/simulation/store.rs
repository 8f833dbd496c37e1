//! The in-memory store as one instance reaches it: something may happen before and after each call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};

use async_trait::async_trait;
use model::{
    Ask, AttemptRecord, Audit, BackfillId, Changes, Event, Instant, Leave, Limit, Order, Run, RunId,
    RunState, Seat, Task, TaskIndex, TaskKey, TenantId, VersionId, WorkerId,
};
use serde_json::Value;
use store::{
    Activated, Active, Agenda, BackfillDate, BackfillRecord, BackfillTurn, Birth, Committed, Contender,
    Context, Created, DateStep, DeadLetter, DueTimer, Error, Facts, Granted, Health, Held, InLine,
    Inspection, LaneMember, LetterFilter, LimitRecord, LogChunk, LogLine, Memory, NewVersion, Part,
    Registered, Result, RunFilter, RunRecord, ScheduleRecord, Share, ShareAsk, Sign, Silence, StandingRecord,
    StartRecord, Store, TaskRecord, TimerFilter, TimerRecord, Told, Unit, Unsent, VersionRecord,
    WorkerRecord, WorkflowRecord,
};

use crate::bugs::Planted;
use crate::fault_points::{Interrupted, Points, now};
use crate::faults::Point;

/// The runs that commits changed since somebody asked. Clones share one list.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<BTreeSet<RunId>>>);

impl Ledger {
    fn note(&self, runs: &[RunId]) {
        self.0.lock().unwrap().extend(runs);
    }

    pub(crate) fn take(&self) -> BTreeSet<RunId> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A transaction that is open, so that nobody else has a turn.
struct Open {
    unit: Option<Box<dyn Unit>>,
    points: Points,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.unit.take();
        self.points.closed();
    }
}

type Session = Mutex<Option<Open>>;

/// The transactions that an instance has open. Clones share one list.
#[derive(Clone, Default)]
pub(crate) struct Sessions(Arc<Mutex<Vec<Weak<Session>>>>);

impl Sessions {
    /// Ends them, as the database ends those whose client says nothing for too long.
    pub(crate) fn end(&self) {
        for session in self.0.lock().unwrap().drain(..).filter_map(|session| session.upgrade()) {
            session.lock().unwrap().take();
        }
    }
}

pub(crate) fn away(_: Interrupted) -> Error {
    Error::Unavailable(sqlx::Error::PoolTimedOut)
}

/// The in-memory store, interrupted.
pub(crate) struct SimulatedStore {
    pub(crate) inner: Arc<Memory>,
    pub(crate) points: Points,
    pub(crate) ledger: Ledger,
    pub(crate) planted: Planted,
    pub(crate) sessions: Sessions,
}

pub(crate) struct SimulatedUnit {
    session: Arc<Session>,
    points: Points,
    ledger: Ledger,
    planted: Planted,
    memory: Arc<Memory>,
    written: Vec<RunId>,
}

impl SimulatedUnit {
    /// Where rows are written, another change may have come first.
    fn refuse(&self, at: Point, interrupted: Interrupted) -> Error {
        let conflict = at == Point::Save && self.points.faults.draw(0..2) == 0;
        if conflict { Error::Conflict } else { away(interrupted) }
    }

    /// Does something in the transaction, unless the store has ended it.
    pub(crate) fn within<T>(&self, at: Point, ask: impl FnOnce(&mut dyn Unit) -> Result<T>) -> Result<T> {
        self.points.pass(at).map_err(|interrupted| self.refuse(at, interrupted))?;
        let mut session = self.session.lock().unwrap();
        let unit = session.as_mut().and_then(|open| open.unit.as_mut());
        unit.map_or_else(|| Err(away(Interrupted)), |unit| ask(&mut **unit))
    }
}

/// Passes calls on to the transaction within.
macro_rules! pass_on_within {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Unit for SimulatedUnit {
            $(async fn $name(&mut self, $($argument: $type),*) -> Result<$answer> {
                self.within(Point::UnitRead, |unit| now(unit.$name($($argument),*)))
            })*

            async fn lock(&mut self, runs: &[RunId]) -> Result<Vec<Run>> {
                let rows = self.within(Point::UnitRead, |unit| now(unit.lock(runs)))?;
                Ok(self.planted.read_runs(rows))
            }

            async fn tasks(&mut self, keys: &[TaskKey]) -> Result<Vec<(RunId, Task)>> {
                let rows = self.within(Point::UnitRead, |unit| now(unit.tasks(keys)))?;
                Ok(self.planted.read_tasks(rows))
            }

            async fn create(&mut self, births: &[Birth]) -> Result<Vec<Created>> {
                self.written.extend(births.iter().map(|birth| birth.changes.run.id));
                self.within(Point::Save, |unit| now(unit.create(births)))
            }

            async fn save(&mut self, changes: &[Changes]) -> Result<()> {
                self.written.extend(changes.iter().map(|changes| changes.run.id));
                let changes = self.planted.write(changes, &self.memory);
                self.within(Point::Save, |unit| now(unit.save(&changes)))
            }

            async fn seat(&mut self, asks: &[Ask], leaves: &[Leave], at: Instant) -> Result<Vec<Seat>> {
                let (asks, leaves) = (self.planted.asks(asks), self.planted.leaves(leaves));
                self.within(Point::UnitRead, |unit| now(unit.seat(&asks, &leaves, at)))
            }

            async fn due_timers(&mut self, at: Instant, limit: u32) -> Result<Vec<DueTimer>> {
                let due = self.within(Point::UnitRead, |unit| now(unit.due_timers(at, limit)))?;
                Ok(self.planted.due_timers(due, &self.memory))
            }

            async fn commit(self: Box<Self>) -> Result<Committed> {
                let shared = self.written.len() > 1;
                let before = if shared { Point::BeforeSharedCommit } else { Point::BeforeCommit };
                self.points.stop(before).await.map_err(away)?;
                self.planted.commit().map_err(away)?;
                let open = self.session.lock().unwrap().take();
                let unit = open.and_then(|mut open| open.unit.take()).ok_or(Interrupted).map_err(away)?;
                let committed = now(unit.commit())?;
                self.ledger.note(&self.written);
                self.points.stop(Point::AfterCommit).await.map_err(away)?;
                Ok(committed)
            }
        }
    };
}

pass_on_within! {
    fn unfinished(runs: &[RunId]) -> Vec<(RunId, Task)>;
    fn version(id: VersionId) -> Option<VersionRecord>;
    fn context(run: RunId, tasks: &[TaskIndex]) -> Option<Context>;
    fn items(run: RunId, children: &[TaskIndex]) -> BTreeMap<TaskIndex, Value>;
    fn delivered(run: RunId, first: TaskIndex, count: u32) -> BTreeMap<TaskIndex, Value>;
    fn share(ask: &ShareAsk) -> Share;
    fn lane(tenant: TenantId, workflow: &str, lane: &str) -> Vec<LaneMember>;
    fn signal(run: RunId, name: &str) -> Option<Value>;
    fn all_tasks(runs: &[RunId]) -> Vec<(RunId, Task)>;
    fn ancestors(run: RunId) -> BTreeSet<RunId>;
    fn has_forgotten_outputs(run: &Run) -> bool;
    fn audit(run: RunId) -> Audit;
    fn grant(at: Instant) -> ();
    fn give_back(granted: &[Granted], at: Instant) -> ();
}

/// Passes calls of one part of the store on to the store within: reads after a stop, writes between two.
macro_rules! pass_on_part {
    (
        $part:ident
        reads { $(fn $read:ident($($asked:ident: $ask:ty),*) -> $told:ty;)* }
        writes { $(fn $write:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* }
    ) => {
        #[async_trait]
        impl store::$part for SimulatedStore {
            $(async fn $read(&self, $($asked: $ask),*) -> Result<$told> {
                self.points.stop(Point::Read).await.map_err(away)?;
                self.inner.$read($($asked),*).await
            })*

            $(async fn $write(&self, $($argument: $type),*) -> Result<$answer> {
                self.points.stop(Point::Write).await.map_err(away)?;
                let answer = self.inner.$write($($argument),*).await?;
                self.points.stop(Point::AfterWrite).await.map_err(away)?;
                Ok(answer)
            })*
        }
    };
}

pass_on_part! {
    Schedules
    reads {
        fn schedules(
            tenant: TenantId,
            workflow: Option<&str>,
            after: Option<(&str, &str)>,
            limit: u32
        ) -> Vec<ScheduleRecord>;
        fn due_schedules(at: Instant, limit: u32) -> Vec<ScheduleRecord>;
        fn last_starts(tenant: TenantId, workflow: &str, schedule: &str, limit: u32) -> Vec<StartRecord>;
    }
    writes {
        fn save_schedule(record: &ScheduleRecord) -> bool;
    }
}

pass_on_part! {
    Backfills
    reads {
        fn runs_of_dates(
            tenant: TenantId,
            workflow: &str,
            schedule: &str,
            from: Instant,
            to: Instant
        ) -> BTreeMap<Instant, (RunId, RunState)>;
        fn backfill(tenant: TenantId, id: BackfillId) -> Option<BackfillRecord>;
        fn any_backfill(id: BackfillId) -> Option<BackfillRecord>;
        fn backfills(
            tenant: TenantId,
            workflow: Option<&str>,
            after: Option<(Instant, BackfillId)>,
            limit: u32
        ) -> Vec<BackfillRecord>;
        fn due_backfills(at: Instant, limit: u32) -> Vec<BackfillRecord>;
        fn backfill_turn(id: BackfillId, limit: u32) -> BackfillTurn;
        fn backfill_progress(id: BackfillId) -> BTreeMap<String, u32>;
        fn backfill_runs(id: BackfillId, states: &[RunState], limit: u32) -> Vec<(BackfillDate, RunState)>;
    }
    writes {
        fn create_backfill(record: &BackfillRecord, dates: &[BackfillDate]) -> ();
        fn save_backfill(record: &BackfillRecord) -> bool;
        fn move_date(id: BackfillId, from: DateStep, date: &BackfillDate) -> bool;
        fn forget_backfills(before: Instant) -> u64;
    }
}

#[async_trait]
impl store::Remnants for SimulatedStore {
    async fn forget_letters(&self, before: Instant) -> Result<u64> {
        self.inner.forget_letters(before).await
    }

    async fn forget_trigger_events(&self, now: Instant) -> Result<u64> {
        self.inner.forget_trigger_events(now).await
    }
}

#[async_trait]
impl store::Measured for SimulatedStore {
    async fn load(&self) -> Result<store::Load> {
        self.inner.load().await
    }

    async fn usage(&self, tenant: TenantId, most: u32) -> Result<store::Usage> {
        self.inner.usage(tenant, most).await
    }
}

pass_on_part! {
    Outlines reads {
        fn outline(runs: &[RunId]) -> Vec<(RunId, Task)>;
        fn pulse(tenant: TenantId, since: Instant, limit: u32) -> Vec<(Instant, RunState)>;
        fn horizon(tenant: TenantId, filter: &RunFilter, rows: u32) -> Option<store::RunPlace>;
        fn last_runs(tenant: TenantId, workflows: &[String], each: u32) -> Vec<store::Glance>;
    }
    writes {}
}

/// Passes calls on to the store within: reads after a stop, writes between two.
macro_rules! pass_on {
    (
        reads { $(fn $read:ident($($asked:ident: $ask:ty),*) -> $told:ty;)* }
        writes { $(fn $write:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* }
    ) => {
        #[async_trait]
        impl Store for SimulatedStore {
            async fn begin(&self) -> Result<Box<dyn Unit>> {
                self.points.stop(Point::Begin).await.map_err(away)?;
                self.points.stop(Point::Turn).await.map_err(away)?;
                let unit = Some(self.inner.begin().await?);
                self.points.opened();
                let open = Open { unit, points: self.points.clone() };
                let session = Arc::new(Mutex::new(Some(open)));
                let mut sessions = self.sessions.0.lock().unwrap();
                sessions.retain(|session| session.strong_count() > 0);
                sessions.push(Arc::downgrade(&session));
                Ok(Box::new(SimulatedUnit {
                    session,
                    points: self.points.clone(),
                    ledger: self.ledger.clone(),
                    planted: self.planted.clone(),
                    memory: self.inner.clone(),
                    written: Vec::new(),
                }))
            }

            async fn due_timers(&self, at: Instant, limit: u32) -> Result<Vec<DueTimer>> {
                self.points.stop(Point::Read).await.map_err(away)?;
                let due = self.inner.due_timers(at, limit).await?;
                Ok(self.planted.due_timers(due, &self.inner))
            }

            $(async fn $read(&self, $($asked: $ask),*) -> Result<$told> {
                self.points.stop(Point::Read).await.map_err(away)?;
                self.inner.$read($($asked),*).await
            })*

            $(async fn $write(&self, $($argument: $type),*) -> Result<$answer> {
                self.points.stop(Point::Write).await.map_err(away)?;
                let answer = self.inner.$write($($argument),*).await?;
                self.points.stop(Point::AfterWrite).await.map_err(away)?;
                Ok(answer)
            })*
        }
    };
}

pass_on! {
    reads {
        fn ping() -> ();
        fn workflow(tenant: TenantId, name: &str) -> Option<WorkflowRecord>;
        fn active(tenant: TenantId, name: &str) -> Option<Active>;
        fn workflows(tenant: TenantId, after: Option<&str>, limit: u32) -> Vec<WorkflowRecord>;
        fn version(id: VersionId) -> Option<VersionRecord>;
        fn versions(tenant: TenantId, workflow: &str, before: Option<i32>, limit: u32) -> Vec<VersionRecord>;
        fn numbered_version(tenant: TenantId, workflow: &str, number: i32) -> Option<VersionRecord>;
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
        fn standings(limit: &Limit) -> Vec<StandingRecord>;
        fn holders(tenant: TenantId, runs: u32) -> Vec<Contender>;
        fn line(limit: &Limit, tenant: TenantId, count: u32) -> Vec<Contender>;
        fn in_line(key: TaskKey) -> Option<InLine>;
        fn untaken(before: Instant, limit: u32) -> Vec<Granted>;
        fn attempts(key: TaskKey) -> Vec<AttemptRecord>;
        fn events(run: RunId, from: i64, limit: u32) -> Vec<(i64, Event)>;
        fn own_events(run: RunId, with: Option<TaskIndex>, from: i64, limit: u32) -> Vec<(i64, Event)>;
        fn outputs(run: RunId, tasks: &[TaskIndex]) -> BTreeMap<TaskIndex, Value>;
        fn log(key: TaskKey, attempt: u32, from: u32, limit: u32) -> Vec<(u32, LogLine)>;
        fn agenda(at: Instant) -> Agenda;
        fn due_checkups(at: Instant, limit: u32) -> Vec<RunId>;
        fn unsent(before: Instant, limit: u32) -> Vec<Unsent>;
        fn timers(tenant: TenantId, filter: &TimerFilter) -> Vec<TimerRecord>;
        fn inspect(at: Instant, after: Option<RunId>) -> Inspection;
        fn health() -> Health;
        fn expired(part: Part, state: RunState, before: Instant) -> Vec<RunId>;
        fn documents(part: Part, runs: &[RunId]) -> Vec<Value>;
        fn silent(since: Instant, limit: u32) -> Vec<Silence>;
        fn lost(silent: &[Silence], limit: u32) -> Vec<Held>;
        fn workers(tenant: TenantId, after: Option<WorkerId>, limit: u32) -> Vec<WorkerRecord>;
        fn dead_letters(filter: &LetterFilter) -> Vec<DeadLetter>;
        fn dead_letter(id: &str) -> Option<DeadLetter>;
    }
    writes {
        fn register_all(new: &[NewVersion]) -> Vec<Registered>;
        fn archive(tenant: TenantId, workflow: &str, at: Instant) -> bool;
        fn activate(tenant: TenantId, workflow: &str, number: i32, at: Instant) -> Activated;
        fn append_log(chunk: &LogChunk) -> ();
        fn postpone(run: RunId, at: Instant, until: Instant) -> ();
        fn give_up_date(run: RunId) -> ();
        fn check_all(at: Instant) -> u64;
        fn sent(ids: &[i64]) -> ();
        fn set_places(limit: &Limit, places: Option<u32>) -> ();
        fn tenant(name: &str, at: Instant) -> TenantId;
        fn set_weight(tenant: TenantId, weight: u32) -> ();
        fn take_retention(at: Instant, until: Instant) -> bool;
        fn rest_retention(until: Instant) -> ();
        fn turn_pages(at: Instant, before: Instant) -> ();
        fn forget(part: Part, runs: &[RunId]) -> ();
        fn beat(sign: &Sign) -> Told;
        fn farewell(worker: WorkerId) -> Option<Order>;
        fn give_order(worker: WorkerId, order: &Order) -> Option<Order>;
        fn forget_workers(silent: &[Silence]) -> u64;
        fn bury(letter: &DeadLetter) -> ();
        fn discard(id: &str) -> bool;
    }
}
