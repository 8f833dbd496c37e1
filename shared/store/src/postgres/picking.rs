//! Which runs a list has: found by the index that serves its order, and read afterwards.

use std::collections::BTreeMap;

use model::{RunId, TenantId};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::rows;
use crate::{NewRunRecord, Result, RunCursor, RunFilter, RunRecord, RunSort, normal};

/// The runs that pass, in order.
pub(super) async fn runs(
    connection: &mut PgConnection,
    tenant: TenantId,
    filter: &RunFilter,
) -> Result<Vec<RunRecord>> {
    let ids: Vec<Uuid> =
        pick(connection, tenant, filter, 0).await?.into_iter().map(|(_, run)| run.0).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let found = sqlx::query(include_str!("../../queries/find_runs.sql"))
        .bind(tenant.0)
        .bind(&ids)
        .fetch_all(connection)
        .await?;
    let mut records: BTreeMap<Uuid, RunRecord> = BTreeMap::new();
    for row in &found {
        let record = rows::run_record(row)?;
        records.insert(record.run.id.0, record);
    }
    Ok(ids.iter().filter_map(|id| records.remove(id)).collect())
}

/// The place of the run that is so many on, of those that an index serves.
pub(super) async fn horizon(
    connection: &mut PgConnection,
    tenant: TenantId,
    filter: &RunFilter,
    rows: u32,
) -> Result<Option<RunCursor>> {
    let served = RunFilter { limit: 1, ..filter.served() };
    Ok(pick(connection, tenant, &served, rows.saturating_sub(1)).await?.pop())
}

fn statement(filter: &RunFilter) -> &'static str {
    match (filter.sort, filter.label.is_some()) {
        (RunSort::Newest, false) => include_str!("../../queries/pick_newest_runs.sql"),
        (RunSort::Oldest, false) => include_str!("../../queries/pick_oldest_runs.sql"),
        (RunSort::LastEnded, false) => include_str!("../../queries/pick_last_ended_runs.sql"),
        (RunSort::FirstEnded, false) => include_str!("../../queries/pick_first_ended_runs.sql"),
        (RunSort::Newest | RunSort::LastEnded, true) => {
            include_str!("../../queries/pick_newest_labelled_runs.sql")
        }
        (RunSort::Oldest | RunSort::FirstEnded, true) => {
            include_str!("../../queries/pick_oldest_labelled_runs.sql")
        }
    }
}

async fn pick(
    connection: &mut PgConnection,
    tenant: TenantId,
    filter: &RunFilter,
    offset: u32,
) -> Result<Vec<RunCursor>> {
    let mut query = sqlx::query(statement(filter))
        // Planned for each call: which index serves depends on which filters are there.
        .persistent(false)
        .bind(tenant.0)
        .bind(filter.workflow.as_deref().map(normal::text))
        .bind(filter.state.map(|state| state.name()))
        .bind(filter.parent.map(|parent| parent.0))
        .bind(filter.created_after)
        .bind(filter.created_before)
        .bind(filter.text.as_deref().map(|text| normal::text(text).to_lowercase()))
        .bind(filter.after.map(|(at, _)| at))
        .bind(filter.after.map(|(_, run)| run.0))
        .bind(filter.until.map(|(at, _)| at))
        .bind(filter.until.map(|(_, run)| run.0))
        .bind(i64::from(filter.limit))
        .bind(i64::from(offset));
    if let Some(label) = &filter.label {
        query = query.bind(normal::label(label));
    }
    let found = query.fetch_all(connection).await?;
    let place = |row: &PgRow| Ok((row.try_get("place")?, RunId(row.try_get("id")?)));
    found.iter().map(place).collect()
}

/// Writes down the labels of runs that came into being.
pub(super) async fn label(connection: &mut PgConnection, born: &[&NewRunRecord]) -> Result<()> {
    let labels = |new_run: &&NewRunRecord| {
        let run = normal::run(&new_run.changes.run);
        let labels = normal::labels(&new_run.facts.labels).into_iter();
        labels.map(|label| (run.tenant.0, label, run.created_at, run.id.0)).collect::<Vec<_>>()
    };
    let mut written: Vec<_> = born.iter().flat_map(labels).collect();
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
