//! Lists of runs: which of them, in which order, a page at a time.
//!
//! Every page is read along an index. Where what is asked for goes beyond what the index knows, so many rows are looked at
//! for a page and no more: it may then have fewer items than asked for, or none, and leads on to the next.

use auth::Permission::Follow;
use axum::Json;
use axum::extract::State;
use host::Problem;
use model::{Instant, RunId};
use serde::{Deserialize, Serialize};
use store::{RunCursor, RunFilter, RunSort};

use super::{state_named, views};
use crate::openapi::shapes::Time;
use crate::page::{Page, Wanted};
use crate::request::Query;
use crate::views::RunView;
use crate::{Api, Caller, error};

/// The orders of a list of runs.
pub const SORTS: [&str; 4] = ["-created_at", "created_at", "-finished_at", "finished_at"];

/// So many rows are looked at for a page.
const LOOKED_AT: u32 = 1_000;

/// No text that is looked for is longer, in characters.
const MAX_TEXT: usize = 200;

/// Which runs to list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Only of this workflow.
    pub workflow: Option<String>,
    /// Only in this state.
    #[schemars(with = "Option<crate::openapi::shapes::RunStates>")]
    pub state: Option<String>,
    /// Only those that tasks of this run started.
    #[schemars(with = "Option<crate::openapi::shapes::Id>")]
    pub parent: Option<RunId>,
    /// Only those with this label: `name=value`.
    pub label: Option<String>,
    /// Only those created then or later.
    #[schemars(with = "Option<Time>")]
    pub created_after: Option<Instant>,
    /// Only those created before.
    #[schemars(with = "Option<Time>")]
    pub created_before: Option<Instant>,
    /// Only those with this text in their id, workflow, error, labels or origin, ignoring case.
    #[schemars(length(min = 1, max = 200))]
    pub text: Option<String>,
    /// By when they were created or ended, the last one first where a `-` stands before it (`-created_at`). By their
    /// ends, those that have not ended are left out.
    #[schemars(extend("enum" = SORTS))]
    pub sort: Option<String>,
    /// The maximum number of items.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<u32>,
    /// From an earlier page of the same list.
    pub cursor: Option<String>,
}

impl ListQuery {
    /// What to ask the store for, but for the page.
    fn filter(&self) -> Result<RunFilter, Problem> {
        let sort = sort_named(self.sort.as_deref().unwrap_or(SORTS[0]))?;
        check_label(self.label.as_deref())?;
        if self.label.is_some() && sort.is_by_end() {
            let message = "a `label` filter requires `sort` to be `created_at` or `-created_at`";
            return Err(Problem::bad_request(message));
        }
        let length = self.text.as_deref().map(|text| text.chars().count());
        if length.is_some_and(|length| !(1..=MAX_TEXT).contains(&length)) {
            let message = format!("`text` must have 1 to {MAX_TEXT} characters");
            return Err(Problem::bad_request(message));
        }
        Ok(RunFilter {
            workflow: self.workflow.clone(),
            state: self.state.as_deref().map(state_named).transpose()?,
            parent: self.parent,
            label: self.label.clone(),
            created_after: self.created_after,
            created_before: self.created_before,
            text: self.text.clone(),
            sort,
            ..RunFilter::default()
        })
    }

    /// Whether rows are looked at that do not pass.
    fn looks_further(&self, sort: RunSort) -> bool {
        let more = self.workflow.is_some() || self.state.is_some() || self.parent.is_some();
        let dated = self.created_after.is_some() || self.created_before.is_some();
        self.text.is_some() || (self.label.is_some() && more) || (sort.is_by_end() && (more || dated))
    }
}

pub(crate) fn check_label(label: Option<&str>) -> Result<(), Problem> {
    match label.is_none_or(|label| label.contains('=')) {
        true => Ok(()),
        false => Err(Problem::bad_request("`label` must be of the form name=value")),
    }
}

fn sort_named(name: &str) -> Result<RunSort, Problem> {
    match name {
        "-created_at" => Ok(RunSort::Newest),
        "created_at" => Ok(RunSort::Oldest),
        "-finished_at" => Ok(RunSort::LastEnded),
        "finished_at" => Ok(RunSort::FirstEnded),
        _ => {
            Err(Problem::bad_request(format!("unknown sort `{name}`; expected one of {}", SORTS.join(", "))))
        }
    }
}

/// A page of the runs that the caller may see.
pub async fn list(api: &Api, caller: &Caller, query: &ListQuery) -> Result<Page<RunView>, Problem> {
    let wanted = Wanted::<RunCursor>::read(query.limit, query.cursor.as_deref())?;
    let mut filter = RunFilter { after: wanted.after, limit: wanted.rows(), ..query.filter()? };
    let (store, sort) = (api.app.runtime.store(), filter.sort);
    if query.looks_further(sort) {
        filter.until = store.horizon(caller.tenant, &filter, LOOKED_AT).await.map_err(error::store)?;
    }
    let rows = store.runs(caller.tenant, &filter).await.map_err(error::store)?;
    let page =
        wanted.page(rows, |record| sort.place(&record.run).unwrap_or((record.run.created_at, record.run.id)));
    let page = page.or_on_from(filter.until);
    let Page { items, next_cursor } = page.only(|record| caller.may(Follow, &record.run.workflow));
    Ok(Page { items: views(api, items).await?, next_cursor })
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<RunView>>, Problem> {
    list(&api, &caller, &query).await.map(Json)
}
