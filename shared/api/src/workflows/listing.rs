//! Lists of workflows: which of them, in which order, a page at a time.

use axum::Json;
use axum::extract::State;
use host::Problem;
use read::{WorkflowCursor, WorkflowFilter, WorkflowSort};
use serde::{Deserialize, Serialize};

use crate::page::{Page, Wanted};
use crate::request::Query;
use crate::views::WorkflowView;
use crate::{Api, Caller};

/// The orders of a list of workflows.
pub const SORTS: [&str; 4] = ["name", "-name", "updated_at", "-updated_at"];

/// The maximum length of a text to search for, in characters.
const MAX_TEXT: usize = 200;

/// Which workflows to list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Only those with this tag.
    pub tag: Option<String>,
    /// Only those with this text in their name, description or tags, ignoring case.
    #[schemars(length(min = 1, max = 200))]
    pub text: Option<String>,
    /// By name or by last change; descending with a leading `-`.
    #[schemars(extend("enum" = SORTS))]
    pub sort: Option<String>,
    /// The maximum number of items.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<u32>,
    /// The `next_cursor` of an earlier page.
    pub cursor: Option<String>,
}

impl ListQuery {
    fn sort(&self) -> Result<WorkflowSort, Problem> {
        match self.sort.as_deref().unwrap_or(SORTS[0]) {
            "name" => Ok(WorkflowSort::Name),
            "-name" => Ok(WorkflowSort::NameDown),
            "-updated_at" => Ok(WorkflowSort::LastChanged),
            "updated_at" => Ok(WorkflowSort::FirstChanged),
            other => {
                let known = SORTS.join(", ");
                Err(Problem::bad_request(format!("unknown sort `{other}`; expected one of {known}")))
            }
        }
    }

    fn check_text(&self) -> Result<(), Problem> {
        let length = self.text.as_deref().map(|text| text.chars().count());
        match length.is_none_or(|length| (1..=MAX_TEXT).contains(&length)) {
            true => Ok(()),
            false => Err(Problem::bad_request(format!("`text` must have 1 to {MAX_TEXT} characters"))),
        }
    }
}

/// A page of the workflows that the caller may see. A limited number is examined, so a page may have fewer items than asked
/// for and still lead on to the next.
pub async fn list(api: &Api, caller: &Caller, query: &ListQuery) -> Result<Page<WorkflowView>, Problem> {
    let wanted = Wanted::<WorkflowCursor>::read(query.limit, query.cursor.as_deref())?;
    query.check_text()?;
    let filter = WorkflowFilter {
        tag: query.tag.clone(),
        text: query.text.clone(),
        sort: query.sort()?,
        after: wanted.after,
        limit: wanted.limit,
    };
    let workflows = api.reader(caller).workflows().list(&filter).await?;
    Ok(Page::of(workflows).map(|record| WorkflowView::from(&record)))
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<WorkflowView>>, Problem> {
    list(&api, &caller, &query).await.map(Json)
}
