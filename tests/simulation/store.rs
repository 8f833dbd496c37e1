//! The in-memory store as one instance reaches it: something may happen before and after each call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};

use async_trait::async_trait;
use model::wait_queue::{SlotChanges, SlotRead, SlotRows};
use model::{Audit, Changes, Instant, Run, RunId, Task, TaskIndex, TaskKey, TenantId, VersionId};
use serde_json::Value;
use store::{
    ConcurrencyMember, Context, Created, DueTimer, Error, Memory, NewRunRecord, Result, Share, ShareAsk,
    Timers, Transaction, TransactionSlots, Transactions, Unsent, VersionRecord,
};

use crate::bugs::Planted;
use crate::check::{Checked, violation};
use crate::fault_points::{Interrupted, Points, now};
use crate::faults::Point;

/// The runs that commits changed since the last call, and offers that were passed over. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    written: Arc<Mutex<BTreeSet<RunId>>>,
    passed_over: Arc<Mutex<Vec<String>>>,
}

impl Ledger {
    fn note(&self, runs: &[RunId]) {
        self.written.lock().unwrap().extend(runs);
    }

    pub(crate) fn take(&self) -> BTreeSet<RunId> {
        std::mem::take(&mut self.written.lock().unwrap())
    }

    pub(crate) fn note_passed_over(&self, what: String) {
        self.passed_over.lock().unwrap().push(what);
    }

    /// No worker takes an offer while another one of its group is before it.
    pub(crate) fn passed_over(&self) -> Checked {
        match self.passed_over.lock().unwrap().first() {
            Some(what) => violation("no_offer_is_passed_over", what),
            None => Ok(()),
        }
    }
}

/// A transaction that is open, so that nobody else has a turn.
struct Open {
    unit: Option<Box<dyn Transaction>>,
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

pub(crate) struct SimulatedTransaction {
    session: Arc<Session>,
    points: Points,
    ledger: Ledger,
    planted: Planted,
    memory: Arc<Memory>,
    written: Vec<RunId>,
}

impl SimulatedTransaction {
    /// Where rows are written, another change may have come first.
    fn refuse(&self, at: Point, interrupted: Interrupted) -> Error {
        let conflict = at == Point::Save && self.points.faults.draw(0..2) == 0;
        if conflict { Error::Conflict } else { away(interrupted) }
    }

    /// Does something in the transaction, unless the store has ended it.
    pub(crate) fn within<T>(
        &self,
        at: Point,
        ask: impl FnOnce(&mut dyn Transaction) -> Result<T>,
    ) -> Result<T> {
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
        impl Transaction for SimulatedTransaction {
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

            async fn version(&mut self, id: VersionId) -> Result<Option<VersionRecord>> {
                let record = self.within(Point::UnitRead, |unit| now(unit.version(id)))?;
                Ok(self.planted.read_version(record))
            }

            async fn create(&mut self, new_runs: &[NewRunRecord]) -> Result<Vec<Created>> {
                self.written.extend(new_runs.iter().map(|new_run| new_run.changes.run.id));
                self.within(Point::Save, |unit| now(unit.create(new_runs)))
            }

            async fn save(&mut self, changes: &[Changes]) -> Result<()> {
                self.written.extend(changes.iter().map(|changes| changes.run.id));
                let changes = self.planted.write(changes, &self.memory);
                self.within(Point::Save, |unit| now(unit.save(&changes)))
            }

            async fn due_timers(&mut self, at: Instant, limit: u32) -> Result<Vec<DueTimer>> {
                let due = self.within(Point::UnitRead, |unit| now(unit.due_timers(at, limit)))?;
                Ok(self.planted.due_timers(due, &self.memory))
            }

            async fn commit(self: Box<Self>) -> Result<Option<Unsent>> {
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
    fn context(run: RunId, tasks: &[TaskIndex]) -> Option<Context>;
    fn items(run: RunId, children: &[TaskIndex]) -> BTreeMap<TaskIndex, Value>;
    fn delivered(run: RunId, first: TaskIndex, count: u32, field: Option<&str>) -> BTreeMap<TaskIndex, Value>;
    fn share(ask: &ShareAsk) -> Share;
    fn concurrency_group(tenant: TenantId, workflow: &str, group: &str) -> Vec<ConcurrencyMember>;
    fn signal(run: RunId, name: &str) -> Option<Value>;
    fn all_tasks(runs: &[RunId]) -> Vec<(RunId, Task)>;
    fn ancestors(run: RunId) -> BTreeSet<RunId>;
    fn has_forgotten_outputs(run: &Run) -> bool;
    fn audit(run: RunId) -> Audit;
}

#[async_trait]
impl TransactionSlots for SimulatedTransaction {
    async fn read_slots(&mut self, read: &SlotRead) -> Result<SlotRows> {
        let rows = self.within(Point::UnitRead, |unit| now(unit.read_slots(read)))?;
        Ok(self.planted.read_slots(rows))
    }

    async fn save_slots(&mut self, changes: &SlotChanges) -> Result<()> {
        let changes = self.planted.save_slots(changes);
        self.within(Point::UnitRead, |unit| now(unit.save_slots(&changes)))
    }

    async fn count_slots(&mut self) -> Result<Option<SlotRows>> {
        self.within(Point::Save, |unit| now(unit.count_slots()))
    }
}

#[async_trait]
impl Transactions for SimulatedStore {
    async fn begin(&self) -> Result<Box<dyn Transaction>> {
        self.points.stop(Point::Begin).await.map_err(away)?;
        self.points.stop(Point::Turn).await.map_err(away)?;
        let unit = Some(self.inner.begin().await?);
        self.points.opened();
        let open = Open { unit, points: self.points.clone() };
        let session = Arc::new(Mutex::new(Some(open)));
        let mut sessions = self.sessions.0.lock().unwrap();
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(Arc::downgrade(&session));
        Ok(Box::new(SimulatedTransaction {
            session,
            points: self.points.clone(),
            ledger: self.ledger.clone(),
            planted: self.planted.clone(),
            memory: self.inner.clone(),
            written: Vec::new(),
        }))
    }

    async fn ping(&self) -> Result<()> {
        self.points.stop(Point::Read).await.map_err(away)?;
        self.inner.ping().await
    }
}

#[async_trait]
impl Timers for SimulatedStore {
    async fn due_timers(&self, at: Instant, limit: u32) -> Result<Vec<DueTimer>> {
        self.points.stop(Point::Read).await.map_err(away)?;
        let due = self.inner.due_timers(at, limit).await?;
        Ok(self.planted.due_timers(due, &self.inner))
    }
}
