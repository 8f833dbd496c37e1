//! Workers: what they report about themselves, and the attempts that they hold.

use auth::Permission;
use model::{Instant, WorkerCommand, WorkerFacts, WorkerId};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::types::Json;
use sqlx::{Postgres, Row};
use store::{Bounded, DEAD_WORKER_TTL, MAX_PAGE_BYTES, bounded, rows};
use uuid::Uuid;

use crate::limits::claimed;
use crate::{ClaimedTask, Listing, Reader, Result, listing};

/// The maximum number of attempts that are read of one worker, and of all workers on a page.
const MAX_HELD: i64 = 100;
const MAX_HELD_ON_PAGE: i64 = 1_000;

/// The workers that a caller may see: all of them with a permission in every tenant, otherwise those that lease for the
/// caller's tenant.
#[derive(Clone, Debug)]
pub struct Workers {
    reader: Reader,
    sees_all: bool,
}

/// A worker and the attempts that it holds.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkerRecord {
    /// The id that it registered with.
    pub id: WorkerId,
    /// The facts that it reported about itself, if any.
    pub facts: Option<WorkerFacts>,
    /// The time of its last heartbeat, by its own clock.
    pub heartbeat_at: Instant,
    /// The command that it was given, if it was given one.
    pub command: Option<WorkerCommand>,
    /// When it was declared dead, if it was.
    pub dead_at: Option<Instant>,
    /// The number of attempts that it has ended, if it is a remote worker.
    pub tasks_done: i64,
    /// The number of attempts that it holds, of the tenants that the caller sees.
    pub holding: i64,
    /// The attempts that it holds of the caller's tenant, in key order; at most 100.
    pub holds: Vec<ClaimedTask>,
}

/// The workers of one queue, and what waits for them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueWorkers {
    /// The name of the queue; none for workers that take whatever is pushed to them.
    pub queue: Option<String>,
    /// Workers that are alive and have no command to stop.
    pub workers: i64,
    /// Workers that have a command to stop.
    pub draining: i64,
    /// Workers that died within the last day.
    pub dead: i64,
    /// The slots of the workers that are alive and have reported them.
    pub slots: i64,
    /// The attempts that workers hold.
    pub holding: i64,
    /// The attempts that remote workers have ended.
    pub tasks_done: i64,
    /// The tasks that wait for a remote worker.
    pub offered: i64,
}

impl Reader {
    /// Reads workers, for a caller with this permission in the whole tenant, or in every tenant.
    pub fn workers(&self, permission: Permission) -> Result<Workers> {
        let sees_all = self.caller.may_everywhere(permission);
        if !sees_all {
            self.caller.check_tenant(permission)?;
        }
        Ok(Workers { reader: self.clone(), sees_all })
    }
}

impl Workers {
    /// The rows of a statement, which end early if they are large. In the role of a tenant, the database leaves out the
    /// workers of others.
    async fn fetch(&self, query: Query<'_, Postgres, PgArguments>) -> Result<Bounded<PgRow>> {
        Ok(match self.sees_all {
            true => bounded::rows(query.fetch(self.reader.all_tenants()), MAX_PAGE_BYTES).await?,
            false => {
                let mut connection = self.reader.connection().await?;
                bounded::rows(query.fetch(&mut *connection), MAX_PAGE_BYTES).await?
            }
        })
    }

    /// The workers that are known at `now`, by id, after the given one. A page of workers with much to say ends early.
    pub async fn list(
        &self,
        now: Instant,
        after: Option<WorkerId>,
        limit: u32,
    ) -> Result<Listing<WorkerRecord, WorkerId>> {
        let query = sqlx::query(include_str!("../queries/list_workers.sql"))
            .bind(after.map(|worker| worker.0))
            .bind(listing::rows(limit))
            .bind(now - DEAD_WORKER_TTL);
        let found = self.fetch(query).await?.try_map(|row| worker(&row))?;
        let mut page = Listing::bounded(found, limit, |worker: &WorkerRecord| worker.id);
        self.add_held(&mut page.items).await?;
        Ok(page)
    }

    async fn add_held(&self, workers: &mut [WorkerRecord]) -> Result<()> {
        let query = sqlx::query(include_str!("../queries/list_held_attempts.sql"))
            .bind(workers.iter().map(|worker| worker.id.0).collect::<Vec<_>>())
            .bind(self.reader.tenant().0)
            .bind(MAX_HELD)
            .bind(MAX_HELD_ON_PAGE);
        for row in self.fetch(query).await?.items {
            let Some(task) = claimed(&row)? else { continue };
            let holder = workers.iter_mut().find(|worker| worker.id == task.held.worker);
            holder.into_iter().for_each(|worker| worker.holds.push(task));
        }
        Ok(())
    }

    /// One worker, if it is known at `now`.
    pub async fn find(&self, now: Instant, id: WorkerId) -> Result<Option<WorkerRecord>> {
        let before = id.0.as_u128().checked_sub(1).map(|before| WorkerId(Uuid::from_u128(before)));
        Ok(self.list(now, before, 1).await?.items.pop().filter(|found| found.id == id))
    }

    /// The workers of each queue at `now`, and what waits for them.
    pub async fn count(&self, now: Instant) -> Result<Vec<QueueWorkers>> {
        let query = sqlx::query(include_str!("../queries/count_workers.sql")).bind(now - DEAD_WORKER_TTL);
        let found = self.fetch(query).await?;
        found.items.iter().map(queue_workers).collect()
    }
}

fn worker(row: &PgRow) -> store::Result<WorkerRecord> {
    let facts = match row.try_get("function")? {
        Some(function) => Some(WorkerFacts {
            function,
            queue: row.try_get("queue")?,
            host: row.try_get("host")?,
            version: row.try_get("version")?,
            since: row.try_get("since")?,
            breakers: row
                .try_get::<Option<Json<_>>, _>("breakers")?
                .map(|Json(open)| open)
                .unwrap_or_default(),
            remote: row.try_get::<Option<Json<_>>, _>("remote")?.map(|Json(remote)| remote),
        }),
        None => None,
    };
    let (heartbeat_at, command) = (row.try_get("heartbeat_at")?, rows::worker_command(row)?);
    Ok(WorkerRecord {
        id: WorkerId(row.try_get("id")?),
        facts,
        heartbeat_at,
        command,
        dead_at: row.try_get("dead_at")?,
        tasks_done: row.try_get("tasks_done")?,
        holding: row.try_get("holding")?,
        holds: Vec::new(),
    })
}

fn queue_workers(row: &PgRow) -> Result<QueueWorkers> {
    Ok(QueueWorkers {
        queue: row.try_get("queue")?,
        workers: row.try_get("workers")?,
        draining: row.try_get("draining")?,
        dead: row.try_get("dead")?,
        slots: row.try_get("slots")?,
        holding: row.try_get("holding")?,
        tasks_done: row.try_get("tasks_done")?,
        offered: row.try_get("offered")?,
    })
}
