//! A database that is there for a while.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tokio::time::interval;
use uuid::Uuid;

use crate::{Gauge, Result};

/// A database of one's own on some server; gone once it is dropped by [`Scratch::drop`].
#[derive(Clone, Debug)]
pub struct Scratch {
    server: PgConnectOptions,
    name: String,
}

impl Scratch {
    /// Makes one on the server of `url`.
    pub async fn create(url: &str) -> Result<Self> {
        let server: PgConnectOptions = url.parse()?;
        let scratch = Self { server, name: format!("ebb_bench_{}", Uuid::now_v7().simple()) };
        scratch.tell(format!("create database {}", scratch.name)).await?;
        Ok(scratch)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where to connect to it.
    pub fn url(&self) -> String {
        self.server.clone().database(&self.name).to_url_lossy().to_string()
    }

    /// Removes it with all that is in it, and ends the sessions in it.
    pub async fn drop(self) -> Result<()> {
        self.tell(format!("drop database {} with (force)", self.name)).await
    }

    /// The name is made of letters and digits by ourselves.
    async fn tell(&self, statement: String) -> Result<()> {
        let mut connection = PgConnection::connect_with(&self.server).await?;
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await?;
        Ok(connection.close().await?)
    }
}

impl Gauge {
    /// Returns once nobody is connected to a database of this server any more, or after a few seconds.
    pub async fn until_left(&self, database: &str) -> Result<()> {
        let mut ticks = interval(Duration::from_millis(20));
        for _ in 0..200 {
            let select = "/* gauge */ select exists (select from pg_stat_activity where datname = $1)";
            if !sqlx::query_scalar::<_, bool>(select).bind(database).fetch_one(&self.pool).await? {
                break;
            }
            ticks.tick().await;
        }
        Ok(())
    }
}
