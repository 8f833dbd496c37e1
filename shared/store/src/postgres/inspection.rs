//! Inspections: bounded statements that find faults through indexes.

use async_trait::async_trait;
use model::{Audit, Counts, Instant, RunId, TaskIndex, TaskState};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgPool, Row};

use super::statements::INSPECT_RUNS;
use super::{Postgres, columns, rows, timers};
use crate::inspection::{MAX_COUNTED, OVERDUE_AFTER, PAGE_SIZE, SILENT_AFTER, Seen, UNCLAIMED_AFTER};
use crate::{Error, Fault, Finding, Inspection, Inspections, Result};

#[async_trait]
impl Inspections for Postgres {
    async fn inspect(&self, now: Instant, after: Option<RunId>) -> Result<Inspection> {
        let mut findings = match after {
            Some(_) => Vec::new(),
            None => of_the_whole(&self.pool, now).await?,
        };
        let found = sqlx::query(INSPECT_RUNS.as_str())
            .bind(after.map(|run| run.0))
            .bind(i64::from(PAGE_SIZE))
            .bind(now - UNCLAIMED_AFTER)
            .bind(TaskState::ALL.map(TaskState::name))
            .fetch_all(&self.pool)
            .await?;
        let seen: Vec<Seen> = found.iter().map(seen).collect::<Result<_>>()?;
        findings.extend(seen.iter().flat_map(|seen| seen.findings(now)));
        let next = seen.last().filter(|_| seen.len() == PAGE_SIZE as usize).map(|seen| seen.run.id);
        Ok(Inspection { findings, versions: seen.iter().map(Seen::version).collect(), next })
    }
}

fn seen(row: &PgRow) -> Result<Seen> {
    Ok(Seen {
        run: columns::run(row)?,
        recheck_at: row.try_get("recheck_at")?,
        counts: counts(row.try_get("seen")?)?,
        unclaimed: rows::number(row, "unclaimed")?,
        moved_at: row.try_get("moved_at")?,
    })
}

fn counts(numbers: Vec<i32>) -> Result<Counts> {
    let unreadable = || Error::Unreadable { what: "counts", why: "they are not those of each state".into() };
    let numbers: Vec<u32> = numbers.into_iter().map(i32::unsigned_abs).collect();
    Ok(Counts::from_array(numbers.try_into().map_err(|_| unreadable())?))
}

async fn of_the_whole(pool: &PgPool, now: Instant) -> Result<Vec<Finding>> {
    let kinds = [
        (
            Fault::OverdueTimers,
            "select wake_at as at from timers where wake_at <= $1 order by wake_at limit $2",
            now - OVERDUE_AFTER,
        ),
        (
            Fault::UnsentMessages,
            "select created_at as at from (select id, created_at from outbox order by id limit $2) as oldest
              where created_at <= $1",
            now - OVERDUE_AFTER,
        ),
        (
            Fault::OverdueRechecks,
            "select recheck_at as at from runs where recheck_at <= $1 order by recheck_at limit $2",
            now - UNCLAIMED_AFTER,
        ),
        (
            Fault::DeadWorkers,
            "select tasks.since as at from tasks left join workers on workers.id = tasks.worker
              where tasks.worker is not null and (workers.heartbeat_at is null or workers.heartbeat_at < $1) limit $2",
            now - SILENT_AFTER,
        ),
        (Fault::DeadLetters, "select at from dead_letters where at <= $1 order by at desc limit $2", now),
    ];
    let mut findings = Vec::new();
    for (fault, statement, before) in kinds {
        let found = sqlx::query(statement).bind(before).bind(i64::from(MAX_COUNTED)).fetch_all(pool).await?;
        let found: Vec<Instant> = found.iter().map(|row| row.try_get("at")).collect::<sqlx::Result<_>>()?;
        findings.extend(Finding::of_all(fault, found));
    }
    findings.extend(orphaned_timers(pool, now).await?);
    Ok(findings)
}

async fn orphaned_timers(pool: &PgPool, now: Instant) -> Result<Vec<Finding>> {
    let found = sqlx::query(include_str!("../../queries/find_orphaned_timers.sql"))
        .bind(now - OVERDUE_AFTER)
        .bind(i64::from(MAX_COUNTED))
        .fetch_all(pool)
        .await?;
    let finding = |row: &PgRow| {
        let (run, since) = (RunId(row.try_get("run")?), row.try_get("since")?);
        Ok(Finding::orphaned_timers(run, rows::number(row, "count")?, since))
    };
    found.iter().map(finding).collect()
}

pub(super) async fn audit(connection: &mut PgConnection, run: RunId) -> Result<Audit> {
    let row = sqlx::query(include_str!("../../queries/recount_run.sql"))
        .bind(run.0)
        .bind(TaskState::ALL.map(TaskState::name))
        .fetch_one(connection)
        .await?;
    let ended_badly: Vec<i32> = row.try_get("ended_badly")?;
    let orphaned: Vec<i32> = row.try_get("orphaned_timers")?;
    Ok(Audit {
        counts: counts(row.try_get("counts")?)?,
        ended_badly: ended_badly.into_iter().map(|index| TaskIndex(index.unsigned_abs())).collect(),
        orphaned_timers: orphaned.into_iter().map(timers::owner).collect(),
    })
}
