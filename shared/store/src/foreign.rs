//! Asking somebody else's Postgres for rows: nothing of ours lies there, and nothing is changed. It stands here since
//! nobody but this crate speaks SQL.

use serde_json::Value;
use sqlx::postgres::{PgArguments, PgConnectOptions};
use sqlx::query::Query;
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};

use crate::Result;

/// No query takes longer.
const LIMITS: [(&str, &str); 1] = [("statement_timeout", "30s")];

/// No more rows are taken.
const MOST: usize = 1_000;

/// The rows of a query, as JSON objects, with values bound to `$1` and so on. It is asked in a transaction that can only
/// read.
pub async fn query_foreign<'v>(
    url: &str,
    query: &str,
    values: impl Iterator<Item = &'v Value>,
) -> Result<Vec<Value>> {
    let options: PgConnectOptions = url.parse()?;
    let mut connection = options.application_name("ebbflow-sensor").options(LIMITS).connect().await?;
    let mut transaction = connection.begin().await?;
    sqlx::query("set transaction read only").execute(&mut *transaction).await?;
    let asked = query.trim().trim_end_matches(';');
    let wrapped = format!("select to_jsonb(found) as found from ({asked}\n) found limit {MOST}");
    let query = values.fold(sqlx::query(AssertSqlSafe(wrapped)), bind);
    let rows = query.fetch_all(&mut *transaction).await?;
    transaction.rollback().await?;
    // A server that does not hear goodbye will find out by itself.
    drop(connection.close().await);
    rows.iter().map(|row| Ok(row.try_get::<Json<Value>, _>("found")?.0)).collect()
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
