//! Backfills and their dates.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{BackfillId, Instant, RunId, RunState, TenantId};
use sqlx::postgres::PgRow;
use sqlx::{PgExecutor, Row};
use uuid::Uuid;

use super::beginning::begin;
use super::columns::{BACKFILLS, bind_changes, bind_rows};
use super::statements::{INSERT_BACKFILLS, UPDATE_BACKFILLS};
use super::{Postgres, rows};
use crate::backfills::MAX_DELETED_AT_ONCE;
use crate::{
    BackfillDate, BackfillRecord, BackfillState, BackfillTurn, Backfills, DateStep, Error, Rerun, Result,
    normal,
};

#[async_trait]
impl Backfills for Postgres {
    async fn runs_of_dates(
        &self,
        tenant: TenantId,
        workflow: &str,
        schedule: &str,
        from: Instant,
        to: Instant,
    ) -> Result<BTreeMap<Instant, (RunId, RunState)>> {
        let found = sqlx::query(
            "select id, logical_date, state from runs
              where tenant = $1 and workflow = $2 and schedule = $3 and logical_date between $4 and $5",
        )
        .bind(tenant.0)
        .bind(normal::text(workflow))
        .bind(normal::schedule_of_date(schedule))
        .bind(from)
        .bind(to)
        .fetch_all(&self.pool)
        .await?;
        found
            .iter()
            .map(|row| Ok((row.try_get("logical_date")?, (RunId(row.try_get("id")?), rows::run_state(row)?))))
            .collect()
    }

    async fn create_backfill(&self, record: &BackfillRecord, dates: &[BackfillDate]) -> Result<()> {
        let mut transaction = begin(&self.pool).await?;
        let insert = bind_rows(sqlx::query(INSERT_BACKFILLS.as_str()), BACKFILLS, [record]);
        let written = insert.execute(&mut *transaction).await?;
        if written.rows_affected() == 1 {
            sqlx::query(include_str!("../../queries/insert_backfill_dates.sql"))
                .bind(record.id.0)
                .bind(rows::column(dates, |date| date.date))
                .bind(rows::column(dates, |date| date.interval_start))
                .bind(rows::column(dates, |date| date.run.map(|run| run.0)))
                .bind(rows::column(dates, |date| date.redo))
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    async fn any_backfill(&self, id: BackfillId) -> Result<Option<BackfillRecord>> {
        backfill(&self.pool, id).await
    }

    async fn backfills(
        &self,
        tenant: TenantId,
        workflow: Option<&str>,
        after: Option<(Instant, BackfillId)>,
        limit: u32,
    ) -> Result<Vec<BackfillRecord>> {
        backfills(&self.pool, tenant, workflow, after, limit).await
    }

    async fn due_backfills(&self, now: Instant, limit: u32) -> Result<Vec<BackfillRecord>> {
        let found = sqlx::query("select * from backfills where due_at <= $1 order by due_at, id limit $2")
            .bind(now)
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await?;
        found.iter().map(record).collect()
    }

    async fn save_backfill(&self, record: &BackfillRecord) -> Result<bool> {
        let update = bind_changes(sqlx::query(UPDATE_BACKFILLS.as_str()), BACKFILLS, [record]);
        let written = update.execute(&self.pool).await?;
        Ok(written.rows_affected() == 1)
    }

    async fn backfill_turn(&self, id: BackfillId, limit: u32) -> Result<BackfillTurn> {
        let found = sqlx::query(include_str!("../../queries/read_backfill_turn.sql"))
            .bind(id.0)
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await?;
        let mut turn = BackfillTurn::default();
        for row in &found {
            turn.active = rows::number(row, "active")?;
            turn.redoing = row.try_get("redoing")?;
            if row.try_get::<Option<Instant>, _>("date")?.is_none() {
                continue;
            }
            let date = date(row)?;
            match date.step {
                DateStep::Claimed => turn.claimed.push(date),
                _ => turn.waiting.push(date),
            }
        }
        Ok(turn)
    }

    async fn move_date(&self, id: BackfillId, from: DateStep, date: &BackfillDate) -> Result<bool> {
        let written = sqlx::query(
            "update backfill_dates set state = $4, run = $5, redo = $6
              where backfill = $1 and date = $2 and state = $3",
        )
        .bind(id.0)
        .bind(date.date)
        .bind(from.name())
        .bind(date.step.name())
        .bind(date.run.map(|run| run.0))
        .bind(date.redo)
        .execute(&self.pool)
        .await?;
        Ok(written.rows_affected() == 1)
    }

    async fn backfill_runs(
        &self,
        id: BackfillId,
        states: &[RunState],
        limit: u32,
    ) -> Result<Vec<(BackfillDate, RunState)>> {
        let found = sqlx::query(
            "select dates.date, dates.interval_start, dates.state as step, dates.run, dates.redo, runs.state
               from backfill_dates as dates join runs on runs.id = dates.run
              where backfill = $1 and dates.state <> 'waiting' and runs.state = any($2) order by dates.date limit $3",
        )
        .bind(id.0)
        .bind(rows::column(states, |state| state.name()))
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await?;
        found.iter().map(|row| Ok((date(row)?, rows::run_state(row)?))).collect()
    }

    async fn forget_backfills(&self, before: Instant) -> Result<u64> {
        let mut transaction = begin(&self.pool).await?;
        let old: Vec<Uuid> = sqlx::query_scalar(
            "select id from backfills where finished_at <= $1 and due_at is null
              order by finished_at, id limit $2 for update",
        )
        .bind(before)
        .bind(i64::from(MAX_DELETED_AT_ONCE))
        .fetch_all(&mut *transaction)
        .await?;
        for statement in [
            "delete from backfill_dates where backfill = any($1)",
            "delete from backfills where id = any($1)",
        ] {
            sqlx::query(statement).bind(&old).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(old.len() as u64)
    }
}

/// One backfill: of any tenant, or over a connection in a tenant's role, of that tenant.
pub async fn backfill(executor: impl PgExecutor<'_>, id: BackfillId) -> Result<Option<BackfillRecord>> {
    let found = sqlx::query("select * from backfills where id = $1").bind(id.0).fetch_optional(executor);
    found.await?.as_ref().map(record).transpose()
}

/// Backfills of a tenant, newest first, after the given one.
pub async fn backfills(
    executor: impl PgExecutor<'_>,
    tenant: TenantId,
    workflow: Option<&str>,
    after: Option<(Instant, BackfillId)>,
    limit: u32,
) -> Result<Vec<BackfillRecord>> {
    let found = sqlx::query(
        "select * from backfills
          where tenant = $1 and ($2::text is null or workflow = $2)
            and ($3::timestamptz is null or (created_at, id) < ($3, $4::uuid))
          order by created_at desc, id desc limit $5",
    )
    .bind(tenant.0)
    .bind(workflow.map(normal::text))
    .bind(after.map(|(at, _)| at))
    .bind(after.map(|(_, id)| id.0))
    .bind(i64::from(limit))
    .fetch_all(executor)
    .await?;
    found.iter().map(record).collect()
}

/// How many dates of a backfill wait (`waiting`), and how many have a run in which state (`forgotten` if the run was deleted).
pub async fn backfill_progress(
    executor: impl PgExecutor<'_>,
    id: BackfillId,
) -> Result<BTreeMap<String, u32>> {
    let found = sqlx::query(
        "select case when dates.state = 'waiting' then 'waiting' when dates.state = 'claimed' then coalesce(runs.state, 'waiting')
                     else coalesce(runs.state, 'forgotten') end as progress, count(*)::integer as count
           from backfill_dates as dates left join runs on runs.id = dates.run
          where backfill = $1 group by 1",
    )
    .bind(id.0)
    .fetch_all(executor)
    .await?;
    found.iter().map(|row| Ok((row.try_get("progress")?, rows::number(row, "count")?))).collect()
}

fn named<T: Copy>(row: &PgRow, column: &str, all: &[T], name: impl Fn(T) -> &'static str) -> Result<T> {
    let found: &str = row.try_get(column)?;
    let unreadable = || Error::Unreadable { what: "backfill", why: format!("`{found}` is no {column}") };
    all.iter().copied().find(|one| name(*one) == found).ok_or_else(unreadable)
}

fn date(row: &PgRow) -> Result<BackfillDate> {
    Ok(BackfillDate {
        date: row.try_get("date")?,
        interval_start: row.try_get("interval_start")?,
        step: named(row, "step", &DateStep::ALL, DateStep::name)?,
        run: row.try_get::<Option<_>, _>("run")?.map(RunId),
        redo: row.try_get("redo")?,
    })
}

fn record(row: &PgRow) -> Result<BackfillRecord> {
    Ok(BackfillRecord {
        id: BackfillId(row.try_get("id")?),
        tenant: TenantId(row.try_get("tenant")?),
        workflow: row.try_get("workflow")?,
        schedule: row.try_get("schedule")?,
        version: row.try_get("version")?,
        from: row.try_get("from_at")?,
        to: row.try_get("to_at")?,
        max_parallel: rows::number(row, "max_parallel")?,
        weight: rows::number(row, "weight")?,
        rerun: named(row, "rerun", &Rerun::ALL, Rerun::name)?,
        state: named(row, "state", &BackfillState::ALL, BackfillState::name)?,
        created_at: row.try_get("created_at")?,
        created_by: row.try_get("created_by")?,
        finished_at: row.try_get("finished_at")?,
        cancelled_by: row.try_get("cancelled_by")?,
        due_at: row.try_get("due_at")?,
        problem: row.try_get("problem")?,
        revision: row.try_get("revision")?,
    })
}
