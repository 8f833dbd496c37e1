//! Rows that a query returns.

use language::config::SqlSensor;
use model::Failure;
use runtime::{Find, Poll};
use serde_json::{Value, json};

/// The rows of a query, as JSON.
pub(super) async fn ask(sensor: &SqlSensor, cursor: Option<&Value>) -> Result<Vec<Value>, Failure> {
    let values = sensor.params.iter().chain(cursor);
    store::query_foreign(&sensor.url, &sensor.query, values).await.map_err(|error| match error {
        // What the database refuses it will refuse again; that it is away may pass.
        store::Error::Database(_) | store::Error::Unreadable { .. } => Failure::permanent(error.to_string()),
        store::Error::Unavailable(_) | store::Error::Conflict => Failure::transient(error.to_string()),
    })
}

/// The rows after the last that was seen: what a sensor has seen is the value of its cursor.
pub(super) async fn news(sensor: &SqlSensor, seen: &Value) -> Result<Poll, Failure> {
    let column = sensor.cursor.as_deref().unwrap_or_default();
    let rows = ask(sensor, Some(&seen["cursor"])).await?;
    let Some(last) = rows.last() else { return Ok(Poll { finds: Vec::new(), watermark: seen.clone() }) };
    let Some(cursor) = last.get(column).filter(|cursor| !cursor.is_null()) else {
        return Err(Failure::permanent(format!("the rows have no column `{column}` to go on from")));
    };
    let watermark = json!({ "cursor": cursor });
    let text = cursor.as_str().map_or_else(|| cursor.to_string(), str::to_owned);
    let data = json!({"count": rows.len(), "cursor": cursor, "rows": rows});
    let event = super::event("sql", column, text, data);
    Ok(Poll { finds: vec![Find { event, watermark: watermark.clone() }], watermark })
}
