//! Reads of data that belongs to no tenant: dead letters and the database itself.

use auth::Permission;
use model::Instant;
use sqlx::Row;
use store::{DeadLetter, DeadLetterFilter, Postgres, rows, select};

use crate::{Listing, Reader, Result};

/// Reads about the whole instance. It exists only for callers with a permission in every tenant.
#[derive(Clone, Debug)]
pub struct Platform {
    reader: Reader,
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
