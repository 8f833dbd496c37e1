//! The store on Postgres. SQL lives below this module and nowhere else: one module per aggregate, statements
//! of more than a dozen lines in `queries/`.

mod admission;
mod attempts;
mod backfills;
mod beginning;
pub mod bounded;
mod breakers;
mod columns;
mod concurrency;
mod connecting;
mod dead_letters;
mod definitions;
mod inspection;
mod items;
mod labels;
mod load;
mod login;
mod maintenance;
mod new_runs;
mod offers;
mod outbox;
mod partitions;
mod reading;
mod retention;
pub mod rows;
mod runs;
mod saves;
mod schedules;
mod shares;
mod signals;
mod slots;
mod statements;
mod tenants;
mod timers;
mod transaction;
mod triggers;
mod workers;

use sqlx::migrate::Migrator;
use sqlx::postgres::PgPool;

use crate::Result;

pub use self::connecting::Connections;
pub use self::reading::TenantConnection;

/// Reads that the ledger and people share, each over a connection: the engine's own, or one in a tenant's role.
pub mod select {
    pub use super::attempts::{attempts, log};
    pub use super::backfills::{backfill, backfill_progress, backfills};
    pub use super::breakers::breakers;
    pub use super::concurrency::members as concurrency_group;
    pub use super::dead_letters::{dead_letter, dead_letters};
    pub use super::definitions::{numbered_version, workflow};
    pub use super::runs::{events, item, listed_runs, listed_tasks, outputs, run, tasks};
    pub use super::schedules::schedules;
    pub use super::slots::{limit_of, limits, slot_wait};
    pub use super::triggers::{trigger, trigger_events, triggers};
    pub use super::workers::served_queues;
}

/// The schema, step by step.
static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

/// The statements that are put together from lists of columns: tests prepare and plan them with all others.
#[doc(hidden)]
pub fn generated_statements() -> Vec<&'static str> {
    statements::all()
}

/// All state in a Postgres database.
#[derive(Clone, Debug)]
pub struct Postgres {
    pool: PgPool,
}

impl Postgres {
    /// The connections, for what keeps tables of its own in the same database.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Begins a transaction that ends with this value unless it is committed.
    pub async fn transaction(&self) -> Result<sqlx::Transaction<'static, sqlx::Postgres>> {
        beginning::begin(&self.pool).await
    }
}
