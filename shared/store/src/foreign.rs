//! Queries a Postgres of the user: it holds none of our state, and nothing in it is changed. The query is here because only
//! this crate speaks SQL; who may be asked is for the caller to decide, before and by address.

use std::net::SocketAddr;
use std::path::PathBuf;

use futures::TryStreamExt;
use serde_json::Value;
use sqlx::postgres::{PgArguments, PgConnectOptions};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, Row};

use crate::{Error, Result};

/// The server ends a query that takes longer.
const STATEMENT_TIMEOUT: [(&str, &str); 1] = [("statement_timeout", "30s")];

/// The maximum number of rows that are read.
const MAX_ROWS: usize = 1_000;

/// The maximum length of all rows together, as JSON. The database sends no row that is longer.
const MAX_BYTES: usize = 1024 * 1024;

/// A database of the user, by its URL.
#[derive(Clone, Debug)]
pub struct ForeignDatabase(PgConnectOptions);

/// Where a database listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Listening {
    /// On a port of a host, which is a name or an address.
    Host(String, u16),
    /// On a unix socket in this folder.
    Socket(PathBuf),
}

impl ForeignDatabase {
    /// The database of a URL.
    pub fn of(url: &str) -> Result<Self> {
        let options: PgConnectOptions = url.parse()?;
        Ok(Self(options.application_name("ebbflow-sensor").options(STATEMENT_TIMEOUT)))
    }

    /// Where it listens, as its URL says.
    pub fn listening(&self) -> Listening {
        let host = self.0.get_host();
        match self.0.get_socket() {
            Some(folder) => Listening::Socket(folder.clone()),
            None if host.starts_with('/') => Listening::Socket(host.into()),
            None => Listening::Host(host.to_owned(), self.0.get_port()),
        }
    }

    /// Connects to the first of these addresses that accepts, instead of resolving the name again: it may resolve to another
    /// address by now.
    pub async fn connect_to(&self, addresses: &[SocketAddr]) -> Result<ForeignConnection> {
        let mut failure = sqlx::Error::Io(std::io::ErrorKind::AddrNotAvailable.into());
        for address in addresses {
            let options = self.0.clone().host(&address.ip().to_string()).port(address.port());
            match options.connect().await {
                Ok(connection) => return Ok(ForeignConnection(connection)),
                Err(error) => failure = error,
            }
        }
        Err(failure.into())
    }

    /// Connects to its unix socket.
    pub async fn connect_to_socket(&self) -> Result<ForeignConnection> {
        Ok(ForeignConnection(self.0.connect().await?))
    }
}

/// A connection to a database of the user.
#[derive(Debug)]
pub struct ForeignConnection(PgConnection);

impl ForeignConnection {
    /// The rows of a query, as JSON objects, with values bound to `$1` and so on. The query runs in a transaction that can
    /// only read. It fails once there is more than `MAX_BYTES` of them; the connection is then closed, whatever else comes.
    pub async fn query<'v>(
        mut self,
        query: &str,
        values: impl Iterator<Item = &'v Value>,
    ) -> Result<Vec<Value>> {
        let mut transaction = self.0.begin().await?;
        sqlx::query("set transaction read only").execute(&mut *transaction).await?;
        let query = query.trim().trim_end_matches(';');
        let wrapped = format!(
            "select case when octet_length(found) <= {MAX_BYTES} then found end as found
             from (select to_jsonb(found)::text as found from ({query}\n) found limit {MAX_ROWS}) texts"
        );
        let query = values.fold(sqlx::query(AssertSqlSafe(wrapped)), bind);
        let (mut found, mut left) = (Vec::new(), MAX_BYTES);
        let mut rows = query.fetch(&mut *transaction);
        while let Some(row) = rows.try_next().await? {
            let text: Option<&str> = row.try_get("found")?;
            let text = text.filter(|text| text.len() <= left).ok_or_else(too_large)?;
            left -= text.len();
            found.push(serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?);
        }
        drop(rows);
        transaction.rollback().await?;
        // The server notices a lost connection by itself.
        drop(self.0.close().await);
        Ok(found)
    }
}

fn too_large() -> Error {
    unreadable(format!(
        "its rows have more than {MAX_BYTES} bytes of JSON; select fewer of them, or fewer columns"
    ))
}

fn unreadable(why: String) -> Error {
    Error::Unreadable { what: "result of the query", why }
}

fn bind<'q>(
    query: Query<'q, sqlx::Postgres, PgArguments>,
    value: &Value,
) -> Query<'q, sqlx::Postgres, PgArguments> {
    match value {
        Value::Null => query.bind(None::<String>),
        Value::Bool(flag) => query.bind(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => query.bind(whole),
            None => query.bind(number.as_f64()),
        },
        Value::String(text) => query.bind(text.clone()),
        other => query.bind(other.to_string()),
    }
}
