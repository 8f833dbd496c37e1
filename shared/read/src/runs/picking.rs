//! Which runs a list has: their ids are found along the index that serves the list's order, their rows by id.

use std::sync::LazyLock;

use model::{RunId, TenantId};
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgConnection, Row};
use store::{Bounded, ListedRun, select, storable, storable_label};

use super::filter::{RunCursor, RunFilter, RunSort};
use crate::Result;

/// The runs that pass a filter, in order, without long inputs. The text is searched for in their errors only if the caller
/// may read these.
pub(super) async fn runs(
    connection: &mut PgConnection,
    tenant: TenantId,
    filter: &RunFilter,
    errors: bool,
) -> Result<Bounded<ListedRun>> {
    let picked = pick(connection, tenant, filter, 0, errors).await?;
    let ids: Vec<RunId> = picked.into_iter().map(|(_, run)| run).collect();
    if ids.is_empty() {
        return Ok(Bounded { items: Vec::new(), cut: false });
    }
    Ok(select::listed_runs(connection, tenant, &ids).await?)
}

/// The position of the last of `rows` rows along the index that serves the list; none if there are fewer.
pub(super) async fn horizon(
    connection: &mut PgConnection,
    tenant: TenantId,
    filter: &RunFilter,
    rows: u32,
) -> Result<Option<RunCursor>> {
    let served = RunFilter { limit: 1, ..filter.served() };
    Ok(pick(connection, tenant, &served, rows.saturating_sub(1), false).await?.pop())
}

/// One statement for each order: with and without a label, and by creation or end.
static STATEMENTS: LazyLock<[String; 6]> = LazyLock::new(|| {
    let by_creation = ("runs", "runs.created_at", "runs.id", "runs.tenant = $1");
    let by_end = ("runs", "runs.finished_at", "runs.id", "runs.tenant = $1 and runs.finished_at is not null");
    let by_label = (
        "run_labels as labelled join runs on runs.id = labelled.run",
        "labelled.created_at",
        "labelled.run",
        "labelled.tenant = $1 and labelled.label = $15",
    );
    [
        (by_creation, false),
        (by_creation, true),
        (by_end, false),
        (by_end, true),
        (by_label, false),
        (by_label, true),
    ]
    .map(|((from, at, id, first), upwards)| statement(from, at, id, first, upwards))
});

/// A filter that is null lets everything pass.
fn statement(from: &str, at: &str, id: &str, first: &str, upwards: bool) -> String {
    let (after, until, order) = if upwards { (">", "<=", "asc") } else { ("<", ">=", "desc") };
    format!(
        "select runs.id, {at} as position
           from {from}
          where {first}
            and ($2::text is null or runs.workflow = $2)
            and ($3::text is null or runs.state = $3)
            and ($4::uuid is null or runs.parent_run = $4)
            and ($5::timestamptz is null or runs.created_at >= $5)
            and ($6::timestamptz is null or runs.created_at < $6)
            and ($7::text is null or exists (
                    select from run_facts
                     where run_facts.run = runs.id
                       and position($7 in lower(concat_ws(E'\\n', runs.id, runs.workflow,
                                                          case when $14 then runs.error end,
                                                          run_facts.trigger_by, run_facts.labels))) > 0))
            and ($8::timestamptz is null or ({at}, {id}) {after} ($8, $9::uuid))
            and ($10::timestamptz is null or ({at}, {id}) {until} ($10, $11::uuid))
          order by {at} {order}, {id} {order}
          limit $12 offset $13"
    )
}

/// All of them, for tests that prepare and plan every statement.
pub(crate) fn all() -> Vec<&'static str> {
    STATEMENTS.iter().map(String::as_str).collect()
}

/// Labels are indexed by creation only, so a list of labelled runs is never ordered by their ends.
fn statement_of(filter: &RunFilter) -> &'static str {
    let order = match (filter.label.is_some(), filter.sort) {
        (false, RunSort::Newest) => 0,
        (false, RunSort::Oldest) => 1,
        (false, RunSort::LastEnded) => 2,
        (false, RunSort::FirstEnded) => 3,
        (true, RunSort::Newest | RunSort::LastEnded) => 4,
        (true, RunSort::Oldest | RunSort::FirstEnded) => 5,
    };
    &STATEMENTS[order]
}

async fn pick(
    connection: &mut PgConnection,
    tenant: TenantId,
    filter: &RunFilter,
    offset: u32,
    errors: bool,
) -> Result<Vec<RunCursor>> {
    let mut query = sqlx::query(AssertSqlSafe(statement_of(filter)))
        // Planned for each call: which index serves depends on which filters are there.
        .persistent(false)
        .bind(tenant.0)
        .bind(filter.workflow.as_deref().map(storable))
        .bind(filter.state.map(|state| state.name()))
        .bind(filter.parent.map(|parent| parent.0))
        .bind(filter.created_after)
        .bind(filter.created_before)
        .bind(filter.text.as_deref().map(|text| storable(text).to_lowercase()))
        .bind(filter.after.map(|(at, _)| at))
        .bind(filter.after.map(|(_, run)| run.0))
        .bind(filter.until.map(|(at, _)| at))
        .bind(filter.until.map(|(_, run)| run.0))
        .bind(i64::from(filter.limit))
        .bind(i64::from(offset))
        .bind(errors);
    if let Some(label) = &filter.label {
        query = query.bind(storable_label(label));
    }
    let found = query.fetch_all(connection).await?;
    let position = |row: &PgRow| Ok((row.try_get("position")?, RunId(row.try_get("id")?)));
    found.iter().map(position).collect()
}
