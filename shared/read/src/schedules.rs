//! Schedules, and the runs that they started.

use auth::Permission;
use model::{Instant, RunId};
use sqlx::Row;
use sqlx::postgres::PgRow;
use store::{MAX_PAGE_BYTES, ScheduleRecord, schedule_of_date, select, storable};

use crate::{Listing, Reader, Result};

/// When a run of a schedule was planned, and when it started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartRecord {
    /// The id of the run.
    pub run: RunId,
    /// The logical date, which is when it was planned for.
    pub date: Instant,
    /// When it was created.
    pub created_at: Instant,
    /// When it started: on creation, or when its concurrency group had room.
    pub started_at: Option<Instant>,
}

/// The schedules that a caller may read.
#[derive(Clone, Copy, Debug)]
pub struct Schedules<'a> {
    pub(crate) reader: &'a Reader,
}

impl Schedules<'_> {
    /// The schedules that the caller may read, by workflow and name, after the given one.
    pub async fn list(
        &self,
        workflow: Option<&str>,
        after: Option<(&str, &str)>,
        limit: u32,
    ) -> Result<Listing<ScheduleRecord, (String, String)>> {
        self.reader.caller.check_some(Permission::Read)?;
        let mut connection = self.reader.connection().await?;
        let rows = limit.saturating_add(1);
        let found =
            select::schedules(&mut *connection, self.reader.tenant(), workflow, after, rows, MAX_PAGE_BYTES)
                .await?;
        let position = |record: &ScheduleRecord| (record.workflow.clone(), record.schedule.name.clone());
        let page = Listing::bounded(found, limit, position);
        Ok(page.only(|record| self.reader.may(Permission::Read, &record.workflow)))
    }

    /// The last runs that a schedule started, the latest date first.
    pub async fn last_starts(&self, workflow: &str, schedule: &str, limit: u32) -> Result<Vec<StartRecord>> {
        self.reader.check_workflow(Permission::Read, workflow)?;
        let found = sqlx::query(
            "select runs.id, logical_date, created_at, started_at
               from runs join run_facts on run_facts.run = runs.id
              where tenant = $1 and workflow = $2 and runs.schedule = $3 and logical_date is not null
                and trigger_kind = 'schedule'
              order by logical_date desc limit $4",
        )
        .bind(self.reader.tenant().0)
        .bind(storable(workflow))
        .bind(schedule_of_date(schedule))
        .bind(i64::from(limit))
        .fetch_all(&mut *self.reader.connection().await?)
        .await?;
        let start = |row: &PgRow| {
            Ok(StartRecord {
                run: RunId(row.try_get("id")?),
                date: row.try_get("logical_date")?,
                created_at: row.try_get("created_at")?,
                started_at: row.try_get("started_at")?,
            })
        };
        found.iter().map(start).collect()
    }
}
