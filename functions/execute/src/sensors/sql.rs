//! Sensors of rows that a query returns.

use language::config::SqlSensor;
use model::Failure;
use runtime::{Find, Poll};
use serde_json::{Value, json};

/// The rows of a query, as JSON.
pub(super) async fn query(sensor: &SqlSensor, cursor: Option<&Value>) -> Result<Vec<Value>, Failure> {
    let values = sensor.params.iter().chain(cursor);
    store::query_foreign(&sensor.url, &sensor.query, values).await.map_err(|error| match error {
        // The database would reject the query again; an outage passes.
        store::Error::Database(_) | store::Error::NotPrepared(_) | store::Error::Unreadable { .. } => {
            Failure::permanent(error.to_string())
        }
        store::Error::Unavailable(_) | store::Error::Conflict => Failure::transient(error.to_string()),
    })
}

/// Finds rows after the watermark, which is the last value of the cursor column.
pub(super) async fn poll(sensor: &SqlSensor, watermark: &Value) -> Result<Poll, Failure> {
    let column = sensor.cursor.as_deref().unwrap_or_default();
    let rows = query(sensor, Some(&watermark["cursor"])).await?;
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
