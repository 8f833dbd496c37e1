//! The change feed: what was committed to the histories of a tenant's runs since a cursor.

use model::{Child, Event, Progress, RunId, RunState, TaskIndex, TenantId, VersionId};
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use store::{Postgres, bounded, rows};

use crate::{Reader, Result};

/// The longest cursor, in characters. It names the transactions in progress, of which there are no more than connections.
const MAX_CURSOR: usize = 32 * 1024;

/// A page ends with the row that exceeds this, in bytes as the database sends them.
const MAX_BYTES: usize = 1024 * 1024;

/// The changes to the runs of one tenant, read in that tenant's role. It is shared by all who listen in the tenant: each
/// of them passes on only what its own grants cover.
#[derive(Clone, Debug)]
pub struct ChangeFeed {
    postgres: Postgres,
    tenant: TenantId,
}

/// A position in the change feed: a snapshot as Postgres writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeedCursor(pub String);

/// The changes since a cursor.
#[derive(Clone, PartialEq, Debug)]
pub struct FeedPage {
    /// The events of each run, by run and in order.
    pub items: Vec<FeedItem>,
    /// Attempts that reported progress. Only the last report of each is here.
    pub progress: Vec<FeedProgress>,
    /// Where the next page begins.
    pub cursor: FeedCursor,
    /// Whether these are all changes. If there were too many, the others are left out.
    pub complete: bool,
}

/// The events of one run in one transaction.
#[derive(Clone, PartialEq, Debug)]
pub struct FeedItem {
    /// The run that the event is about.
    pub run: RunId,
    /// The name of the run's workflow.
    pub workflow: String,
    /// The run's version, whose graph names tasks.
    pub version: VersionId,
    /// The run's current state.
    pub state: RunState,
    /// The number of the first of these events within the run; the others follow.
    pub first: i64,
    /// The events, in order.
    pub events: Vec<Event>,
}

/// The progress of an attempt that is new. It is not part of the run's history.
#[derive(Clone, PartialEq, Debug)]
pub struct FeedProgress {
    /// The run of the attempt.
    pub run: RunId,
    /// The name of the run's workflow.
    pub workflow: String,
    /// The run's version, whose graph names tasks.
    pub version: VersionId,
    /// The task that is attempted.
    pub task: TaskIndex,
    /// Which child the task is, if it is one of a fan-out.
    pub child: Option<Child>,
    /// All that the attempt has reported.
    pub progress: Progress,
}

impl Reader {
    /// The change feed, for a caller who may read the named workflow, or without a name, every workflow of the tenant.
    pub fn change_feed(&self, workflow: Option<&str>) -> Result<ChangeFeed> {
        self.caller.check_filter(auth::Permission::Read, workflow)?;
        Ok(ChangeFeed::new(self))
    }
}

impl ChangeFeed {
    pub(crate) fn new(reader: &Reader) -> Self {
        Self { postgres: reader.postgres.clone(), tenant: reader.tenant() }
    }

    /// The tenant whose changes it reads.
    pub fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// The position after everything there is now.
    pub async fn end(&self) -> Result<FeedCursor> {
        let mut connection = self.postgres.reading_as(self.tenant).await?;
        let row =
            sqlx::query("select pg_current_snapshot()::text as cursor").fetch_one(&mut *connection).await?;
        Ok(FeedCursor(row.try_get("cursor")?))
    }

    /// What was committed since the cursor, each change once, at most `limit` items and about a mebibyte. None for a cursor that
    /// is not one of this database.
    pub async fn since(&self, since: &FeedCursor, limit: u32) -> Result<Option<FeedPage>> {
        if !is_well_formed(&since.0) {
            return Ok(None);
        }
        let mut connection = self.postgres.reading_as(self.tenant).await?;
        let changes = sqlx::query(include_str!("../queries/read_change_feed.sql"))
            .bind(&since.0)
            .bind(i64::from(limit) + 1)
            .fetch(&mut *connection);
        let changes = match bounded::rows(changes, MAX_BYTES).await {
            Err(sqlx::Error::Database(refused)) if refused.code().as_deref() == Some("22P02") => {
                return Ok(None);
            }
            read => read?,
        };
        let cursor = changes.items.first().map(|row| row.try_get("cursor")).transpose()?;
        let Some(cursor) = cursor.map(FeedCursor) else { return Ok(None) };
        // The cursor is from before the database was restored to an earlier moment.
        if end(since) > end(&cursor) {
            return Ok(None);
        }
        // Without changes, there is one row, which has only the cursor.
        let is_change = |row: &&PgRow| row.try_get::<Option<i64>, _>("seq").is_ok_and(|seq| seq.is_some());
        let mut items = changes.items.iter().filter(is_change).map(item).collect::<Result<Vec<_>>>()?;
        let reports = sqlx::query(include_str!("../queries/read_progress_feed.sql"))
            .bind(&since.0)
            .bind(&cursor.0)
            .bind(i64::from(limit) + 1)
            .fetch(&mut *connection);
        let reports = bounded::rows(reports, MAX_BYTES).await?;
        let mut progress = reports.items.iter().map(new_progress).collect::<Result<Vec<_>>>()?;
        let complete = items.len().max(progress.len()) <= limit as usize && !changes.cut && !reports.cut;
        items.truncate(limit as usize);
        progress.truncate(limit as usize);
        Ok(Some(FeedPage { items, progress, cursor, complete }))
    }
}

/// The first transaction that had not begun.
fn end(cursor: &FeedCursor) -> Option<u64> {
    cursor.0.split(':').nth(1)?.parse().ok()
}

fn is_well_formed(text: &str) -> bool {
    let known = |character: char| character.is_ascii_digit() || matches!(character, ':' | ',');
    text.len() <= MAX_CURSOR && text.chars().all(known) && text.matches(':').count() == 2
}

fn item(row: &PgRow) -> Result<FeedItem> {
    Ok(FeedItem {
        run: RunId(row.try_get("run")?),
        workflow: row.try_get("workflow")?,
        version: VersionId(row.try_get("version")?),
        state: rows::run_state(row)?,
        first: row.try_get("seq")?,
        events: row.try_get::<Json<_>, _>("events")?.0,
    })
}

fn new_progress(row: &PgRow) -> Result<FeedProgress> {
    Ok(FeedProgress {
        run: RunId(row.try_get("run")?),
        workflow: row.try_get("workflow")?,
        version: VersionId(row.try_get("version")?),
        task: TaskIndex(rows::number(row, "idx")?),
        child: rows::child(row)?,
        progress: rows::progress(row)?,
    })
}
