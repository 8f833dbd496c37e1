//! Workflows: list, get, register, validate, pause and resume.

mod listing;
mod pausing;
mod statistics;

use auth::Permission::{Author, Read};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use host::Problem;
use read::{RunFilter, WorkflowFilter, WorkflowRecord};
use serde::{Deserialize, Serialize};

use crate::access::check_reach;
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

/// The number of recent runs in the response for a workflow.
const RECENT_RUNS: usize = 10;

/// The number of runs that statistics are computed from.
const COUNTED_RUNS: u32 = 50;

/// The number of names that are compared with an unknown one.
const MAX_HINTS: u32 = 1_000;

/// The result of a registration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Registration {
    /// Each of them, in the order of their files.
    pub registered: Vec<RegisteredView>,
}

/// The valid definitions of a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Validation {
    /// Always true; invalid definitions are refused.
    pub valid: bool,
    /// Each of them, in the order of their files.
    pub workflows: Vec<ValidView>,
}

/// A definition that is valid.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ValidView {
    /// The name of the workflow.
    pub name: String,
    /// How many tasks it has.
    pub tasks: usize,
    /// The hash of its content.
    pub hash: String,
}

/// One workflow, or an error with the most similar name.
pub async fn find(api: &Api, caller: &Caller, name: &str) -> Result<WorkflowRecord, Problem> {
    match api.reader(caller).workflows().get(name).await {
        Err(read::Error::Denied(auth::Denied::NotFound(_))) => Err(no_such_workflow(api, caller, name).await),
        found => Ok(found?),
    }
}

pub(crate) async fn no_such_workflow(api: &Api, caller: &Caller, name: &str) -> Problem {
    // Callers who may start runs and read nothing get no hint.
    let filter = WorkflowFilter { limit: MAX_HINTS, ..WorkflowFilter::default() };
    let known =
        api.reader(caller).workflows().list(&filter).await.map(|known| known.items).unwrap_or_default();
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
    let mut runs = api.reader(&caller).runs().list(Read, &filter).await?.items;
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

/// Registers all definitions or none. Sending them again changes nothing.
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
    check_reach(&caller, definitions.iter().map(|definition| &definition.workflow))?;
    api.access.check_timeouts(definitions.iter().map(|definition| &definition.workflow))?;
    etag::check_match(&api, &caller, &headers, &names).await?;
    api.access.check_room_for_workflows(&api, caller.tenant, &names).await?;
    let done = api
        .app
        .runtime
        .definitions()
        .register(caller.tenant, definitions, &caller.name)
        .await
        .map_err(error::runtime)?;
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
