//! All state, behind one interface with two implementations: [`Postgres`], and [`Memory`] for virtual time.
//! Both pass the suite in `tests/conformance`.
//!
//! Everything that decides goes through a [`Unit`]: one transaction that locks runs, reads the rows that a
//! decision touches, writes what it changed and commits. The run's row is the lock of everything in the run;
//! runs are locked in id order, so they make no circle of units that wait for each other. Revisions are the second fence: a row is written
//! only over the revision it was read at, and [`Error::Conflict`] says that it was not.

mod backfills;
mod checkpoints;
mod chunks;
mod deeds;
mod elsewhere;
mod error;
mod identities;
mod inspection;
mod load;
mod memory;
mod news;
mod normal;
mod outline;
mod pace;
mod postgres;
mod receipts;
mod records;
mod retention;
mod schedules;
mod seating;
mod tenants;
mod trial;
mod triggers;
mod unit;
mod wall;
mod workflows;

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{
    AttemptRecord, Event, Instant, Limit, Order, RunId, RunState, TaskIndex, TaskKey, TenantId, VersionId,
    WorkerId,
};

pub use backfills::*;
pub use checkpoints::{Checkpoint, Checkpoints};
pub use deeds::{Deed, DeedFilter, DeedStore};
pub use elsewhere::rows_elsewhere;
pub use error::{Error, Result};
pub use identities::{GrantRecord, Identities, IdentityFilter, RoleRecord, TokenRecord};
pub use inspection::{Fault, Finding, Health, Inspection};
pub use load::{Load, Measured, Pool, TenantLoad, Usage};
pub use memory::Memory;
pub use news::{Bookmark, News, NewsItem, NewsStore};
pub use outline::{Glance, Outlines};
pub use pace::Pace;
pub use postgres::Postgres;
pub use receipts::{Known, Receipt, ReceiptKey, ReceiptStore};
pub use records::*;
pub use retention::{Part, Remnants};
pub use schedules::*;
pub use tenants::{TenantFilter, TenantRecord, Tenants};
pub use trial::Trial;
pub use triggers::{
    Sighting, TriggerEvent, TriggerFilter, TriggerPause, TriggerRecord, TriggerStore, TriggerUnit,
};
pub use unit::Unit;
pub use wall::{unwalled, walled};
pub use workflows::{Paused, Workflows};

/// The interface to all state.
#[async_trait]
pub trait Store:
    Schedules
    + Backfills
    + TriggerStore
    + Measured
    + NewsStore
    + DeedStore
    + ReceiptStore
    + Remnants
    + Outlines
    + Identities
    + Tenants
    + Workflows
    + Checkpoints
{
    /// Opens a unit.
    async fn begin(&self) -> Result<Box<dyn Unit>>;

    /// Answers if the store is there.
    async fn ping(&self) -> Result<()>;

    // Definitions.

    /// Registers definitions, all of them or none. The same content again changes nothing and answers with the
    /// version it has; other content becomes the next version and the active one. An archived workflow becomes
    /// active again.
    async fn register_all(&self, new: &[NewVersion]) -> Result<Vec<Registered>>;

    /// Registers one definition.
    async fn register(&self, new: &NewVersion) -> Result<Registered> {
        Ok(self.register_all(std::slice::from_ref(new)).await?.remove(0))
    }

    /// Takes a workflow out of use; its history stays. Answers whether it was in use.
    async fn archive(&self, tenant: TenantId, workflow: &str, at: Instant) -> Result<bool>;

    /// One workflow with its active version.
    async fn workflow(&self, tenant: TenantId, name: &str) -> Result<Option<WorkflowRecord>>;

    /// Which version of a workflow is active: all that starting a run has to ask for, since versions never change.
    async fn active(&self, tenant: TenantId, name: &str) -> Result<Option<Active>>;

    /// Workflows in name order, after the given name; archived ones are left out.
    async fn workflows(
        &self,
        tenant: TenantId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<WorkflowRecord>>;

    /// One version.
    async fn version(&self, id: VersionId) -> Result<Option<VersionRecord>>;

    /// Versions of a workflow, newest first, below the given number.
    async fn versions(
        &self,
        tenant: TenantId,
        workflow: &str,
        before: Option<i32>,
        limit: u32,
    ) -> Result<Vec<VersionRecord>>;

    /// The version of that number.
    async fn numbered_version(
        &self,
        tenant: TenantId,
        workflow: &str,
        number: i32,
    ) -> Result<Option<VersionRecord>>;

    /// Makes a version that exists the active one. An archived workflow becomes active again.
    async fn activate(&self, tenant: TenantId, workflow: &str, number: i32, at: Instant)
    -> Result<Activated>;

    // Runs.

    /// One run of a tenant.
    async fn run(&self, tenant: TenantId, id: RunId) -> Result<Option<RunRecord>>;

    /// Runs of a tenant, newest first.
    async fn runs(&self, tenant: TenantId, filter: &RunFilter) -> Result<Vec<RunRecord>>;

    /// What a run was created with.
    async fn facts(&self, run: RunId) -> Result<Option<Facts>>;

    /// Tasks of a run in index order, after the given one: those of its definition, or the children of one of them.
    async fn run_tasks(
        &self,
        run: RunId,
        children_of: Option<TaskIndex>,
        after: Option<TaskIndex>,
        limit: u32,
    ) -> Result<Vec<TaskRecord>>;

    /// The item that a child of a fan-out is about.
    async fn item(&self, child: TaskKey) -> Result<Option<serde_json::Value>>;

    /// Who waits for a task to be carried out for several runs: tasks with their attempts, in key order.
    async fn waiters(&self, owner: TaskKey, limit: u32) -> Result<Vec<(TaskKey, u32)>>;

    /// The unfinished runs of a lane, oldest first. Unlike a unit's, nothing is locked, and no decision is made on it.
    async fn in_lane(
        &self,
        tenant: TenantId,
        workflow: &str,
        lane: &str,
        limit: u32,
    ) -> Result<Vec<LaneMember>>;

    // Places.

    /// Every limit that a tenant's tasks need a place of, by kind and name.
    async fn limits(&self, tenant: TenantId) -> Result<Vec<LimitRecord>>;

    /// Says how many places a limit has; none for no bound. Who has a place keeps it.
    async fn set_places(&self, limit: &Limit, places: Option<u32>) -> Result<()>;

    /// The tenant of that name, which comes into being if there is none.
    async fn tenant(&self, name: &str, now: Instant) -> Result<TenantId>;

    /// Says how often a tenant comes in each round of a line, from 1 to 1,000.
    async fn set_weight(&self, tenant: TenantId, weight: u32) -> Result<()>;

    /// What each tenant in the line of a limit has coming and was given.
    async fn standings(&self, limit: &Limit) -> Result<Vec<StandingRecord>>;

    /// The tasks of a tenant that have their places, those of its oldest runs first; of so many unfinished runs.
    async fn holders(&self, tenant: TenantId, runs: u32) -> Result<Vec<Contender>>;

    /// The tasks of a tenant in the line of a limit, whoever comes first first.
    async fn line(&self, limit: &Limit, tenant: TenantId, count: u32) -> Result<Vec<Contender>>;

    /// Where a task stands in line, if it does.
    async fn in_line(&self, key: TaskKey) -> Result<Option<InLine>>;

    /// Who was granted places at `before` or earlier and has not taken them over, the longest ago first.
    async fn untaken(&self, before: Instant, limit: u32) -> Result<Vec<Granted>>;

    /// Attempts of a task that are over, oldest first.
    async fn attempts(&self, key: TaskKey) -> Result<Vec<AttemptRecord>>;

    /// Events of a run with a number of `from` or higher, oldest first, with their numbers.
    async fn events(&self, run: RunId, from: i64, limit: u32) -> Result<Vec<(i64, Event)>>;

    /// The same, but for those about children of fan-outs, save one child.
    async fn own_events(
        &self,
        run: RunId,
        with: Option<TaskIndex>,
        from: i64,
        limit: u32,
    ) -> Result<Vec<(i64, Event)>>;

    /// Outputs of the named tasks, of those that have one.
    async fn outputs(
        &self,
        run: RunId,
        tasks: &[TaskIndex],
    ) -> Result<BTreeMap<TaskIndex, serde_json::Value>>;

    /// Pending timers of a tenant, the next one first.
    async fn timers(&self, tenant: TenantId, filter: &TimerFilter) -> Result<Vec<TimerRecord>>;

    // Logs.

    /// Appends lines to an attempt's log. Lines are numbered from 0; the same first line again changes nothing.
    async fn append_log(&self, chunk: &LogChunk) -> Result<()>;

    /// Lines of an attempt's log with a number of `from` or higher, oldest first, with their numbers.
    async fn log(&self, key: TaskKey, attempt: u32, from: u32, limit: u32) -> Result<Vec<(u32, LogLine)>>;

    // What the sweep asks.

    /// What is due and when the next thing will be, in one statement: an idle tick costs this and no more.
    async fn agenda(&self, now: Instant) -> Result<Agenda>;

    /// Timers that are due, the longest overdue first.
    async fn due_timers(&self, now: Instant, limit: u32) -> Result<Vec<DueTimer>>;

    /// Runs that should be looked at, the longest overdue first.
    async fn due_checkups(&self, now: Instant, limit: u32) -> Result<Vec<RunId>>;

    /// Puts off whatever is due for a run until `until`: for a run that cannot be settled and must not hold up others.
    async fn postpone(&self, run: RunId, now: Instant, until: Instant) -> Result<()>;

    /// Lets another run have the logical date of one that has ended. Doing it again changes nothing.
    async fn give_up_date(&self, run: RunId) -> Result<()>;

    /// Has every unfinished run looked at now: for a bus that has just lost all its messages.
    async fn check_all(&self, now: Instant) -> Result<u64>;

    /// Outbox rows written at `before` or earlier and not yet marked as sent, oldest first.
    async fn unsent(&self, before: Instant, limit: u32) -> Result<Vec<Unsent>>;

    /// Marks outbox rows as sent. Marking twice changes nothing.
    async fn sent(&self, ids: &[i64]) -> Result<()>;

    /// Looks for what should not be: of the system as a whole where `after` is none, and of a bounded number of
    /// unfinished runs after that one. Says where to go on.
    async fn inspect(&self, now: Instant, after: Option<RunId>) -> Result<Inspection>;

    /// How the store itself is.
    async fn health(&self) -> Result<Health>;

    // Retention.

    /// Takes a turn at retention, if it is free at that instant: nobody else has one before `until`.
    async fn take_retention(&self, now: Instant, until: Instant) -> Result<bool>;

    /// Lets nobody have a turn at retention before `until`.
    async fn rest_retention(&self, until: Instant) -> Result<()>;

    /// Runs that ended in that state at `before` or earlier and still have that part, as far as is known; those that
    /// ended first come first. A bounded number of them, and no more than have a bounded number of tasks together.
    async fn expired(&self, part: Part, state: RunState, before: Instant) -> Result<Vec<RunId>>;

    /// That part of runs, as documents for an archive.
    async fn documents(&self, part: Part, runs: &[RunId]) -> Result<Vec<serde_json::Value>>;

    /// Makes room for events and logs that are to come, and drops what lies in partitions whose runs have all ended at
    /// `before`, for logs, or are all gone, for events.
    async fn turn_pages(&self, now: Instant, before: Instant) -> Result<()>;

    /// Deletes that part of runs that ended, in one short transaction. The runs are those that [`expired`](Store::expired)
    /// named, in that order. Logs and events that lie in partitions go with these. Doing it twice changes nothing.
    async fn forget(&self, part: Part, runs: &[RunId]) -> Result<()>;

    // Workers.

    /// Says that a worker lives. Answers which attempts it holds and what it is told to do.
    async fn beat(&self, sign: &Sign) -> Result<Told>;

    /// Says that a worker holds nothing and will beat no more. Answers what it was told to do and may not have heard.
    async fn farewell(&self, worker: WorkerId) -> Result<Option<Order>>;

    /// Tells a worker what to do; it hears of it when it next says that it lives. Of several orders the first stands,
    /// but whoever drains can still be killed. Answers which one stands; none where no such worker is known.
    async fn give_order(&self, worker: WorkerId, order: &Order) -> Result<Option<Order>>;

    /// Workers that have not been heard of since `since`, the most silent first.
    async fn silent(&self, since: Instant, limit: u32) -> Result<Vec<Silence>>;

    /// Running attempts of these workers, if they are still silent, and of workers that never registered or have left.
    async fn lost(&self, silent: &[Silence], limit: u32) -> Result<Vec<Held>>;

    /// Forgets these workers, if they are still silent: what they held has been taken from them.
    async fn forget_workers(&self, silent: &[Silence]) -> Result<u64>;

    /// Workers that are known, by id, after the given one, with what they hold of a tenant.
    async fn workers(
        &self,
        tenant: TenantId,
        after: Option<WorkerId>,
        limit: u32,
    ) -> Result<Vec<WorkerRecord>>;

    /// One worker, if it is known.
    async fn worker(&self, tenant: TenantId, id: WorkerId) -> Result<Option<WorkerRecord>> {
        let before = id.0.as_u128().checked_sub(1).map(|before| WorkerId(uuid::Uuid::from_u128(before)));
        let found = self.workers(tenant, before, 1).await?.pop();
        Ok(found.filter(|found| found.id == id))
    }

    // Dead letters.

    /// Keeps a message that can never succeed. The same message id again changes nothing.
    async fn bury(&self, letter: &DeadLetter) -> Result<()>;

    /// Dead letters, newest first.
    async fn dead_letters(&self, filter: &LetterFilter) -> Result<Vec<DeadLetter>>;

    /// One dead letter.
    async fn dead_letter(&self, id: &str) -> Result<Option<DeadLetter>>;

    /// Throws a dead letter away. Answers whether it was there.
    async fn discard(&self, id: &str) -> Result<bool>;
}
