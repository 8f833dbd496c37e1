//! A database that is there for a while.

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use uuid::Uuid;

use crate::Result;

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
