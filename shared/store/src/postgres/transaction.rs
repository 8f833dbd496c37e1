//! One transaction: what it reads under the run's lock, and how it ends. What it writes is in `saves`.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use model::wait_queue::{SlotChanges, SlotRead, SlotRows};
use model::{Audit, Changes, Instant, Limit, Run, RunId, Task, TaskIndex, TaskKey, TenantId, VersionId};
use serde_json::Value;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::Postgres;
use super::beginning::{UNIT, begin_with};
use super::outbox::PendingMessages;
use super::statements::{LOCK_RUNS, SELECT_ALL_TASKS, SELECT_TASKS, SELECT_UNFINISHED_TASKS};
use super::{
    admission, columns, concurrency, definitions, inspection, items, new_runs, retention, rows, runs, saves,
    shares, signals, timers,
};
use crate::{
    ConcurrencyMember, Context, Created, DueTimer, Error, NewRunRecord, Part, Result, Share, ShareAsk,
    Transaction, TransactionSlots, Transactions, Unsent, VersionRecord,
};

/// An open transaction, with the messages to publish once it is committed.
pub(super) struct PostgresTransaction {
    transaction: sqlx::Transaction<'static, sqlx::Postgres>,
    outbox: PendingMessages,
    /// The outbox row, once it is written.
    unsent: Option<Unsent>,
    /// Slots that are counted as the last statement.
    counted: BTreeMap<Limit, i32>,
    /// Set by the first error: a part of the request may be written, so committing is refused.
    broken: bool,
}

impl PostgresTransaction {
    pub(super) fn new(transaction: sqlx::Transaction<'static, sqlx::Postgres>) -> Self {
        let outbox = PendingMessages::default();
        Self { transaction, outbox, unsent: None, counted: BTreeMap::new(), broken: false }
    }

    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }

    /// Writes the outbox before it counts, since counting locks limits that all other transactions need.
    async fn count(&mut self) -> Result<Option<SlotRows>> {
        let written = self.outbox.write(&mut self.transaction).await?;
        self.unsent = self.unsent.take().or(written);
        admission::count(&mut self.transaction, std::mem::take(&mut self.counted)).await
    }

    pub(super) fn note<T>(&mut self, result: Result<T>) -> Result<T> {
        // The database refused nothing that is only too large.
        self.broken |= result.as_ref().is_err_and(|error| !matches!(error, Error::TooLarge));
        result
    }
}

#[async_trait]
impl Transaction for PostgresTransaction {
    async fn lock(&mut self, runs: &[RunId]) -> Result<Vec<Run>> {
        let locked = lock(&mut self.transaction, runs).await;
        self.note(locked)
    }

    async fn tasks(&mut self, keys: &[TaskKey]) -> Result<Vec<(RunId, Task)>> {
        let found = tasks(&mut self.transaction, keys).await;
        self.note(found)
    }

    async fn unfinished(&mut self, runs: &[RunId]) -> Result<Vec<(RunId, Task)>> {
        let found = tasks_of(&mut self.transaction, runs, &SELECT_UNFINISHED_TASKS).await;
        self.note(found)
    }

    async fn all_tasks(&mut self, runs: &[RunId]) -> Result<Vec<(RunId, Task)>> {
        let found = tasks_of(&mut self.transaction, runs, &SELECT_ALL_TASKS).await;
        self.note(found)
    }

    async fn version(&mut self, id: VersionId) -> Result<Option<VersionRecord>> {
        match definitions::version(&mut *self.transaction, id).await {
            // Nothing is half written for it, so the others in the transaction are not affected.
            Err(error @ Error::Unreadable { .. }) => Err(error),
            found => self.note(found),
        }
    }

    async fn context(&mut self, run: RunId, tasks: &[TaskIndex]) -> Result<Option<Context>> {
        let found = context(&mut self.transaction, run, tasks).await;
        self.note(found)
    }

    async fn items(&mut self, run: RunId, children: &[TaskIndex]) -> Result<BTreeMap<TaskIndex, Value>> {
        let found = items::find(&mut self.transaction, run, children).await;
        self.note(found)
    }

    async fn delivered(
        &mut self,
        run: RunId,
        first: TaskIndex,
        count: u32,
        field: Option<&str>,
    ) -> Result<BTreeMap<TaskIndex, Value>> {
        let found = items::delivered(&mut self.transaction, run, first, count, field).await;
        self.note(found)
    }

    async fn share(&mut self, ask: &ShareAsk) -> Result<Share> {
        let share = shares::ask(&mut self.transaction, ask).await;
        self.note(share)
    }

    async fn concurrency_group(
        &mut self,
        tenant: TenantId,
        workflow: &str,
        group: &str,
    ) -> Result<Vec<ConcurrencyMember>> {
        let members = concurrency::lock(&mut self.transaction, tenant, workflow, group).await;
        self.note(members)
    }

    async fn ancestors(&mut self, run: RunId) -> Result<BTreeSet<RunId>> {
        let found = concurrency::ancestors(&mut self.transaction, run).await;
        self.note(found)
    }

    async fn has_forgotten_outputs(&mut self, run: &Run) -> Result<bool> {
        let forgotten = retention::has_forgotten(&mut self.transaction, Part::Outputs, run).await;
        self.note(forgotten)
    }

    async fn audit(&mut self, run: RunId) -> Result<Audit> {
        let audit = inspection::audit(&mut self.transaction, run).await;
        self.note(audit)
    }

    async fn signal(&mut self, run: RunId, name: &str) -> Result<Option<Value>> {
        let found = signals::find(&mut self.transaction, run, name).await;
        self.note(found)
    }

    async fn due_timers(&mut self, now: Instant, limit: u32) -> Result<Vec<DueTimer>> {
        let due = timers::take_due(&mut self.transaction, now, limit).await;
        self.note(due)
    }

    async fn create(&mut self, new_runs: &[NewRunRecord]) -> Result<Vec<Created>> {
        let created = new_runs::create(&mut self.transaction, new_runs, &mut self.outbox).await;
        self.note(created)
    }

    async fn save(&mut self, changes: &[Changes]) -> Result<()> {
        self.outbox.add(changes);
        let saved = saves::save(&mut self.transaction, changes).await;
        self.note(saved)
    }

    async fn commit(mut self: Box<Self>) -> Result<Option<Unsent>> {
        if self.broken {
            return Err(Error::Conflict);
        }
        self.count().await?;
        self.transaction.commit().await?;
        Ok(self.unsent)
    }
}

#[async_trait]
impl TransactionSlots for PostgresTransaction {
    async fn read_slots(&mut self, read: &SlotRead) -> Result<SlotRows> {
        let found = admission::read(&mut self.transaction, read).await;
        self.note(found)
    }

    async fn save_slots(&mut self, changes: &SlotChanges) -> Result<()> {
        for (limit, by) in &changes.counted {
            *self.counted.entry(limit.clone()).or_default() += by;
        }
        let saved = admission::save(&mut self.transaction, changes).await;
        self.note(saved)
    }

    async fn count_slots(&mut self) -> Result<Option<SlotRows>> {
        let counted = self.count().await;
        self.note(counted)
    }
}

async fn lock(connection: &mut PgConnection, runs: &[RunId]) -> Result<Vec<Run>> {
    let ids: Vec<Uuid> = runs.iter().map(|run| run.0).collect();
    let found = sqlx::query(LOCK_RUNS.as_str()).bind(ids).fetch_all(connection).await?;
    found.iter().map(columns::run).collect()
}

async fn tasks(connection: &mut PgConnection, keys: &[TaskKey]) -> Result<Vec<(RunId, Task)>> {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    keys.dedup();
    let found = sqlx::query(SELECT_TASKS.as_str())
        .bind(rows::column(&keys, |key| key.run.0))
        .bind(rows::column(&keys, |key| rows::int(key.task.0)))
        .fetch_all(connection)
        .await?;
    let mut found: Vec<(RunId, Task)> = found.iter().map(rows::task).collect::<Result<_>>()?;
    found.sort_by_key(|(run, task)| (*run, task.index));
    found.dedup_by_key(|(run, task)| (*run, task.index));
    Ok(found)
}

async fn tasks_of(
    connection: &mut PgConnection,
    runs: &[RunId],
    sql: &'static str,
) -> Result<Vec<(RunId, Task)>> {
    let found = sqlx::query(sql).bind(rows::column(runs, |run| run.0)).fetch_all(connection).await?;
    found.iter().map(rows::task).collect()
}

async fn context(connection: &mut PgConnection, run: RunId, tasks: &[TaskIndex]) -> Result<Option<Context>> {
    let Some(facts) = runs::facts(&mut *connection, run).await? else { return Ok(None) };
    let outputs = runs::outputs(connection, run, tasks).await?;
    Ok(Some(Context { facts, outputs }))
}

#[async_trait]
impl Transactions for Postgres {
    async fn begin(&self) -> Result<Box<dyn Transaction>> {
        Ok(Box::new(PostgresTransaction::new(begin_with(&self.pool, UNIT).await?)))
    }

    async fn ping(&self) -> Result<()> {
        Ok(self.pool.acquire().await?.ping().await?)
    }
}
