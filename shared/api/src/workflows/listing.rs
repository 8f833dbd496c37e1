//! Lists of workflows: which of them, in which order, a page at a time.

use auth::Permission::Read;
use axum::Json;
use axum::extract::State;
use host::Problem;
use serde::{Deserialize, Serialize};
use store::{WorkflowCursor, WorkflowRecord, WorkflowSort};

use crate::page::{Page, Wanted};
use crate::request::Query;
use crate::views::WorkflowView;
use crate::{Api, Caller, error};

/// The orders of a list of workflows.
pub const SORTS: [&str; 4] = ["name", "-name", "updated_at", "-updated_at"];

/// So many workflows are read at once where not all of them pass.
const AT_ONCE: u32 = 100;

/// So many are looked at for a page.
const LOOKED_AT: usize = 1_000;

/// No text that is looked for is longer, in characters.
const MAX_TEXT: usize = 200;

/// Which workflows to list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Only those with this tag.
    pub tag: Option<String>,
    /// Only those with this text, in capitals or not, in their name, description or tags.
    #[schemars(length(min = 1, max = 200))]
    pub text: Option<String>,
    /// By name or by when they last changed; from the end where a `-` stands before it.
    #[schemars(extend("enum" = SORTS))]
    pub sort: Option<String>,
    /// The maximum number of items.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<u32>,
    /// From an earlier page of the same list.
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

    fn passes(&self, record: &WorkflowRecord) -> bool {
        let workflow = &record.version.workflow;
        let tagged = self.tag.as_ref().is_none_or(|tag| workflow.tags.contains(tag));
        let said = |text: &String| {
            let text = text.to_lowercase();
            let own = [&record.name].into_iter().chain(&workflow.description).chain(&workflow.tags);
            own.into_iter().any(|own| own.to_lowercase().contains(&text))
        };
        tagged && self.text.as_ref().is_none_or(said)
    }
}

fn place(record: &WorkflowRecord) -> WorkflowCursor {
    (record.updated_at, record.name.clone())
}

/// A page of the workflows that the caller may see. A bounded number is looked at for it: where few of them pass, it may
/// have fewer items than asked for and leads on to the next.
pub async fn list(api: &Api, caller: &Caller, query: &ListQuery) -> Result<Page<WorkflowView>, Problem> {
    let wanted = Wanted::<WorkflowCursor>::read(query.limit, query.cursor.as_deref())?;
    let (sort, store) = (query.sort()?, api.app.runtime.store());
    query.check_text()?;
    let passes = |record: &WorkflowRecord| caller.may(Read, &record.name) && query.passes(record);
    let at_once = if query.tag.is_some() || query.text.is_some() { AT_ONCE } else { wanted.rows() };
    let (mut after, mut found, mut looked_at) = (wanted.after.clone(), Vec::new(), 0);
    let left_off = loop {
        let rows = store.sorted_workflows(caller.tenant, sort, after.as_ref(), at_once).await;
        let rows = rows.map_err(error::store)?;
        let all = rows.len() < at_once as usize;
        looked_at += rows.len();
        after = rows.last().map(place).or(after);
        found.extend(rows.into_iter().filter(passes));
        match (all, found.len() > wanted.limit as usize || looked_at >= LOOKED_AT) {
            (true, _) => break None,
            (false, true) => break after,
            (false, false) => {}
        }
    };
    Ok(wanted.page(found, place).or_on_from(left_off).map(|record| WorkflowView::from(&record)))
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<WorkflowView>>, Problem> {
    list(&api, &caller, &query).await.map(Json)
}
