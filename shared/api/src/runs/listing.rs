//! Lists of runs: which of them, in which order, a page at a time.
//!
//! Every page is read along an index. If the filter goes beyond the index, a limited number of rows is examined: the page
//! may then have fewer items than asked for, or none, and still lead on to the next.

use auth::Permission::Follow;
use axum::Json;
use axum::extract::State;
use host::Problem;
use model::{Instant, RunId};
use read::{RunCursor, RunFilter, RunSort};
use serde::{Deserialize, Serialize};

use super::{state_named, views};
use crate::openapi::shapes::Time;
use crate::page::{Page, Wanted};
use crate::request::Query;
use crate::views::RunView;
use crate::{Api, Caller};

/// The orders of a list of runs.
pub const SORTS: [&str; 4] = ["-created_at", "created_at", "-finished_at", "finished_at"];

/// The maximum length of a text to search for, in characters.
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
    #[serde(default, deserialize_with = "model::instant::deserialize_option")]
    pub created_after: Option<Instant>,
    /// Only those created before.
    #[schemars(with = "Option<Time>")]
    #[serde(default, deserialize_with = "model::instant::deserialize_option")]
    pub created_before: Option<Instant>,
    /// Only those with this text in their id, workflow, error, labels or origin, ignoring case.
    #[schemars(length(min = 1, max = 200))]
    pub text: Option<String>,
    /// By creation or end, latest first with a leading `-`. A list by end leaves unfinished runs out.
    #[schemars(extend("enum" = SORTS))]
    pub sort: Option<String>,
    /// The maximum number of items.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<u32>,
    /// The `next_cursor` of an earlier page.
    pub cursor: Option<String>,
}

impl ListQuery {
    /// The filter, without the page.
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
    let filter = RunFilter { after: wanted.after, limit: wanted.limit, ..query.filter()? };
    let Page { items, next_cursor } = Page::of(api.reader(caller).runs().list(Follow, &filter).await?);
    Ok(Page { items: views(api, items).await?, next_cursor })
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<RunView>>, Problem> {
    list(&api, &caller, &query).await.map(Json)
}
