//! What a database was asked to do: the statements, by `pg_stat_statements`, and the server's own counters.

use sqlx::FromRow;

use crate::{Gauge, Result};

/// A statement and how often it was made.
#[derive(Clone, PartialEq, Debug, FromRow)]
pub struct Statement {
    /// Its text, with parameters in place of values.
    pub query: String,
    /// How often it was made.
    pub calls: i64,
    /// How many rows it gave back or changed in all.
    pub rows: i64,
    /// How long it took in all, in milliseconds.
    pub total_ms: f64,
}

/// What a database and its server have done so far.
#[derive(Clone, Copy, PartialEq, Debug, Default, FromRow)]
pub struct Counters {
    /// Transactions that were committed in the database, those that only read among them.
    pub commits: i64,
    /// Transactions that were undone.
    pub rollbacks: i64,
    /// How often the server's log was written through to the disk.
    pub syncs: i64,
}

impl Counters {
    /// What was done since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            commits: self.commits - earlier.commits,
            rollbacks: self.rollbacks - earlier.rollbacks,
            syncs: self.syncs - earlier.syncs,
        }
    }
}

impl Gauge {
    /// Begins to count statements anew. Answers whether they can be counted here.
    pub async fn count_statements(&self) -> Result<bool> {
        if sqlx::query("create extension if not exists pg_stat_statements").execute(&self.pool).await.is_err()
        {
            return Ok(false);
        }
        // Without the preloaded library there is an extension that only complains.
        Ok(sqlx::query("select pg_stat_statements_reset()").execute(&self.pool).await.is_ok())
    }

    /// The statements that were made since then in this database, the longest in all first. Those that this crate
    /// makes while it looks bear a mark and are left out.
    pub async fn statements(&self) -> Result<Vec<Statement>> {
        let select = "
            select query, calls, rows, total_exec_time as total_ms
              from pg_stat_statements
             where dbid = (select oid from pg_database where datname = current_database())
               and query not like '%/* gauge */%' and query not like '%pg_stat_statements%'
             order by total_exec_time desc";
        Ok(sqlx::query_as(select).fetch_all(&self.pool).await?)
    }

    /// How many statements this crate made meanwhile, each a transaction of its own.
    pub async fn own_statements(&self) -> Result<i64> {
        let select = "
            select coalesce(sum(calls), 0)::bigint from pg_stat_statements
             where dbid = (select oid from pg_database where datname = current_database())
               and query like '%/* gauge */%'";
        Ok(sqlx::query_scalar(select).fetch_one(&self.pool).await?)
    }

    /// The server's counters. They come late from sessions that are idle: for exact ones, these must have ended.
    pub async fn counters(&self, database: &str) -> Result<Counters> {
        let select = "
            /* gauge */ select xact_commit as commits, xact_rollback as rollbacks,
                               (select wal_sync from pg_stat_wal) as syncs
              from pg_stat_database where datname = $1";
        Ok(sqlx::query_as(select).bind(database).fetch_one(&self.pool).await?)
    }
}
