//! Workflows: list, get, register, validate, pause and resume.

mod listing;
mod pausing;
mod statistics;

use auth::Permission::Author;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use host::Problem;
use serde::{Deserialize, Serialize};
use store::{RunFilter, WorkflowRecord};

use crate::definitions::Definitions;
use crate::etag::{self, Tagged};
use crate::request::Path;
use crate::views::{RegisteredView, WorkflowDetail, WorkflowView};
use crate::{Api, Caller, error, runs, schedules};

pub(crate) use listing::get_list;
pub use listing::{ListQuery, SORTS, list};
pub use pausing::ResumeWorkflowBody;
pub(crate) use pausing::{post_pause, post_resume};
pub use statistics::StatisticsView;

/// So many runs stand with a workflow.
const RECENT_RUNS: usize = 10;

/// So many runs say how it fares.
const COUNTED_RUNS: u32 = 50;

/// So many names are looked through for the one that was meant.
const NAMES_FOR_HINTS: u32 = 1_000;

/// What became of definitions that were registered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Registration {
    /// Each of them, in the order of their files.
    pub registered: Vec<RegisteredView>,
}

/// Definitions that are sound.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Validation {
    /// Always true: what is not sound is refused.
    pub valid: bool,
    /// Each of them, in the order of their files.
    pub workflows: Vec<ValidView>,
}

/// A definition that is sound.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ValidView {
    /// The workflow's name.
    pub name: String,
    /// How many tasks it has.
    pub tasks: usize,
    /// Its content hash.
    pub hash: String,
}

/// One workflow, or words that say that there is none and which one may have been meant.
pub async fn find(api: &Api, caller: &Caller, name: &str) -> Result<WorkflowRecord, Problem> {
    match api.reader(caller).workflow(name).await {
        Err(read::Error::Denied(auth::Denied::NotFound(_))) => Err(no_such_workflow(api, caller, name).await),
        found => Ok(found?),
    }
}

pub(crate) async fn no_such_workflow(api: &Api, caller: &Caller, name: &str) -> Problem {
    // Callers who may start runs and read nothing get no hint.
    let known = api.reader(caller).workflows(None, NAMES_FOR_HINTS).await;
    let known = known.map(|(known, _)| known).unwrap_or_default();
    let hint = error::did_you_mean(name, known.iter().map(|record| record.name.as_str()));
    Problem::not_found(format!("there is no workflow `{name}`{hint}"))
}

pub(crate) async fn get_one(
    State(api): State<Api>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Tagged<WorkflowDetail>, Problem> {
    let record = find(&api, &caller, &name).await?;
    let filter = RunFilter { workflow: Some(name), limit: COUNTED_RUNS, ..RunFilter::default() };
    let mut runs = api.app.runtime.store().runs(caller.tenant, &filter).await.map_err(error::store)?;
    let statistics = StatisticsView::of(&runs);
    runs.truncate(RECENT_RUNS);
    let recent_runs = runs::views(&api, runs).await?;
    let hash = record.version.hash.clone();
    let detail = WorkflowDetail {
        summary: WorkflowView::from(&record),
        next: match record.pause {
            Some(_) => Vec::new(),
            None => schedules::next_of(&record.version.workflow, api.app.now()),
        },
        definition: record.version.workflow,
        source: record.version.source,
        recent_runs,
        statistics,
    };
    Ok(Tagged::new(&headers, hash, detail))
}

/// Registers all or nothing: a body with any problem in it never gets here. Sending it again changes nothing.
pub(crate) async fn post_register(
    State(api): State<Api>,
    caller: Caller,
    headers: HeaderMap,
    Definitions(definitions): Definitions,
) -> Result<(StatusCode, Json<Registration>), Problem> {
    let names: Vec<String> = definitions.iter().map(|definition| definition.workflow.name.clone()).collect();
    for name in &names {
        caller.check(Author, name, &format!("workflow `{name}`"))?;
    }
    etag::check_match(&api, &caller, &headers, &names).await?;
    api.access.check_room_for_workflows(&api, caller.tenant, &names).await?;
    let done =
        api.app.runtime.register(caller.tenant, definitions, &caller.name).await.map_err(error::runtime)?;
    let registered: Vec<RegisteredView> = names
        .into_iter()
        .zip(done)
        .map(|(name, done)| RegisteredView {
            name,
            version: done.number,
            new: done.new,
            changed: done.changed,
        })
        .collect();
    let any_new = registered.iter().any(|done| done.new);
    let status = if any_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(Registration { registered })))
}

pub(crate) async fn post_validate(_: Caller, Definitions(definitions): Definitions) -> Json<Validation> {
    let workflows = definitions.into_iter().map(|definition| ValidView {
        tasks: definition.workflow.tasks.len(),
        name: definition.workflow.name,
        hash: definition.hash,
    });
    Json(Validation { valid: true, workflows: workflows.collect() })
}
