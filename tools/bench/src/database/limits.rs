//! The limits of the machine's Postgres.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;
use uuid::Uuid;

use super::Database;

/// The throughput of a Postgres without other load, per second.
pub(crate) struct Limits {
    /// Single-row updates, committed one by one over one connection.
    pub(crate) commits_alone: f64,
    /// The same over as many connections as Ebbflow has.
    pub(crate) commits: f64,
    pub(crate) rows_in_hundreds: f64,
    pub(crate) rows_in_thousands: f64,
}

const TABLES: &str = "
    create table updated (id integer primary key, n bigint not null) with (fillfactor = 50);
    insert into updated select id, 0 from generate_series(0, 999) id;
    create table inserted (run uuid, idx integer, state text, primary key (run, idx));
";

impl Database {
    /// Measures each limit for `span`.
    pub(crate) async fn limits(&self, connections: u32, span: Duration) -> Result<Limits> {
        sqlx::raw_sql(TABLES).execute(&self.pool).await?;
        Ok(Limits {
            commits_alone: self.commits(1, span).await?,
            commits: self.commits(connections, span).await?,
            rows_in_hundreds: self.rows(100, span).await?,
            rows_in_thousands: self.rows(1_000, span).await?,
        })
    }

    async fn commits(&self, connections: u32, span: Duration) -> Result<f64> {
        let started = Instant::now();
        let done = try_join_all((0..connections).map(|row| self.update_for(row, started, span))).await?;
        Ok(f64::from(done.into_iter().sum::<u32>()) / started.elapsed().as_secs_f64())
    }

    /// Each connection updates its own row, so that none waits for another's lock.
    async fn update_for(&self, row: u32, started: Instant, span: Duration) -> Result<u32> {
        let mut connection = self.pool.acquire().await?;
        let mut done = 0;
        while started.elapsed() < span {
            let update = sqlx::query("update updated set n = n + 1 where id = $1").bind(row as i32);
            update.execute(&mut *connection).await?;
            done += 1;
        }
        Ok(done)
    }

    async fn rows(&self, batch: i32, span: Duration) -> Result<f64> {
        let mut connection = self.pool.acquire().await?;
        let (started, mut done) = (Instant::now(), 0);
        let (indexes, states) = ((0..batch).collect::<Vec<i32>>(), vec!["pending"; batch as usize]);
        while started.elapsed() < span {
            let runs = vec![Uuid::now_v7(); batch as usize];
            let insert = "insert into inserted select * from unnest($1::uuid[], $2::int[], $3::text[])";
            let insert = sqlx::query(insert).bind(runs).bind(&indexes).bind(&states);
            insert.execute(&mut *connection).await?;
            done += batch;
        }
        Ok(f64::from(done) / started.elapsed().as_secs_f64())
    }
}
