//! One transaction: all reads and writes of a decision.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use model::wait_queue::{SlotChanges, SlotRead, SlotRows};
use model::{
    Audit, Changes, CloudEvent, Instant, Run, RunId, Task, TaskIndex, TaskKey, TenantId, TriggerKey,
    VersionId,
};

use crate::{
    ConcurrencyMember, Context, Created, DueTimer, NewRunRecord, PollRecord, Result, Share, ShareAsk,
    TransactionBreakers, TriggerEvent, Unsent, VersionRecord,
};

/// One transaction. Dropped without [`commit`](Transaction::commit), it leaves no trace.
#[async_trait]
pub trait Transaction: TransactionSlots + TransactionBreakers + TransactionTriggers {
    /// Locks these runs (in id order, whatever the order given) and returns those that exist.
    async fn lock(&mut self, runs: &[RunId]) -> Result<Vec<Run>>;

    /// The named tasks of locked runs, and the fan-outs that any of them is a child of; those that do not exist are
    /// left out.
    async fn tasks(&mut self, keys: &[TaskKey]) -> Result<Vec<(RunId, Task)>>;

    /// All tasks of locked runs that have not ended: for cancelling and for rechecks, never for a completion.
    async fn unfinished(&mut self, runs: &[RunId]) -> Result<Vec<(RunId, Task)>>;

    /// All tasks of locked runs, ended or not: for reruns, never for a completion.
    async fn all_tasks(&mut self, runs: &[RunId]) -> Result<Vec<(RunId, Task)>>;

    /// One version, read within the transaction.
    async fn version(&mut self, id: VersionId) -> Result<Option<VersionRecord>>;

    /// What a run was created with, and the outputs of the named tasks: what templates are rendered from. Outputs that are
    /// [`TooLarge`](crate::Error::TooLarge) together leave the transaction as it was.
    async fn context(&mut self, run: RunId, tasks: &[TaskIndex]) -> Result<Option<Context>>;

    /// The items that the named children of fan-outs work on.
    async fn items(
        &mut self,
        run: RunId,
        children: &[TaskIndex],
    ) -> Result<BTreeMap<TaskIndex, serde_json::Value>>;

    /// The outputs of `count` tasks from `first` on, of those that succeeded; null for one without an output. Of outputs with
    /// that field, only the field. Outputs that are [`TooLarge`](crate::Error::TooLarge) together leave the transaction as it
    /// was.
    async fn delivered(
        &mut self,
        run: RunId,
        first: TaskIndex,
        count: u32,
        field: Option<&str>,
    ) -> Result<BTreeMap<TaskIndex, serde_json::Value>>;

    /// Asks for a task that several runs share: to execute it for all of them, to wait for the run that does, or to reuse
    /// an earlier success. A task that owns the execution and asks again still owns it.
    async fn share(&mut self, ask: &ShareAsk) -> Result<Share>;

    /// Locks a concurrency group until the transaction ends, and returns its unfinished runs, oldest first. Take it before
    /// any run is locked, so that transactions cannot deadlock.
    async fn concurrency_group(
        &mut self,
        tenant: TenantId,
        workflow: &str,
        group: &str,
    ) -> Result<Vec<ConcurrencyMember>>;

    /// This run, and above it the runs whose tasks wait for the one below. None of them is locked.
    async fn ancestors(&mut self, run: RunId) -> Result<BTreeSet<RunId>>;

    /// Whether retention has deleted the outputs of a run that ended.
    async fn has_forgotten_outputs(&mut self, run: &Run) -> Result<bool>;

    /// The totals of the rows of a locked run.
    async fn audit(&mut self, run: RunId) -> Result<Audit>;

    /// The payload of a signal that was sent to a run before a task waited for it.
    async fn signal(&mut self, run: RunId, name: &str) -> Result<Option<serde_json::Value>>;

    /// Timers that are due, the longest overdue first, of runs that no other transaction has locked. They are locked now,
    /// without waiting. Concurrent transactions get different ones.
    async fn due_timers(&mut self, now: Instant, limit: u32) -> Result<Vec<DueTimer>>;

    /// Creates runs with all their rows, except those whose id or logical date is taken. Returns the outcome of each.
    async fn create(&mut self, new_runs: &[NewRunRecord]) -> Result<Vec<Created>>;

    /// Writes the changes of decisions, each row only over the revision it was read at.
    async fn save(&mut self, changes: &[Changes]) -> Result<()>;

    /// Commits. Returns the outbox messages, to be published now and then marked as sent. A transaction that met an error
    /// before cannot be committed: that is a conflict, and leaves no trace.
    async fn commit(self: Box<Self>) -> Result<Option<Unsent>>;
}

/// Reads and writes of slots in a transaction; the engine decides.
#[async_trait]
pub trait TransactionSlots: Send {
    /// Reads rows that an admission needs. Limits are locked after runs: call it once everything else was read.
    async fn read_slots(&mut self, read: &SlotRead) -> Result<SlotRows>;

    /// Writes what an admission changed. `counted` is only remembered, for [`count_slots`](Self::count_slots).
    async fn save_slots(&mut self, changes: &SlotChanges) -> Result<()>;

    /// Counts the slots that were only remembered, as the last statement before the commit. Returns their limits, locked,
    /// if one of them has waiters and a free slot.
    async fn count_slots(&mut self) -> Result<Option<SlotRows>>;
}

/// Writes about triggers in a transaction.
#[async_trait]
pub trait TransactionTriggers: Send {
    /// Records an event that a trigger received. Returns whether it is new: of several transactions that record it at the
    /// same time, only the first to commit gets `true`.
    async fn note_event(&mut self, key: &TriggerKey, event: &TriggerEvent) -> Result<bool>;

    /// Holds an event until it is due, in place of any other that was held. Returns whether the trigger exists.
    async fn hold_event(&mut self, key: &TriggerKey, event: &CloudEvent, due_at: Instant) -> Result<bool>;

    /// Takes the event that is held, if it is due.
    async fn take_held(&mut self, key: &TriggerKey, now: Instant) -> Result<Option<CloudEvent>>;

    /// Records the poll of a trigger's sensor over the revision it was based on. Returns whether it could: another poll may
    /// have come first.
    async fn record_poll(
        &mut self,
        key: &TriggerKey,
        revision: i64,
        poll_record: &PollRecord,
    ) -> Result<bool>;
}

/// Begins transactions, which lock and write runs.
#[async_trait]
pub trait Transactions: Send + Sync {
    /// Begins a transaction that rolls back unless it is committed.
    async fn begin(&self) -> Result<Box<dyn Transaction>>;

    /// Returns without an error if the store can be reached.
    async fn ping(&self) -> Result<()>;
}
