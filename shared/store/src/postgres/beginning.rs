//! How transactions begin.

use sqlx::postgres::PgPool;
use sqlx::{SqlSafeStr, Transaction};

use crate::Result;

/// Units find rows by key, however many: one plan serves them all. Left to itself, Postgres would make another for each
/// small batch, which takes longer than the batch.
pub(super) const UNIT: &str = "begin; set local plan_cache_mode = force_generic_plan";

/// A plain transaction.
pub(super) async fn begin(pool: &PgPool) -> Result<Transaction<'static, sqlx::Postgres>> {
    begin_with(pool, "begin").await
}

/// A transaction that begins by a statement of its own.
///
/// It begins in a task of its own, to the end, even if whoever wants it gives up meanwhile. The driver knows of a
/// transaction only once it has begun: one given up on the way would stay open on its connection, and take in what the
/// next one does there without a transaction.
pub(super) async fn begin_with(
    pool: &PgPool,
    statement: impl SqlSafeStr,
) -> Result<Transaction<'static, sqlx::Postgres>> {
    let connection = pool.acquire().await?;
    let beginning = Transaction::begin(connection, Some(statement.into_sql_str()));
    // It ends early only with the runtime itself.
    Ok(tokio::spawn(beginning).await.map_err(|_| sqlx::Error::PoolClosed)??)
}
