//! The items of a fan-out's children, and their outputs.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use model::{Changes, RunId, TaskIndex};
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{PgConnection, Row};

use super::bounded::size;
use super::rows::{self, column, int, json};
use super::saves::gather;
use crate::Result;
use crate::outputs::{Outputs, only};

pub(super) async fn find(
    connection: &mut PgConnection,
    run: RunId,
    children: &[TaskIndex],
) -> Result<BTreeMap<TaskIndex, Value>> {
    if children.is_empty() {
        return Ok(BTreeMap::new());
    }
    let found = sqlx::query("select idx, item from items where run = $1 and idx = any($2)")
        .bind(run.0)
        .bind(column(children, |child| int(child.0)))
        .fetch_all(connection)
        .await?;
    let item = |row| Ok((TaskIndex(rows::number(row, "idx")?), row.try_get::<Json<_>, _>("item")?.0));
    found.iter().map(item).collect()
}

pub(super) async fn delivered(
    connection: &mut PgConnection,
    run: RunId,
    first: TaskIndex,
    count: u32,
    field: Option<&str>,
) -> Result<BTreeMap<TaskIndex, Value>> {
    let mut found = sqlx::query(include_str!("../../queries/read_delivered.sql"))
        .bind(run.0)
        .bind(i64::from(first.0))
        .bind(i64::from(first.0) + i64::from(count))
        .fetch(connection);
    let mut outputs = Outputs::default();
    while let Some(row) = found.try_next().await? {
        let task = TaskIndex(rows::number(&row, "idx")?);
        let output = only(field, rows::output(&row)?.unwrap_or_default());
        let bytes = field.map_or_else(|| size(&row), |_| output.to_string().len());
        outputs.add(task, output, bytes)?;
    }
    Ok(outputs.into_all())
}

pub(super) async fn insert(connection: &mut PgConnection, changes: &[Changes]) -> Result<()> {
    let mut rows = gather(changes, |each| each.items.iter());
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|(run, (child, _))| (*run, *child));
    sqlx::query(
        "insert into items (run, idx, item)
         select run, idx, item::json from unnest($1::uuid[], $2::int[], $3::text[]) as given (run, idx, item)",
    )
    .bind(column(&rows, |(run, _)| run.0))
    .bind(column(&rows, |(_, (child, _))| int(child.0)))
    .bind(column(&rows, |(_, (_, item))| json(item)))
    .execute(connection)
    .await?;
    Ok(())
}
