//! How transactions begin.

use sqlx::postgres::PgPool;
use sqlx::{SqlSafeStr, Transaction};

use crate::Result;

/// A transaction finds rows by key, however many: one plan serves them all. By itself, Postgres would make another plan
/// for each small batch, which takes longer than the batch.
pub(super) const UNIT: &str = "begin; set local plan_cache_mode = force_generic_plan";

/// Begins a transaction without settings of its own.
pub(super) async fn begin(pool: &PgPool) -> Result<Transaction<'static, sqlx::Postgres>> {
    begin_with(pool, "begin").await
}

/// Begins a transaction with the given statement.
///
/// It begins in a task of its own, to the end, even if the caller gives up meanwhile. The driver knows of a transaction
/// only once it has begun: one given up on the way would stay open on its connection, and include what the next caller
/// does there without a transaction.
pub(super) async fn begin_with(
    pool: &PgPool,
    statement: impl SqlSafeStr,
) -> Result<Transaction<'static, sqlx::Postgres>> {
    let connection = pool.acquire().await?;
    let beginning = Transaction::begin(connection, Some(statement.into_sql_str()));
    // It ends early only with the runtime itself.
    Ok(tokio::spawn(beginning).await.map_err(|_| sqlx::Error::PoolClosed)??)
}
