//! Which runs a list has: their ids are found along the index that serves the list's order, their rows by id.

use std::sync::LazyLock;

use model::{RunId, TenantId};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, Row};
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
    let picked = pick(connection, &Wanted { tenant, filter, offset: 0, errors }).await?;
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
    let filter = RunFilter { limit: 1, ..filter.served() };
    let wanted = Wanted { tenant, filter: &filter, offset: rows.saturating_sub(1), errors: false };
    Ok(pick(connection, &wanted).await?.pop())
}

/// Which rows to pick; parameters are bound from it.
struct Wanted<'a> {
    tenant: TenantId,
    filter: &'a RunFilter,
    offset: u32,
    /// Whether the text is searched for in errors, too.
    errors: bool,
}

type Bound = Query<'static, sqlx::Postgres, PgArguments>;

/// A parameter of the statements, which write it as `[name]`.
struct Parameter {
    name: &'static str,
    bind: fn(Bound, &Wanted<'_>) -> Bound,
}

macro_rules! parameters {
    ($($name:literal = |$wanted:ident| $value:expr;)*) => {
        &[$(Parameter { name: $name, bind: |query, $wanted| query.bind($value) }),*]
    };
}

/// Every parameter, named once: numbers, and the order in which they are bound, follow. A filter that is null lets
/// everything pass.
static PARAMETERS: &[Parameter] = parameters! {
    "tenant" = |wanted| wanted.tenant.0;
    "workflow" = |wanted| wanted.filter.workflow.as_deref().map(|name| storable(name).into_owned());
    "state" = |wanted| wanted.filter.state.map(|state| state.name());
    "parent" = |wanted| wanted.filter.parent.map(|parent| parent.0);
    "created_after" = |wanted| wanted.filter.created_after;
    "created_before" = |wanted| wanted.filter.created_before;
    "text" = |wanted| wanted.filter.text.as_deref().map(|text| storable(text).to_lowercase());
    "errors" = |wanted| wanted.errors;
    "after" = |wanted| wanted.filter.after.map(|(at, _)| at);
    "after_run" = |wanted| wanted.filter.after.map(|(_, run)| run.0);
    "until" = |wanted| wanted.filter.until.map(|(at, _)| at);
    "until_run" = |wanted| wanted.filter.until.map(|(_, run)| run.0);
    "limit" = |wanted| i64::from(wanted.filter.limit);
    "offset" = |wanted| i64::from(wanted.offset);
    "label" = |wanted| wanted.filter.label.as_deref().map(|label| storable_label(label).into_owned());
};

/// A statement, and the parameters that it has in the order of their numbers.
struct Statement {
    text: String,
    parameters: Vec<&'static Parameter>,
}

impl Statement {
    /// Numbers the parameters of a text.
    fn new(mut text: String) -> Self {
        let mut parameters = Vec::new();
        for parameter in PARAMETERS {
            let written = format!("[{}]", parameter.name);
            if text.contains(&written) {
                parameters.push(parameter);
                text = text.replace(&written, &format!("${}", parameters.len()));
            }
        }
        Self { text, parameters }
    }

    fn bind(&'static self, wanted: &Wanted<'_>) -> Bound {
        let query = sqlx::query(self.text.as_str());
        self.parameters.iter().fold(query, |query, parameter| (parameter.bind)(query, wanted))
    }
}

/// One statement for each order: with and without a label, and by creation or end.
static STATEMENTS: LazyLock<[Statement; 6]> = LazyLock::new(|| {
    let by_creation = ("runs", "runs.created_at", "runs.id", "runs.tenant = [tenant]");
    let by_end =
        ("runs", "runs.finished_at", "runs.id", "runs.tenant = [tenant] and runs.finished_at is not null");
    let by_label = (
        "run_labels as labelled join runs on runs.id = labelled.run",
        "labelled.created_at",
        "labelled.run",
        "labelled.tenant = [tenant] and labelled.label = [label]",
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

fn statement(from: &str, at: &str, id: &str, first: &str, upwards: bool) -> Statement {
    let (after, until, order) = if upwards { (">", "<=", "asc") } else { ("<", ">=", "desc") };
    Statement::new(format!(
        "select runs.id, {at} as position
           from {from}
          where {first}
            and ([workflow]::text is null or runs.workflow = [workflow])
            and ([state]::text is null or runs.state = [state])
            and ([parent]::uuid is null or runs.parent_run = [parent])
            and ([created_after]::timestamptz is null or runs.created_at >= [created_after])
            and ([created_before]::timestamptz is null or runs.created_at < [created_before])
            and ([text]::text is null or exists (
                    select from run_facts
                     where run_facts.run = runs.id
                       and position([text] in lower(concat_ws(E'\\n', runs.id, runs.workflow,
                                                              case when [errors] then runs.error end,
                                                              run_facts.trigger_by, run_facts.labels))) > 0))
            and ([after]::timestamptz is null or ({at}, {id}) {after} ([after], [after_run]::uuid))
            and ([until]::timestamptz is null or ({at}, {id}) {until} ([until], [until_run]::uuid))
          order by {at} {order}, {id} {order}
          limit [limit] offset [offset]"
    ))
}

/// All of them, for tests that prepare and plan every statement.
pub(crate) fn all() -> Vec<&'static str> {
    STATEMENTS.iter().map(|statement| statement.text.as_str()).collect()
}

/// Labels are indexed by creation only, so a list of labelled runs is never ordered by their ends.
fn statement_of(filter: &RunFilter) -> &'static Statement {
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

async fn pick(connection: &mut PgConnection, wanted: &Wanted<'_>) -> Result<Vec<RunCursor>> {
    // Planned for each call: which index serves depends on which filters are there.
    let query = statement_of(wanted.filter).bind(wanted).persistent(false);
    let found = query.fetch_all(connection).await?;
    let position = |row: &PgRow| Ok((row.try_get("position")?, RunId(row.try_get("id")?)));
    found.iter().map(position).collect()
}
