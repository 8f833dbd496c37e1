//! Rows that a query returns.

use language::config::SqlSensor;
use model::Failure;
use runtime::{Find, Look};
use serde_json::{Value, json};
use sqlx::postgres::{PgArguments, PgConnectOptions};
use sqlx::query::Query;
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, Row};

/// No query takes longer.
const LIMITS: [(&str, &str); 1] = [("statement_timeout", "30s")];

/// No more rows are taken.
const MOST: usize = 1_000;

/// The rows of a query, as JSON.
pub(super) async fn ask(sensor: &SqlSensor, cursor: Option<&Value>) -> Result<Vec<Value>, Failure> {
    fetch(sensor, cursor).await.map_err(failure)
}

async fn fetch(sensor: &SqlSensor, cursor: Option<&Value>) -> sqlx::Result<Vec<Value>> {
    let options: PgConnectOptions = sensor.url.parse()?;
    let mut connection = options.application_name("ebbflow-sensor").options(LIMITS).connect().await?;
    let mut transaction = connection.begin().await?;
    // A sensor only looks.
    sqlx::query("set transaction read only").execute(&mut *transaction).await?;
    let asked = sensor.query.trim().trim_end_matches(';');
    let wrapped = format!("select to_jsonb(found) as found from ({asked}\n) found limit {MOST}");
    let values = sensor.params.iter().chain(cursor);
    let query = values.fold(sqlx::query(AssertSqlSafe(wrapped)), bind);
    let rows = query.fetch_all(&mut *transaction).await?;
    transaction.rollback().await?;
    close(connection).await;
    rows.iter().map(|row| Ok(row.try_get::<Json<Value>, _>("found")?.0)).collect()
}

/// Says goodbye; a server that does not hear it will find out by itself.
async fn close(connection: PgConnection) {
    drop(connection.close().await);
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

/// What the database refuses it will refuse again; that it is away may pass.
fn failure(error: sqlx::Error) -> Failure {
    match &error {
        sqlx::Error::Database(refusal) => {
            let code = refusal.code().unwrap_or_default().into_owned();
            // Connections, resources, a server that stops or starts.
            let passes = ["08", "53", "57"].iter().any(|class| code.starts_with(class));
            let message = format!("the database refused: {}", refusal.message());
            if passes { Failure::transient(message) } else { Failure::permanent(message) }
        }
        sqlx::Error::Configuration(_) => Failure::permanent("the `url` is no address of a Postgres database"),
        other => Failure::transient(format!("the database cannot be asked: {other}")),
    }
}

/// The rows after the last that was seen: what a sensor has seen is the value of its cursor.
pub(super) async fn news(sensor: &SqlSensor, seen: &Value) -> Result<Look, Failure> {
    let column = sensor.cursor.as_deref().unwrap_or_default();
    let rows = ask(sensor, Some(&seen["cursor"])).await?;
    let Some(last) = rows.last() else { return Ok(Look { finds: Vec::new(), watermark: seen.clone() }) };
    let Some(cursor) = last.get(column).filter(|cursor| !cursor.is_null()) else {
        return Err(Failure::permanent(format!("the rows have no column `{column}` to go on from")));
    };
    let watermark = json!({ "cursor": cursor });
    let text = cursor.as_str().map_or_else(|| cursor.to_string(), str::to_owned);
    let data = json!({"count": rows.len(), "cursor": cursor, "rows": rows});
    let event = super::event("sql", column, text, data);
    Ok(Look { finds: vec![Find { event, watermark: watermark.clone() }], watermark })
}
