//! What happened to any run since somebody last asked. A bookmark is a snapshot as Postgres writes it.

use async_trait::async_trait;
use model::RunId;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{PgPool, Row};

use super::{Postgres, rows};
use crate::{Bookmark, News, NewsItem, NewsStore, Result};

/// No bookmark is longer, in characters: it names the transactions that were under way, and there are no more than
/// connections.
const LONGEST: usize = 32 * 1024;

#[async_trait]
impl NewsStore for Postgres {
    async fn news(&self, since: Option<&Bookmark>, limit: u32) -> Result<Option<News>> {
        let Some(since) = since else {
            let bookmark = present(&self.pool).await?;
            return Ok(Some(News { items: Vec::new(), bookmark, complete: true }));
        };
        if !looks_right(&since.0) {
            return Ok(None);
        }
        let read = sqlx::query(include_str!("../../queries/read_news.sql"))
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
        let bookmark = found.first().map(|row| row.try_get("bookmark")).transpose()?;
        let Some(bookmark) = bookmark.map(Bookmark) else { return Ok(None) };
        // It was given before the database was set back to an earlier moment.
        if end(since) > end(&bookmark) {
            return Ok(None);
        }
        // Without news, there is one row that says only where to go on.
        let told =
            found.iter().filter(|row| row.try_get::<Option<i64>, _>("seq").is_ok_and(|seq| seq.is_some()));
        let mut items = told.map(item).collect::<Result<Vec<_>>>()?;
        let complete = items.len() <= limit as usize;
        items.truncate(limit as usize);
        Ok(Some(News { items, bookmark, complete }))
    }
}

async fn present(pool: &PgPool) -> Result<Bookmark> {
    let row = sqlx::query("select pg_current_snapshot()::text as bookmark").fetch_one(pool).await?;
    Ok(Bookmark(row.try_get("bookmark")?))
}

/// The first transaction that had not begun.
fn end(bookmark: &Bookmark) -> Option<u64> {
    bookmark.0.split(':').nth(1)?.parse().ok()
}

fn looks_right(text: &str) -> bool {
    let known = |character: char| character.is_ascii_digit() || matches!(character, ':' | ',');
    text.len() <= LONGEST && text.chars().all(known) && text.matches(':').count() == 2
}

fn item(row: &PgRow) -> Result<NewsItem> {
    Ok(NewsItem {
        run: RunId(row.try_get("run")?),
        tenant: model::TenantId(row.try_get("tenant")?),
        workflow: row.try_get("workflow")?,
        version: model::VersionId(row.try_get("version")?),
        state: rows::run_state(row)?,
        first: row.try_get("seq")?,
        events: row.try_get::<Json<_>, _>("events")?.0,
    })
}
