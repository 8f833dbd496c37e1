//! What happened to any run since somebody last asked. A cursor is a snapshot as Postgres writes it.

use async_trait::async_trait;
use model::RunId;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{PgPool, Row};

use super::{Postgres, rows};
use crate::{ChangeFeed, FeedCursor, FeedItem, FeedPage, Result};

/// No cursor is longer, in characters: it names the transactions that were under way, and there are no more than
/// connections.
const LONGEST: usize = 32 * 1024;

#[async_trait]
impl ChangeFeed for Postgres {
    async fn news(&self, since: Option<&FeedCursor>, limit: u32) -> Result<Option<FeedPage>> {
        let Some(since) = since else {
            let cursor = present(&self.pool).await?;
            return Ok(Some(FeedPage { items: Vec::new(), cursor, complete: true }));
        };
        if !looks_right(&since.0) {
            return Ok(None);
        }
        let read = sqlx::query(include_str!("../../queries/read_change_feed.sql"))
            .bind(&since.0)
            .bind(i64::from(limit) + 1)
            .fetch_all(&self.pool)
            .await;
        let found = match read {
            Err(sqlx::Error::Database(refused)) if refused.code().as_deref() == Some("22P02") => {
                return Ok(None);
            }
            read => read?,
        };
        let cursor = found.first().map(|row| row.try_get("cursor")).transpose()?;
        let Some(cursor) = cursor.map(FeedCursor) else { return Ok(None) };
        // It was given before the database was set back to an earlier moment.
        if end(since) > end(&cursor) {
            return Ok(None);
        }
        // Without news, there is one row that says only where to go on.
        let told =
            found.iter().filter(|row| row.try_get::<Option<i64>, _>("seq").is_ok_and(|seq| seq.is_some()));
        let mut items = told.map(item).collect::<Result<Vec<_>>>()?;
        let complete = items.len() <= limit as usize;
        items.truncate(limit as usize);
        Ok(Some(FeedPage { items, cursor, complete }))
    }
}

async fn present(pool: &PgPool) -> Result<FeedCursor> {
    let row = sqlx::query("select pg_current_snapshot()::text as cursor").fetch_one(pool).await?;
    Ok(FeedCursor(row.try_get("cursor")?))
}

/// The first transaction that had not begun.
fn end(cursor: &FeedCursor) -> Option<u64> {
    cursor.0.split(':').nth(1)?.parse().ok()
}

fn looks_right(text: &str) -> bool {
    let known = |character: char| character.is_ascii_digit() || matches!(character, ':' | ',');
    text.len() <= LONGEST && text.chars().all(known) && text.matches(':').count() == 2
}

fn item(row: &PgRow) -> Result<FeedItem> {
    Ok(FeedItem {
        run: RunId(row.try_get("run")?),
        tenant: model::TenantId(row.try_get("tenant")?),
        workflow: row.try_get("workflow")?,
        version: model::VersionId(row.try_get("version")?),
        state: rows::run_state(row)?,
        first: row.try_get("seq")?,
        events: row.try_get::<Json<_>, _>("events")?.0,
    })
}
