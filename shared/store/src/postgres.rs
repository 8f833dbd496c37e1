//! The store on Postgres. SQL lives below this module and nowhere else: one module per aggregate, statements
//! of more than a dozen lines in `queries/`.

mod admission;
mod attempts;
mod backfills;
mod beginning;
mod change_feed;
mod columns;
mod concurrency;
mod connecting;
mod dead_letters;
mod definitions;
mod inspection;
mod items;
mod load;
mod login;
mod maintenance;
mod new_runs;
mod outbox;
mod partitions;
mod picking;
mod reading;
mod retention;
pub mod rows;
mod run_views;
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
mod workflows;

use model::TenantId;
use sqlx::migrate::Migrator;
use sqlx::postgres::PgPool;

use crate::Result;

pub use self::reading::TenantConnection;

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
    /// The tenant whose rows [`reading`](Self::reading) sees; all of them for the engine.
    tenant: Option<TenantId>,
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
