//! Runs outside a transaction. Nothing here locks, and no decision rests on it alone.

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures::TryStreamExt;
use model::{Event, RunId, TaskIndex, TaskKey, TenantId};
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{PgExecutor, Row};
use uuid::Uuid;

use super::bounded::{MAX_LISTED_VALUE, MAX_PAGE_BYTES};
use super::rows::int;
use super::statements::{FIND_RUNS, LIST_RUNS, LIST_RUNS_BY_ID};
use super::{Postgres, bounded, rows};
use crate::chunks::Numbered;
use crate::{
    Bounded, Error, Facts, ListedRun, ListedTask, MAX_OUTPUTS, Result, RunFilter, RunRecord, Runs,
    TaskRecord, normal,
};

#[async_trait]
impl Runs for Postgres {
    async fn run(&self, tenant: TenantId, id: RunId) -> Result<Option<RunRecord>> {
        Ok(run(&self.pool, tenant, &[id]).await?.pop())
    }

    async fn runs(&self, tenant: TenantId, filter: &RunFilter) -> Result<Vec<RunRecord>> {
        let found = sqlx::query(LIST_RUNS.as_str())
            // Planned for each call: which index serves depends on which filters are there.
            .persistent(false)
            .bind(tenant.0)
            .bind(filter.workflow.as_deref().map(normal::text))
            .bind(filter.state.map(|state| state.name()))
            .bind(filter.parent.map(|parent| parent.0))
            .bind(i64::from(filter.limit))
            .fetch_all(&self.pool)
            .await?;
        found.iter().map(rows::run_record).collect()
    }

    async fn run_tasks(
        &self,
        run: RunId,
        children_of: Option<TaskIndex>,
        after: Option<TaskIndex>,
        limit: u32,
    ) -> Result<Vec<TaskRecord>> {
        tasks(&self.pool, run, children_of, after, limit).await
    }

    async fn item(&self, child: TaskKey) -> Result<Option<Value>> {
        item(&self.pool, child).await
    }

    async fn outputs(&self, run: RunId, tasks: &[TaskIndex]) -> Result<BTreeMap<TaskIndex, Value>> {
        outputs(&self.pool, run, tasks).await
    }

    async fn events(&self, run: RunId, from: i64, limit: u32) -> Result<Vec<(i64, Event)>> {
        Ok(events(&self.pool, run, from, limit, usize::MAX).await?.items)
    }

    async fn waiters(&self, owner: TaskKey, limit: u32) -> Result<Vec<(TaskKey, u32)>> {
        let found = sqlx::query(
            "select run, idx, attempt from shared_task_waiters where owner_run = $1 and owner_idx = $2
              order by run, idx limit $3",
        )
        .bind(owner.run.0)
        .bind(int(owner.task.0))
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await?;
        found.iter().map(|row| Ok((rows::key(row)?, rows::number(row, "attempt")?))).collect()
    }

    async fn give_up_date(&self, run: RunId) -> Result<()> {
        // A date is taken under the name of a schedule. No schedule has this one.
        sqlx::query(
            "update runs set schedule = 'given up by ' || id where id = $1 and finished_at is not null",
        )
        .bind(run.0)
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}

/// Those of these runs that are the tenant's, in no particular order.
pub async fn run(executor: impl PgExecutor<'_>, tenant: TenantId, ids: &[RunId]) -> Result<Vec<RunRecord>> {
    let found = sqlx::query(FIND_RUNS.as_str())
        .bind(tenant.0)
        .bind(ids.iter().map(|id| id.0).collect::<Vec<Uuid>>())
        .fetch_all(executor)
        .await?;
    found.iter().map(rows::run_record).collect()
}

/// Those of these runs that are the tenant's, in the order of their ids here, without long inputs. A page of large rows ends
/// early.
pub async fn listed_runs(
    executor: impl PgExecutor<'_>,
    tenant: TenantId,
    ids: &[RunId],
) -> Result<Bounded<ListedRun>> {
    let found = sqlx::query(LIST_RUNS_BY_ID.as_str())
        .bind(tenant.0)
        .bind(ids.iter().map(|id| id.0).collect::<Vec<Uuid>>())
        .bind(MAX_LISTED_VALUE)
        .fetch(executor);
    bounded::rows(found, MAX_PAGE_BYTES).await?.try_map(|row| {
        let inputs = rows::excerpt(&row, "inputs_bytes", "inputs_head")?;
        Ok(ListedRun { record: rows::run_record(&row)?, inputs })
    })
}

/// As [`tasks`], without long outputs. A page of large rows ends early.
pub async fn listed_tasks(
    executor: impl PgExecutor<'_>,
    run: RunId,
    children_of: Option<TaskIndex>,
    after: Option<TaskIndex>,
    limit: u32,
) -> Result<Bounded<ListedTask>> {
    let found = sqlx::query(include_str!("../../queries/list_tasks.sql"))
        .bind(run.0)
        .bind(children_of.map(|task| int(task.0)))
        .bind(after.map_or(-1, |task| i64::from(task.0)))
        .bind(i64::from(limit))
        .bind(MAX_LISTED_VALUE)
        .fetch(executor);
    bounded::rows(found, MAX_PAGE_BYTES).await?.try_map(|row| {
        let output = rows::excerpt(&row, "output_bytes", "output_head")?;
        Ok(ListedTask { record: rows::task_record(&row)?, output })
    })
}

/// Tasks of a run in index order, after the given one: those of its definition, or the children of one of them.
pub async fn tasks(
    executor: impl PgExecutor<'_>,
    run: RunId,
    children_of: Option<TaskIndex>,
    after: Option<TaskIndex>,
    limit: u32,
) -> Result<Vec<TaskRecord>> {
    let found = sqlx::query(include_str!("../../queries/list_tasks.sql"))
        .bind(run.0)
        .bind(children_of.map(|task| int(task.0)))
        .bind(after.map_or(-1, |task| i64::from(task.0)))
        .bind(i64::from(limit))
        .bind(i32::MAX)
        .fetch_all(executor)
        .await?;
    found.iter().map(rows::task_record).collect()
}

/// The item of one child of a fan-out.
pub async fn item(executor: impl PgExecutor<'_>, child: TaskKey) -> Result<Option<Value>> {
    let found = sqlx::query("select item from items where run = $1 and idx = $2")
        .bind(child.run.0)
        .bind(int(child.task.0))
        .fetch_optional(executor)
        .await?;
    Ok(found.map(|row| row.try_get::<Json<_>, _>("item")).transpose()?.map(|Json(item)| item))
}

/// Events of a run with a number of `from` or higher, oldest first, with their numbers: at most `limit`, and none after the
/// row that exceeds `max_bytes`.
pub async fn events(
    executor: impl PgExecutor<'_>,
    run: RunId,
    from: i64,
    limit: u32,
    max_bytes: usize,
) -> Result<Bounded<(i64, Event)>> {
    let mut found = sqlx::query(include_str!("../../queries/read_events.sql"))
        .bind(run.0)
        .bind(from)
        .bind(i64::from(limit))
        .fetch(executor);
    let mut events = Numbered::new(from, limit, max_bytes);
    while let Some(row) = found.try_next().await? {
        if events.is_full() {
            return Ok(events.into_bounded(true));
        }
        events.add(row.try_get("seq")?, row.try_get::<Json<Vec<Event>>, _>("events")?.0, bounded::size(&row));
    }
    Ok(events.into_bounded(false))
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

/// The outputs of the named tasks, of those that have one. One statement measures and reads them: of outputs that are too large
/// together, the database sends none.
pub async fn outputs(
    executor: impl PgExecutor<'_>,
    run: RunId,
    tasks: &[TaskIndex],
) -> Result<BTreeMap<TaskIndex, Value>> {
    if tasks.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut found = sqlx::query(include_str!("../../queries/read_outputs.sql"))
        .bind(run.0)
        .bind(rows::column(tasks, |task| rows::int(task.0)))
        .bind(MAX_OUTPUTS as i64)
        .fetch(executor);
    let mut outputs = BTreeMap::new();
    while let Some(row) = found.try_next().await? {
        let output = rows::output(&row)?.ok_or(Error::TooLarge)?;
        outputs.insert(TaskIndex(rows::number(&row, "idx")?), output);
    }
    Ok(outputs)
}
