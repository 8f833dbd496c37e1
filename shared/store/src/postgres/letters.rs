//! Dead letters.

use sqlx::PgPool;

use super::rows;
use crate::{DeadLetter, LetterFilter, Result, normal};

pub(super) async fn bury(pool: &PgPool, letter: &DeadLetter) -> Result<()> {
    let letter = normal::letter(letter);
    sqlx::query(
        "insert into dead_letters (id, source, reason, body, at) values ($1, $2, $3, $4, $5)
         on conflict do nothing",
    )
    .bind(letter.id)
    .bind(letter.source)
    .bind(letter.reason)
    .bind(letter.body)
    .bind(letter.at)
    .execute(pool)
    .await?;
    Ok(())
}

pub(super) async fn list(pool: &PgPool, filter: &LetterFilter) -> Result<Vec<DeadLetter>> {
    let found = sqlx::query(include_str!("../../queries/list_dead_letters.sql"))
        .bind(filter.source.as_deref().map(normal::text))
        .bind(filter.text.as_deref().map(normal::text))
        .bind(filter.after.as_ref().map(|(at, _)| *at))
        .bind(filter.after.as_ref().map(|(_, id)| normal::text(id)))
        .bind(i64::from(filter.limit))
        .fetch_all(pool)
        .await?;
    found.iter().map(rows::letter).collect()
}

pub(super) async fn find(pool: &PgPool, id: &str) -> Result<Option<DeadLetter>> {
    let found = sqlx::query("select id, source, reason, body, at from dead_letters where id = $1")
        .bind(normal::letter_id(id))
        .fetch_optional(pool)
        .await?;
    found.as_ref().map(rows::letter).transpose()
}

pub(super) async fn discard(pool: &PgPool, id: &str) -> Result<bool> {
    let gone = sqlx::query("delete from dead_letters where id = $1")
        .bind(normal::letter_id(id))
        .execute(pool)
        .await?;
    Ok(gone.rows_affected() == 1)
}
