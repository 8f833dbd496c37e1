//! Schedules and how far they have come.

use async_trait::async_trait;
use model::{Catchup, Instant, Schedule, TenantId, Workflow};
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{PgConnection, PgExecutor, Row};

use super::columns::{SCHEDULES, bind_changes, bind_rows};
use super::statements::{INSERT_SCHEDULES, UPDATE_SCHEDULES};
use super::{Postgres, bounded, rows};
use crate::{Bounded, Error, Result, ScheduleRecord, Schedules, normal};

#[async_trait]
impl Schedules for Postgres {
    async fn schedules(
        &self,
        tenant: TenantId,
        workflow: Option<&str>,
        after: Option<(&str, &str)>,
        limit: u32,
    ) -> Result<Vec<ScheduleRecord>> {
        Ok(schedules(&self.pool, tenant, workflow, after, limit, usize::MAX).await?.items)
    }

    async fn due_schedules(&self, now: Instant, limit: u32) -> Result<Vec<ScheduleRecord>> {
        let found = sqlx::query(
            "select * from schedules where due_at <= $1 order by due_at, tenant, workflow, name limit $2",
        )
        .bind(now)
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await?;
        found.iter().map(record).collect()
    }

    async fn save_schedule(&self, record: &ScheduleRecord) -> Result<bool> {
        let mut connection = self.pool.acquire().await?;
        update(&mut connection, record).await
    }
}

/// Schedules of a tenant, or of one workflow, by workflow and name, after the given ones.
pub async fn schedules(
    executor: impl PgExecutor<'_>,
    tenant: TenantId,
    workflow: Option<&str>,
    after: Option<(&str, &str)>,
    limit: u32,
    max_bytes: usize,
) -> Result<Bounded<ScheduleRecord>> {
    let found = sqlx::query(
        "select * from schedules
          where tenant = $1 and ($2::text is null or workflow = $2)
            and ($3::text is null or (workflow, name) > ($3, $4::text))
          order by workflow, name limit $5",
    )
    .bind(tenant.0)
    .bind(workflow.map(normal::text))
    .bind(after.map(|(workflow, _)| normal::text(workflow)))
    .bind(after.map(|(_, name)| normal::text(name)))
    .bind(i64::from(limit))
    .fetch(executor);
    bounded::rows(found, max_bytes).await?.try_map(|row| record(&row))
}

/// Makes the rows of a workflow's schedules follow from its active version.
pub(super) async fn follow(
    connection: &mut PgConnection,
    tenant: TenantId,
    workflow: &Workflow,
    at: Instant,
) -> Result<()> {
    let found = sqlx::query("select * from schedules where tenant = $1 and workflow = $2 for update")
        .bind(tenant.0)
        .bind(normal::text(&workflow.name))
        .fetch_all(&mut *connection)
        .await?;
    let known: Vec<ScheduleRecord> = found.iter().map(record).collect::<Result<_>>()?;
    let names: Vec<&str> = workflow.schedules.iter().map(|schedule| schedule.name.as_str()).collect();
    sqlx::query("delete from schedules where tenant = $1 and workflow = $2 and name <> all($3)")
        .bind(tenant.0)
        .bind(normal::text(&workflow.name))
        .bind(names)
        .execute(&mut *connection)
        .await?;
    for schedule in &workflow.schedules {
        match known.iter().find(|known| known.schedule.name == schedule.name) {
            Some(known) => {
                update(connection, &known.clone().rewritten(schedule.clone(), at)).await?;
            }
            None => {
                insert(connection, &ScheduleRecord::new(tenant, &workflow.name, schedule.clone(), at)).await?
            }
        }
    }
    Ok(())
}

/// Forgets the schedules of a workflow that is taken out of use.
pub(super) async fn forget(connection: &mut PgConnection, tenant: TenantId, workflow: &str) -> Result<()> {
    sqlx::query("delete from schedules where tenant = $1 and workflow = $2")
        .bind(tenant.0)
        .bind(normal::text(workflow))
        .execute(connection)
        .await?;
    Ok(())
}

async fn insert(connection: &mut PgConnection, record: &ScheduleRecord) -> Result<()> {
    bind_rows(sqlx::query(INSERT_SCHEDULES.as_str()), SCHEDULES, [record]).execute(connection).await?;
    Ok(())
}

async fn update(connection: &mut PgConnection, record: &ScheduleRecord) -> Result<bool> {
    let update = bind_changes(sqlx::query(UPDATE_SCHEDULES.as_str()), SCHEDULES, [record]);
    Ok(update.execute(connection).await?.rows_affected() == 1)
}

fn record(row: &PgRow) -> Result<ScheduleRecord> {
    let owed = match row.try_get::<Option<&str>, _>("owed")? {
        Some(name) => {
            let unreadable = || Error::Unreadable { what: "schedule", why: format!("`{name}` is owed") };
            Some((Catchup::named(name).ok_or_else(unreadable)?, row.try_get("owed_until")?))
        }
        None => None,
    };
    let pause = rows::pause(row)?;
    let Json(schedule) = row.try_get::<Json<Schedule>, _>("definition")?;
    Ok(ScheduleRecord {
        tenant: TenantId(row.try_get("tenant")?),
        workflow: row.try_get("workflow")?,
        schedule,
        decided_until: row.try_get("decided_until")?,
        owed,
        due_at: row.try_get("due_at")?,
        pause,
        problem: row.try_get("problem")?,
        last_date: row.try_get("last_date")?,
        drift: row.try_get("drift")?,
        revision: row.try_get("revision")?,
    })
}
