//! Measuring a Postgres and the runs in it, for `ebb bench`: what the machine can do at most, what it was asked to do,
//! and how runs fared.
//!
//! This looks at the tables from outside, as an operator with `psql` would. Nothing in the product depends on it.

mod database;
mod history;
mod limits;
mod runs;
mod statements;

use sqlx::postgres::{PgPool, PgPoolOptions};

pub use database::Scratch;
pub use limits::Limits;
pub use statements::{Counters, Statement};

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database said no, or nothing.
    #[error("the database could not be measured: {0}")]
    Database(#[from] sqlx::Error),
}

/// A result of measuring.
pub type Result<T> = std::result::Result<T, Error>;

/// A look into one database from outside.
#[derive(Clone, Debug)]
pub struct Gauge {
    pool: PgPool,
}

impl Gauge {
    /// Looks into the database at `url`, with at most so many connections at a time.
    pub async fn connect(url: &str, connections: u32) -> Result<Self> {
        let options = PgPoolOptions::new().max_connections(connections).test_before_acquire(false);
        Ok(Self { pool: options.connect(url).await? })
    }

    /// Which Postgres it is, such as `15.14`.
    pub async fn version(&self) -> Result<String> {
        let version: String = sqlx::query_scalar("show server_version").fetch_one(&self.pool).await?;
        Ok(version.split(' ').next().unwrap_or_default().to_owned())
    }

    /// Lets go of all connections.
    pub async fn close(self) {
        self.pool.close().await;
    }
}
