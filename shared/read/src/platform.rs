//! What belongs to no tenant: dead letters, workers and the database itself.

use auth::Permission;
use model::{Instant, WorkerCommand, WorkerFacts, WorkerId};
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use store::{DeadLetter, DeadLetterFilter, Postgres, rows, select};
use uuid::Uuid;

use crate::limits::claimed;
use crate::{ClaimedTask, Listing, Reader, Result, listing};

/// Reads about the whole instance. It exists only for callers with a permission in every tenant.
#[derive(Clone, Debug)]
pub struct Platform {
    reader: Reader,
}

/// A worker and the attempts that it holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerRecord {
    /// The id that it registered with.
    pub id: WorkerId,
    /// What it reported about itself, if it did.
    pub facts: Option<WorkerFacts>,
    /// The time of its last heartbeat, by its own clock.
    pub heartbeat_at: Instant,
    /// The command that it was given, if it was given one.
    pub command: Option<WorkerCommand>,
    /// The attempts that it holds of the caller's tenant, in key order.
    pub holds: Vec<ClaimedTask>,
}

/// The state of the database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Health {
    /// The version of the server: 150004 for 15.4.
    pub version: u32,
    /// Whether its schema is the one that this program knows.
    pub schema_is_current: bool,
    /// The time by its own clock.
    pub clock: Instant,
    /// How many connections are open.
    pub connections: u32,
    /// How many there may be.
    pub max_connections: u32,
    /// When the oldest open transaction began.
    pub oldest_transaction: Option<Instant>,
    /// Tables that this program may not write to.
    pub forbidden: Vec<String>,
}

impl Reader {
    /// Reads about the whole instance, for a caller with this permission in every tenant.
    pub fn platform(&self, permission: Permission) -> Result<Platform> {
        self.caller.check_instance(permission)?;
        Ok(Platform { reader: self.clone() })
    }
}

impl Platform {
    /// The dead letters that pass a filter, newest first.
    pub async fn dead_letters(
        &self,
        filter: &DeadLetterFilter,
    ) -> Result<Listing<DeadLetter, (Instant, String)>> {
        let rows = DeadLetterFilter { limit: filter.limit.saturating_add(1), ..filter.clone() };
        let found = select::dead_letters(self.reader.all_tenants(), &rows, store::MAX_PAGE_BYTES).await?;
        Ok(Listing::bounded(found, filter.limit, |letter: &DeadLetter| (letter.at, letter.id.clone())))
    }

    /// The dead letter with that id.
    pub async fn dead_letter(&self, id: &str) -> Result<DeadLetter> {
        let found = select::dead_letter(self.reader.all_tenants(), id).await?;
        Ok(found.ok_or_else(|| auth::Denied::NotFound(format!("dead letter `{id}`")))?)
    }

    /// The known workers, by id, after the given one.
    pub async fn workers(
        &self,
        after: Option<WorkerId>,
        limit: u32,
    ) -> Result<Listing<WorkerRecord, WorkerId>> {
        let found = sqlx::query(include_str!("../queries/list_workers.sql"))
            .bind(self.reader.tenant().0)
            .bind(after.map(|worker| worker.0))
            .bind(listing::rows(limit))
            .fetch_all(self.reader.all_tenants())
            .await?;
        let mut workers: Vec<WorkerRecord> = Vec::new();
        for row in &found {
            let id = WorkerId(row.try_get("id")?);
            if workers.last().is_none_or(|last| last.id != id) {
                workers.push(worker(row, id)?);
            }
            if let (Some(held), Some(last)) = (claimed(row)?, workers.last_mut()) {
                last.holds.push(held);
            }
        }
        Ok(Listing::new(workers, limit, |worker: &WorkerRecord| worker.id))
    }

    /// One worker, if it is known.
    pub async fn worker(&self, id: WorkerId) -> Result<Option<WorkerRecord>> {
        let before = id.0.as_u128().checked_sub(1).map(|before| WorkerId(Uuid::from_u128(before)));
        Ok(self.workers(before, 1).await?.items.pop().filter(|found| found.id == id))
    }

    /// The state of the database.
    pub async fn health(&self) -> Result<Health> {
        let row = sqlx::query(include_str!("../queries/read_health.sql"))
            .fetch_one(self.reader.all_tenants())
            .await?;
        let migrated: Option<i64> = row.try_get("migrated")?;
        Ok(Health {
            version: rows::number(&row, "version")?,
            schema_is_current: migrated == Postgres::newest_migration(),
            clock: row.try_get("clock")?,
            connections: rows::number(&row, "connections")?,
            max_connections: rows::number(&row, "max_connections")?,
            oldest_transaction: row.try_get("oldest_transaction")?,
            forbidden: row.try_get("forbidden")?,
        })
    }
}

fn worker(row: &PgRow, id: WorkerId) -> Result<WorkerRecord> {
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
        }),
        None => None,
    };
    let (heartbeat_at, command) = (row.try_get("heartbeat_at")?, rows::worker_command(row)?);
    Ok(WorkerRecord { id, facts, heartbeat_at, command, holds: Vec::new() })
}
