//! The database, as an operator with `psql` sees it.

mod health;
mod history;
mod limits;

use std::time::Duration;

use anyhow::Result;
use chrono::{DateTime, Utc};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, FromRow};
use tokio::time::interval;
use uuid::Uuid;

pub(crate) use health::{Ended, Health};

/// A temporary database on some server. [`Scratch::drop`] removes it.
pub(crate) struct Scratch {
    server: PgConnectOptions,
    pub(crate) name: String,
}

impl Scratch {
    pub(crate) async fn create(server: &str) -> Result<Self> {
        let scratch =
            Self { server: server.parse()?, name: format!("ebb_bench_{}", Uuid::now_v7().simple()) };
        scratch.execute(format!("create database {}", scratch.name)).await?;
        Ok(scratch)
    }

    pub(crate) fn url(&self) -> String {
        self.server.clone().database(&self.name).to_url_lossy().to_string()
    }

    pub(crate) async fn drop(self) -> Result<()> {
        self.execute(format!("drop database {} with (force)", self.name)).await
    }

    /// The only variable part of `statement` is the name, which [`Scratch::create`] made of letters and digits.
    async fn execute(&self, statement: String) -> Result<()> {
        let mut connection = PgConnection::connect_with(&self.server).await?;
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await?;
        Ok(connection.close().await?)
    }
}

/// A statement and what it cost in total.
#[derive(FromRow)]
pub(crate) struct Statement {
    pub(crate) query: String,
    pub(crate) calls: i64,
    pub(crate) rows: i64,
    pub(crate) total_ms: f64,
}

/// Totals of a database and its server.
#[derive(Clone, Copy, FromRow)]
pub(crate) struct Counters {
    pub(crate) commits: i64,
    pub(crate) rollbacks: i64,
    /// Flushes of the server's log to disk.
    pub(crate) syncs: i64,
}

impl Counters {
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            commits: self.commits - earlier.commits,
            rollbacks: self.rollbacks - earlier.rollbacks,
            syncs: self.syncs - earlier.syncs,
        }
    }
}

/// Connections to a database, in addition to those of Ebbflow. Its statements contain the comment `/* bench */`, which
/// distinguishes them from Ebbflow's.
pub(crate) struct Database {
    pool: PgPool,
}

impl Database {
    pub(crate) async fn connect(url: &str, connections: u32) -> Result<Self> {
        let options = PgPoolOptions::new().max_connections(connections).test_before_acquire(false);
        Ok(Self { pool: options.connect(url).await? })
    }

    /// The version of Postgres, such as `15.14`.
    pub(crate) async fn version(&self) -> Result<String> {
        let version: String = sqlx::query_scalar("show server_version").fetch_one(&self.pool).await?;
        Ok(version.split(' ').next().unwrap_or_default().to_owned())
    }

    pub(crate) async fn close(self) {
        self.pool.close().await;
    }

    async fn count(&self, select: &'static str) -> Result<i64> {
        Ok(sqlx::query_scalar(select).fetch_one(&self.pool).await?)
    }

    /// Waits until a database of this server has no sessions, for at most four seconds.
    pub(crate) async fn wait_until_unused(&self, database: &str) -> Result<()> {
        let mut ticks = interval(Duration::from_millis(20));
        for _ in 0..200 {
            let select = "/* bench */ select exists (select from pg_stat_activity where datname = $1)";
            if !sqlx::query_scalar::<_, bool>(select).bind(database).fetch_one(&self.pool).await? {
                break;
            }
            ticks.tick().await;
        }
        Ok(())
    }
}

impl Database {
    /// Resets the statement counters. Returns whether this Postgres counts statements.
    pub(crate) async fn reset_statements(&self) -> bool {
        let create = sqlx::query("create extension if not exists pg_stat_statements");
        // The extension exists even if its library is not preloaded; then every use of it fails.
        create.execute(&self.pool).await.is_ok()
            && sqlx::query("select pg_stat_statements_reset()").execute(&self.pool).await.is_ok()
    }

    /// Ebbflow's statements since the reset, the most expensive first.
    pub(crate) async fn statements(&self) -> Result<Vec<Statement>> {
        let select = "
            select query, calls, rows, total_exec_time as total_ms
              from pg_stat_statements
             where dbid = (select oid from pg_database where datname = current_database())
               and query not like '%/* bench */%' and query not like '%pg_stat_statements%'
             order by total_exec_time desc";
        Ok(sqlx::query_as(select).fetch_all(&self.pool).await?)
    }

    /// The number of statements that this program made since the reset, each a transaction.
    pub(crate) async fn own_statements(&self) -> Result<i64> {
        self.count(
            "select coalesce(sum(calls), 0)::bigint from pg_stat_statements
              where dbid = (select oid from pg_database where datname = current_database())
                and query like '%/* bench */%'",
        )
        .await
    }

    /// Idle sessions report late: the counters are exact once all sessions have ended.
    pub(crate) async fn counters(&self, database: &str) -> Result<Counters> {
        let select = "
            /* bench */ select xact_commit as commits, xact_rollback as rollbacks,
                               (select wal_sync from pg_stat_wal) as syncs
              from pg_stat_database where datname = $1";
        Ok(sqlx::query_as(select).bind(database).fetch_one(&self.pool).await?)
    }
}

impl Database {
    pub(crate) async fn unfinished_runs(&self) -> Result<i64> {
        self.count("/* bench */ select count(*) from runs where finished_at is null").await
    }

    /// The number of tasks that workers may lease.
    pub(crate) async fn offers(&self) -> Result<i64> {
        self.count("/* bench */ select count(*) from offers").await
    }

    /// The number of runs of a workflow that have succeeded.
    pub(crate) async fn succeeded_runs(&self, workflow: &str) -> Result<i64> {
        let select = "/* bench */ select count(*) from runs where workflow = $1 and state = 'succeeded'";
        Ok(sqlx::query_scalar(select).bind(workflow).fetch_one(&self.pool).await?)
    }

    pub(crate) async fn unsuccessful_runs(&self) -> Result<i64> {
        self.count(
            "/* bench */ select count(*) from runs where finished_at is not null and state <> 'succeeded'",
        )
        .await
    }

    pub(crate) async fn tasks_finished(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Result<i64> {
        let select = "/* bench */ select count(*) from tasks where finished_at >= $1 and finished_at < $2";
        Ok(sqlx::query_scalar(select).bind(from).bind(to).fetch_one(&self.pool).await?)
    }

    /// The duration of each run from its creation to its end, in milliseconds.
    pub(crate) async fn run_times(&self) -> Result<Vec<f64>> {
        let select = "
            /* bench */ select (extract(epoch from finished_at - created_at) * 1000)::float8
              from runs where finished_at is not null";
        Ok(sqlx::query_scalar(select).fetch_all(&self.pool).await?)
    }

    /// From the end of each task of a chain to the start and to the end of the next one, in milliseconds.
    pub(crate) async fn steps(&self) -> Result<Vec<(f64, f64)>> {
        let select = "
            /* bench */ select (extract(epoch from next.started_at - this.finished_at) * 1000)::float8,
                               (extract(epoch from next.finished_at - this.finished_at) * 1000)::float8
              from tasks this join tasks next on next.run = this.run and next.idx = this.idx + 1";
        Ok(sqlx::query_as(select).fetch_all(&self.pool).await?)
    }

    /// Moves all timers to one instant. Returns how many there are.
    pub(crate) async fn move_timers(&self, due: DateTime<Utc>) -> Result<u64> {
        let update = sqlx::query("/* bench */ update timers set wake_at = $1").bind(due);
        Ok(update.execute(&self.pool).await?.rows_affected())
    }

    /// The number of sleeping tasks that woke before an instant, and when the last one woke.
    pub(crate) async fn woken(&self, due: DateTime<Utc>) -> Result<(i64, DateTime<Utc>)> {
        let select = "
            /* bench */ select count(*) filter (where tasks.finished_at < $1), max(tasks.finished_at)
              from tasks join runs on runs.id = tasks.run where runs.workflow = 'sleepers'";
        Ok(sqlx::query_as(select).bind(due).fetch_one(&self.pool).await?)
    }
}

/// Tenants that share slots.
impl Database {
    /// Creates a tenant with the workflows of the first one.
    #[expect(clippy::disallowed_methods, reason = "a measurement is not cancelled half-way")]
    pub(crate) async fn add_tenant(&self, tenant: i32, name: &str) -> Result<()> {
        let mut transaction = self.pool.begin().await?;
        let insert = "insert into tenants (id, name, created_at) values ($1, $2, now())";
        sqlx::query(insert).bind(tenant).bind(name).execute(&mut *transaction).await?;
        for statement in [
            "insert into workflows (tenant, name, created_at, updated_at)
             select $1, name, created_at, updated_at from workflows where tenant = 1",
            "insert into versions (tenant, workflow, number, hash, definition, source, created_at, created_by)
             select $1, workflow, number, hash, definition, source, created_at, created_by
               from versions where tenant = 1",
            "update workflows set active_version = versions.id from versions
              where versions.tenant = $1 and workflows.tenant = $1 and versions.workflow = workflows.name",
        ] {
            sqlx::query(statement).bind(tenant).execute(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// The number of tasks of other tenants that started between the creation of a tenant's only run and the start of its
    /// task; none until that run has ended.
    pub(crate) async fn started_before(&self, tenant: i32) -> Result<Option<i64>> {
        let select = "
            /* bench */ select (select count(*) from tasks other
                                 where other.tenant <> $1
                                   and other.started_at between runs.created_at and tasks.started_at)
              from runs join tasks on tasks.run = runs.id
             where runs.tenant = $1 and runs.finished_at is not null";
        Ok(sqlx::query_scalar(select).bind(tenant).fetch_optional(&self.pool).await?)
    }
}
