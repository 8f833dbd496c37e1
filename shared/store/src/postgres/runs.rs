//! Runs as readers see them. Nothing here locks, and no decision is made on it.

use std::collections::BTreeMap;

use model::{AttemptRecord, Event, RunId, TaskIndex, TaskKey, TenantId};
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{PgConnection, PgExecutor, PgPool, Row};

use super::{picking, rows};
use crate::{Facts, Result, RunFilter, RunRecord, TaskRecord, chunks, normal};

pub(super) async fn run(
    executor: impl PgExecutor<'_>,
    tenant: TenantId,
    id: RunId,
) -> Result<Option<RunRecord>> {
    let found = sqlx::query(include_str!("../../queries/find_run.sql"))
        .bind(tenant.0)
        .bind(id.0)
        .fetch_optional(executor)
        .await?;
    found.as_ref().map(rows::run_record).transpose()
}

pub(super) async fn runs(
    connection: &mut PgConnection,
    tenant: TenantId,
    filter: &RunFilter,
) -> Result<Vec<RunRecord>> {
    if !filter.is_plain() {
        return picking::runs(connection, tenant, filter).await;
    }
    let found = sqlx::query(include_str!("../../queries/list_runs.sql"))
        // Planned anew each time: which index serves depends on which filters are there.
        .persistent(false)
        .bind(tenant.0)
        .bind(filter.workflow.as_deref().map(normal::text))
        .bind(filter.state.map(|state| state.name()))
        .bind(filter.after.map(|(created_at, _)| created_at))
        .bind(filter.after.map(|(_, id)| id.0))
        .bind(i64::from(filter.limit))
        .bind(filter.parent.map(|parent| parent.0))
        .fetch_all(connection)
        .await?;
    found.iter().map(rows::run_record).collect()
}

pub(super) async fn facts(executor: impl PgExecutor<'_>, run: RunId) -> Result<Option<Facts>> {
    let found = sqlx::query(
        "select inputs, labels, trigger_kind, trigger_by, logical_date, run_facts.schedule as planned_schedule,
                interval_start, interval_end
           from run_facts join runs on runs.id = run_facts.run where run = $1",
    )
    .bind(run.0)
    .fetch_optional(executor)
    .await?;
    found.as_ref().map(rows::facts).transpose()
}

pub(super) async fn tasks(
    executor: impl PgExecutor<'_>,
    run: RunId,
    children_of: Option<TaskIndex>,
    after: Option<TaskIndex>,
    limit: u32,
) -> Result<Vec<TaskRecord>> {
    let found = sqlx::query(include_str!("../../queries/list_tasks.sql"))
        .bind(run.0)
        .bind(children_of.map(|task| rows::int(task.0)))
        .bind(after.map_or(-1, |task| i64::from(task.0)))
        .bind(i64::from(limit))
        .fetch_all(executor)
        .await?;
    found.iter().map(rows::task_record).collect()
}

pub(super) async fn attempts(executor: impl PgExecutor<'_>, key: TaskKey) -> Result<Vec<AttemptRecord>> {
    let found = sqlx::query(
        "select idx, attempt, state, worker, started_at, finished_at, failure, decision
           from attempts where run = $1 and idx = $2 order by attempt",
    )
    .bind(key.run.0)
    .bind(rows::int(key.task.0))
    .fetch_all(executor)
    .await?;
    found.iter().map(rows::attempt).collect()
}

pub(super) async fn events(
    executor: impl PgExecutor<'_>,
    run: RunId,
    from: i64,
    limit: u32,
) -> Result<Vec<(i64, Event)>> {
    let found = sqlx::query(include_str!("../../queries/read_events.sql"))
        .bind(run.0)
        .bind(from)
        .bind(i64::from(limit))
        .fetch_all(executor)
        .await?;
    let chunks: Vec<(i64, Vec<Event>)> = found
        .iter()
        .map(|row| Ok((row.try_get("seq")?, row.try_get::<Json<_>, _>("events")?.0)))
        .collect::<Result<_>>()?;
    Ok(chunks::numbered(chunks, from, limit))
}

pub(super) async fn own_events(
    executor: impl PgExecutor<'_>,
    run: RunId,
    with: Option<TaskIndex>,
    from: i64,
    limit: u32,
) -> Result<Vec<(i64, Event)>> {
    let found = sqlx::query(include_str!("../../queries/read_own_events.sql"))
        .bind(run.0)
        .bind(from)
        .bind(with.map(|task| rows::int(task.0)))
        .bind(i64::from(limit))
        .fetch_all(executor)
        .await?;
    let event = |row: &PgRow| Ok((row.try_get("number")?, row.try_get::<Json<_>, _>("content")?.0));
    found.iter().map(event).collect()
}

pub(super) async fn outputs(
    executor: impl PgExecutor<'_>,
    run: RunId,
    tasks: &[TaskIndex],
) -> Result<BTreeMap<TaskIndex, Value>> {
    if tasks.is_empty() {
        return Ok(BTreeMap::new());
    }
    let found = sqlx::query("select idx, output from outputs where run = $1 and idx = any($2)")
        .bind(run.0)
        .bind(rows::column(tasks, |task| rows::int(task.0)))
        .fetch_all(executor)
        .await?;
    let output = |row| Ok((TaskIndex(rows::number(row, "idx")?), row.try_get::<Json<_>, _>("output")?.0));
    found.iter().map(output).collect()
}

/// A date is taken under the name of a schedule. No schedule has this one.
pub(super) async fn give_up_date(pool: &PgPool, run: RunId) -> Result<()> {
    sqlx::query("update runs set schedule = 'given up by ' || id where id = $1 and finished_at is not null")
        .bind(run.0)
        .execute(pool)
        .await?;
    Ok(())
}
