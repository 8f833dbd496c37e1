//! Limits and circuit breakers, and the tasks that hold or wait for their slots.

use auth::Permission;
use model::{Child, Instant, Limit, RunId, TaskIndex, TaskState, VersionId, WorkerId};
use sqlx::Row;
use sqlx::postgres::PgRow;
use store::{BreakerRecord, Claim, LimitRecord, rows, select, storable};
use uuid::Uuid;

use crate::{Listing, Reader, Result};

/// A task that holds its slots, or waits for one.
#[derive(Clone, PartialEq, Debug)]
pub struct Contender {
    /// The run that it belongs to.
    pub run: RunId,
    /// The workflow of the run.
    pub workflow: String,
    /// The run's version, whose graph says which limits the task needs.
    pub version: VersionId,
    /// The index of the task in that version's graph.
    pub task: TaskIndex,
    /// The task's position in its fan-out, if it is a child of one.
    pub child: Option<Child>,
    /// The current state of the task.
    pub state: TaskState,
    /// The number of the attempt.
    pub attempt: u32,
    /// Since when it holds its slots, or waits.
    pub since: Instant,
    /// The worker that holds it, if one does.
    pub worker: Option<WorkerId>,
}

/// An attempt that a worker holds, with what the name of its task follows from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClaimedTask {
    /// The attempt that the worker holds.
    pub held: Claim,
    /// The version of its run.
    pub version: VersionId,
    /// The task's position in its fan-out, if it is a child of one.
    pub child: Option<model::Child>,
    /// When the attempt was claimed.
    pub started_at: Option<model::Instant>,
}

/// A limit's position in a list: its kind and its name.
pub type LimitCursor = (String, String);

/// Limits and queues, and the tasks that hold or wait for their slots.
#[derive(Clone, Copy, Debug)]
pub struct Slots<'a> {
    pub(crate) reader: &'a Reader,
}

impl Slots<'_> {
    /// The limits of some kinds that tasks of the tenant have needed a slot of, by kind and name.
    pub async fn limits(
        &self,
        kinds: &[&str],
        after: Option<&LimitCursor>,
        limit: u32,
    ) -> Result<Listing<LimitRecord, LimitCursor>> {
        self.reader.caller.check_tenant(Permission::Read)?;
        let mut connection = self.reader.connection().await?;
        let after = after.map(|(kind, name)| (kind.as_str(), name.as_str()));
        let (tenant, rows) = (self.reader.tenant(), limit.saturating_add(1));
        let found = select::limits(&mut *connection, tenant, kinds, after, rows).await?;
        Ok(Listing::new(found, limit, position))
    }

    /// One limit of the tenant, or of a queue; none if no task has needed it and nobody has set its slots.
    pub async fn limit(&self, limit: &Limit) -> Result<Option<LimitRecord>> {
        self.reader.caller.check_tenant(Permission::Read)?;
        let mut connection = self.reader.connection().await?;
        Ok(select::limit_of(&mut *connection, limit).await?)
    }

    /// The circuit breakers of the tenant that are open, or had a failure after `since`, by id.
    pub async fn breakers(
        &self,
        since: Instant,
        after: Option<i64>,
        limit: u32,
    ) -> Result<Listing<BreakerRecord, i64>> {
        self.reader.caller.check_tenant(Permission::Read)?;
        let mut connection = self.reader.connection().await?;
        let rows = limit.saturating_add(1);
        let found = select::breakers(&mut *connection, self.reader.tenant(), since, after, rows).await?;
        Ok(Listing::new(found, limit, |record| record.breaker.id))
    }

    /// The tasks that hold their slots, of those for whose workflows the caller has a permission, oldest runs first. At
    /// most `runs` unfinished runs are examined, and `tasks` of their tasks returned.
    pub async fn holders(&self, permission: Permission, runs: u32, tasks: u32) -> Result<Vec<Contender>> {
        self.reader.caller.check_some(permission)?;
        let holds_slots = TaskState::ALL.into_iter().filter(|state| state.holds_slots());
        let found = sqlx::query(include_str!("../queries/list_holders.sql"))
            .bind(self.reader.tenant().0)
            .bind(i64::from(runs))
            .bind(i64::from(tasks))
            .bind(holds_slots.map(TaskState::name).collect::<Vec<_>>())
            .fetch_all(&mut *self.reader.connection().await?)
            .await?;
        self.permitted(permission, &found)
    }

    /// The tasks of the tenant that wait for a slot of a limit, in the order in which they get one.
    pub async fn waiters(&self, limit: &Limit, count: u32) -> Result<Vec<Contender>> {
        self.reader.caller.check_some(Permission::Read)?;
        let found = sqlx::query(include_str!("../queries/list_slot_waiters.sql"))
            .bind(limit.kind())
            .bind(limit.tenant().map_or(0, |tenant| tenant.0))
            .bind(storable(limit.name()))
            .bind(self.reader.tenant().0)
            .bind(i64::from(count))
            .fetch_all(&mut *self.reader.connection().await?)
            .await?;
        self.permitted(Permission::Read, &found)
    }

    fn permitted(&self, permission: Permission, found: &[PgRow]) -> Result<Vec<Contender>> {
        let mut contenders = Vec::with_capacity(found.len());
        for row in found {
            let workflow: String = row.try_get("workflow")?;
            if self.reader.may(permission, &workflow) {
                contenders.push(contender(row, workflow)?);
            }
        }
        Ok(contenders)
    }

    /// The attempts that a remote worker of the caller holds, by run and task.
    pub async fn held_by(&self, worker: WorkerId) -> Result<Vec<ClaimedTask>> {
        self.reader.caller.check_some(Permission::Work)?;
        let found = sqlx::query(
            "select tasks.run, tasks.idx, tasks.attempt, tasks.worker, tasks.child_of, tasks.item, tasks.started_at,
                    runs.version as run_version
               from tasks join runs on runs.id = tasks.run
              where tasks.worker = $1 and tasks.tenant = $2 order by tasks.run, tasks.idx",
        )
        .bind(worker.0)
        .bind(self.reader.tenant().0)
        .fetch_all(&mut *self.reader.connection().await?)
        .await?;
        found.iter().filter_map(|row| claimed(row).transpose()).collect()
    }
}

/// The position of a limit in a list.
pub(crate) fn position(record: &LimitRecord) -> LimitCursor {
    (record.limit.kind().to_owned(), record.limit.name().to_owned())
}

fn contender(row: &PgRow, workflow: String) -> Result<Contender> {
    Ok(Contender {
        run: RunId(row.try_get("run")?),
        workflow,
        version: VersionId(row.try_get("version")?),
        task: TaskIndex(rows::number(row, "idx")?),
        child: rows::child(row)?,
        state: rows::task_state(row)?,
        attempt: rows::number(row, "attempt")?,
        since: row.try_get("since")?,
        worker: row.try_get::<Option<Uuid>, _>("worker")?.map(WorkerId),
    })
}

/// The attempt in a row that may have none.
pub(crate) fn claimed(row: &PgRow) -> Result<Option<ClaimedTask>> {
    let Some(held) = rows::held_if_any(row)? else { return Ok(None) };
    Ok(Some(ClaimedTask {
        held,
        version: VersionId(row.try_get("run_version")?),
        child: rows::child(row)?,
        started_at: row.try_get("started_at")?,
    }))
}
