//! Dead letters.

use async_trait::async_trait;
use sqlx::PgExecutor;

use super::{Postgres, bounded, rows};
use crate::{Bounded, DeadLetter, DeadLetterFilter, DeadLetters, Result, normal};

#[async_trait]
impl DeadLetters for Postgres {
    async fn insert_dead_letter(&self, dead_letter: &DeadLetter) -> Result<()> {
        let dead_letter = normal::dead_letter(dead_letter);
        sqlx::query(
            "insert into dead_letters (id, source, reason, body, at) values ($1, $2, $3, $4, $5)
             on conflict do nothing",
        )
        .bind(dead_letter.id)
        .bind(dead_letter.source)
        .bind(dead_letter.reason)
        .bind(dead_letter.body)
        .bind(dead_letter.at)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    async fn dead_letter(&self, id: &str) -> Result<Option<DeadLetter>> {
        dead_letter(&self.pool, id).await
    }

    async fn discard(&self, id: &str) -> Result<bool> {
        let gone = sqlx::query("delete from dead_letters where id = $1")
            .bind(normal::dead_letter_id(id))
            .execute(&self.pool)
            .await?;
        Ok(gone.rows_affected() == 1)
    }

    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>> {
        Ok(dead_letters(&self.pool, filter, usize::MAX).await?.items)
    }
}

/// The dead letter with that id.
pub async fn dead_letter(executor: impl PgExecutor<'_>, id: &str) -> Result<Option<DeadLetter>> {
    let found = sqlx::query("select id, source, reason, body, at from dead_letters where id = $1")
        .bind(normal::dead_letter_id(id))
        .fetch_optional(executor)
        .await?;
    found.as_ref().map(rows::dead_letter).transpose()
}

/// The dead letters that pass a filter, newest first.
pub async fn dead_letters(
    executor: impl PgExecutor<'_>,
    filter: &DeadLetterFilter,
    max_bytes: usize,
) -> Result<Bounded<DeadLetter>> {
    let found = sqlx::query(include_str!("../../queries/list_dead_letters.sql"))
        .bind(filter.source.as_deref().map(normal::text))
        .bind(filter.text.as_deref().map(normal::text))
        .bind(filter.after.as_ref().map(|(at, _)| *at))
        .bind(filter.after.as_ref().map(|(_, id)| normal::text(id)))
        .bind(i64::from(filter.limit))
        .fetch(executor);
    bounded::rows(found, max_bytes).await?.try_map(|row| rows::dead_letter(&row))
}
