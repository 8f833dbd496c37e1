//! Dead letters.

use sqlx::PgPool;

use super::rows;
use crate::{DeadLetter, Result, normal};

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

pub(super) async fn newest(pool: &PgPool, limit: u32) -> Result<Vec<DeadLetter>> {
    let found = sqlx::query(
        "select id, source, reason, body, at from dead_letters order by at desc, id desc limit $1",
    )
    .bind(i64::from(limit))
    .fetch_all(pool)
    .await?;
    found.iter().map(rows::letter).collect()
}
