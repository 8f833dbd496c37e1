//! Labels, by which lists find runs.

use sqlx::PgConnection;

use super::rows;
use crate::{NewRunRecord, Result, normal};

/// Writes the labels of new runs.
pub(super) async fn insert(connection: &mut PgConnection, new_runs: &[&NewRunRecord]) -> Result<()> {
    let labels = |new_run: &&NewRunRecord| {
        let run = normal::run(&new_run.changes.run);
        let labels = normal::labels(&new_run.facts.labels).into_iter();
        labels.map(|label| (run.tenant.0, label, run.created_at, run.id.0)).collect::<Vec<_>>()
    };
    let mut written: Vec<_> = new_runs.iter().flat_map(labels).collect();
    if written.is_empty() {
        return Ok(());
    }
    written.sort();
    sqlx::query(
        "insert into run_labels (tenant, label, created_at, run)
         select * from unnest($1::int[], $2::text[], $3::timestamptz[], $4::uuid[]) on conflict do nothing",
    )
    .bind(rows::column(&written, |row| row.0))
    .bind(rows::column(&written, |row| row.1.clone()))
    .bind(rows::column(&written, |row| row.2))
    .bind(rows::column(&written, |row| row.3))
    .execute(connection)
    .await?;
    Ok(())
}
