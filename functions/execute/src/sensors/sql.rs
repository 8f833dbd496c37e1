//! Sensors of rows that a query returns.

use host::EgressPolicy;
use host::egress::Blocked;
use language::config::SqlSensor;
use model::Failure;
use runtime::{Find, Poll};
use serde_json::{Value, json};
use store::{ForeignConnection, ForeignDatabase, Listening};

/// The rows of a query, as JSON.
pub(super) async fn query(
    sensor: &SqlSensor,
    cursor: Option<&Value>,
    egress: &EgressPolicy,
) -> Result<Vec<Value>, Failure> {
    let connection = connect(&sensor.url, egress).await?;
    let values = sensor.params.iter().chain(cursor);
    connection.query(&sensor.query, values).await.map_err(failed)
}

/// Connects to an address that the policy allows.
async fn connect(url: &str, egress: &EgressPolicy) -> Result<ForeignConnection, Failure> {
    let blocked = |blocked: Blocked| Failure::permanent(format!("the query was not sent: {blocked}"));
    let database = ForeignDatabase::of(url).map_err(failed)?;
    let connected = match database.listening() {
        Listening::Socket(folder) => {
            egress.check_socket(&folder).map_err(blocked)?;
            database.connect_to_socket().await
        }
        Listening::Host(host, port) => {
            let addresses = egress.resolve(&host, port).await;
            let addresses = addresses.map_err(|error| match error.downcast() {
                Ok(reason) => blocked(reason),
                Err(error) => Failure::transient(format!("cannot resolve `{host}`: {error}")),
            })?;
            database.connect_to(&addresses).await
        }
    };
    connected.map_err(failed)
}

fn failed(error: store::Error) -> Failure {
    match error {
        // The database would reject the query again; an outage passes.
        store::Error::Database(_)
        | store::Error::NotPrepared(_)
        | store::Error::TooLarge
        | store::Error::Unreadable { .. } => Failure::permanent(error.to_string()),
        store::Error::Unavailable(_) | store::Error::Conflict => Failure::transient(error.to_string()),
    }
}

/// Finds rows after the watermark, which is the last value of the cursor column.
pub(super) async fn poll(
    sensor: &SqlSensor,
    watermark: &Value,
    egress: &EgressPolicy,
) -> Result<Poll, Failure> {
    let column = sensor.cursor.as_deref().unwrap_or_default();
    let rows = query(sensor, Some(&watermark["cursor"]), egress).await?;
    let Some(last) = rows.last() else {
        return Ok(Poll { finds: Vec::new(), watermark: watermark.clone() });
    };
    let Some(cursor) = last.get(column).filter(|cursor| !cursor.is_null()) else {
        return Err(Failure::permanent(format!("the rows have no cursor column `{column}`")));
    };
    let watermark = json!({ "cursor": cursor });
    let text = cursor.as_str().map_or_else(|| cursor.to_string(), str::to_owned);
    let data = json!({"count": rows.len(), "cursor": cursor, "rows": rows});
    let event = super::event("sql", column, text, data);
    Ok(Poll { finds: vec![Find { event, watermark: watermark.clone() }], watermark })
}
