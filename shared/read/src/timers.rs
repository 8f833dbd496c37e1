//! Pending timers.

use auth::Permission;
use model::{Child, Instant, RunId, TaskIndex, Timer, VersionId};
use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::postgres::PgRow;
use store::{DueTimer, rows, storable};

use crate::{Listing, Reader, Result, listing};

/// Which timers to list.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TimerFilter {
    /// Only of this run.
    pub run: Option<RunId>,
    /// Only of this workflow.
    pub workflow: Option<String>,
    /// Only those after this position in the list.
    pub after: Option<TimerCursor>,
    /// The maximum number of timers.
    pub limit: u32,
}

/// A timer's position among all timers: by time, then by owner and kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TimerCursor {
    /// When it is due.
    pub wake_at: Instant,
    /// The run it belongs to.
    pub run: RunId,
    /// The task it belongs to; none for the run's own.
    pub task: Option<TaskIndex>,
    /// The name of its kind.
    pub kind: String,
}

/// A pending timer with what the name of its task follows from.
#[derive(Clone, PartialEq, Debug)]
pub struct TimerRecord {
    /// The run it belongs to.
    pub run: RunId,
    /// The name of the run's workflow.
    pub workflow: String,
    /// The run's version, whose graph names the task.
    pub version: VersionId,
    /// The task's position in its fan-out, if it is a child of one.
    pub child: Option<Child>,
    /// The row of the timer.
    pub timer: Timer,
}

/// The pending timers of workflows that a caller may read.
#[derive(Clone, Copy, Debug)]
pub struct Timers<'a> {
    pub(crate) reader: &'a Reader,
}

impl Timers<'_> {
    /// The pending timers of workflows that the caller may read, the next one first.
    pub async fn list(&self, filter: &TimerFilter) -> Result<Listing<TimerRecord, TimerCursor>> {
        self.reader.caller.check_some(Permission::Read)?;
        let after = filter.after.as_ref();
        let found = sqlx::query(include_str!("../queries/list_timers.sql"))
            .bind(self.reader.tenant().0)
            .bind(filter.run.map(|run| run.0))
            .bind(filter.workflow.as_deref().map(storable))
            .bind(after.map(|position| position.wake_at))
            .bind(after.map(|position| position.run.0))
            .bind(after.map(|position| rows::timer_index(position.task)))
            .bind(after.map(|position| storable(&position.kind)))
            .bind(listing::rows(filter.limit))
            .fetch_all(&mut *self.reader.connection().await?)
            .await?;
        let found = found.iter().map(record).collect::<Result<_>>()?;
        let page = Listing::new(found, filter.limit, position);
        Ok(page.only(|record| self.reader.may(Permission::Read, &record.workflow)))
    }
}

fn position(record: &TimerRecord) -> TimerCursor {
    let Timer { task, kind, wake_at, .. } = record.timer;
    TimerCursor { wake_at, run: record.run, task, kind: kind.name().to_owned() }
}

fn record(row: &PgRow) -> Result<TimerRecord> {
    let DueTimer { run, timer } = rows::due_timer(row)?;
    let (workflow, version) = (row.try_get("workflow")?, VersionId(row.try_get("version")?));
    Ok(TimerRecord { run, workflow, version, child: rows::child(row)?, timer })
}
