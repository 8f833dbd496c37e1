//! Versions of a workflow: list, get, compare, activate; and archiving a workflow.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use host::Problem;
use model::{Instant, Workflow};
use read::{VersionRecord, WorkflowRecord};
use runtime::Activated;
use serde::{Deserialize, Serialize};

use crate::access::check_reach;
use crate::compare::{Difference, compare};
use crate::etag::Tagged;
use crate::page::{Page, PageQuery, Wanted};
use crate::request::{Path, Query};
use crate::workflows;
use crate::{Api, Caller, error};

/// A version in a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VersionView {
    /// Its number within the workflow, from 1.
    pub number: i32,
    /// The hash of its content.
    pub hash: String,
    /// When it was registered.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub created_at: Instant,
    /// The account or service token that registered it.
    pub created_by: String,
    /// Whether new runs use it.
    pub active: bool,
    /// How many tasks it has.
    pub tasks: usize,
}

impl VersionView {
    /// A version of that workflow.
    pub fn new(version: &VersionRecord, of: &WorkflowRecord) -> Self {
        Self {
            number: version.number,
            hash: version.hash.clone(),
            created_at: version.created_at,
            created_by: version.created_by.clone(),
            active: version.id == of.version.id && !of.archived,
            tasks: version.workflow.tasks.len(),
        }
    }
}

/// A version in full.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VersionDetail {
    /// The fields of a list item.
    #[serde(flatten)]
    pub summary: VersionView,
    /// The definition, every reference resolved.
    #[schemars(with = "crate::openapi::shapes::Definition")]
    pub definition: Workflow,
    /// The text it was written as.
    pub source: String,
}

/// The differences between two versions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Comparison {
    /// The name of the workflow.
    pub workflow: String,
    /// The version that is compared with.
    pub before: i32,
    /// The version that is compared.
    pub after: i32,
    /// The changes that lead from one to the other.
    #[serde(flatten)]
    pub difference: Difference,
}

/// A workflow after a version was activated or it was archived.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkflowState {
    /// The name of the workflow.
    pub name: String,
    /// Its active version's number.
    pub version: i32,
    /// Whether it is archived.
    pub archived: bool,
    /// Whether the request changed that.
    pub changed: bool,
}

/// Versions of a workflow, newest first.
pub async fn list(
    api: &Api,
    caller: &Caller,
    name: &str,
    query: &PageQuery,
) -> Result<Page<VersionView>, Problem> {
    let wanted = Wanted::<i32>::read(query.limit, query.cursor.as_deref())?;
    let workflow = workflows::find(api, caller, name).await?;
    let versions = api.reader(caller).workflows().versions(name, wanted.after, wanted.limit).await?;
    Ok(Page::of(versions).map(|version| VersionView::new(&version, &workflow)))
}

/// One version of a workflow, or an error that names the existing ones.
pub async fn find(
    api: &Api,
    caller: &Caller,
    of: &WorkflowRecord,
    number: i32,
) -> Result<VersionRecord, Problem> {
    match api.reader(caller).workflows().version(&of.name, number).await? {
        Some(version) => Ok(version),
        None => Err(no_such_version(api, caller, of, number).await),
    }
}

/// The differences between two versions of a workflow.
pub async fn difference(
    api: &Api,
    caller: &Caller,
    name: &str,
    before: i32,
    after: i32,
) -> Result<Comparison, Problem> {
    let workflow = workflows::find(api, caller, name).await?;
    let (one, other) =
        (find(api, caller, &workflow, before).await?, find(api, caller, &workflow, after).await?);
    let difference = compare(&one.workflow, &other.workflow);
    Ok(Comparison { workflow: workflow.name, before, after, difference })
}

async fn no_such_version(api: &Api, caller: &Caller, of: &WorkflowRecord, number: i32) -> Problem {
    let newest = match api.reader(caller).workflows().versions(&of.name, None, 1).await {
        Ok(newest) => newest.items.first().map_or(of.version.number, |version| version.number),
        Err(error) => return error.into(),
    };
    let known = if newest == 1 { "only version 1".into() } else { format!("versions 1 to {newest}") };
    Problem::not_found(format!("workflow `{}` has no version {number}; it has {known}", of.name))
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Path(name): Path<String>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<VersionView>>, Problem> {
    list(&api, &caller, &name, &query).await.map(Json)
}

pub(crate) async fn get_one(
    State(api): State<Api>,
    caller: Caller,
    Path((name, number)): Path<(String, i32)>,
    headers: HeaderMap,
) -> Result<Tagged<VersionDetail>, Problem> {
    let workflow = workflows::find(&api, &caller, &name).await?;
    let version = find(&api, &caller, &workflow, number).await?;
    let summary = VersionView::new(&version, &workflow);
    let detail = VersionDetail { summary, definition: version.workflow, source: version.source };
    Ok(Tagged::new(&headers, version.hash, detail))
}

pub(crate) async fn get_comparison(
    State(api): State<Api>,
    caller: Caller,
    Path((name, before, after)): Path<(String, i32, i32)>,
) -> Result<Json<Comparison>, Problem> {
    difference(&api, &caller, &name, before, after).await.map(Json)
}

/// Makes a version the one that new runs use; existing runs keep theirs. Doing it again changes nothing.
pub(crate) async fn post_activate(
    State(api): State<Api>,
    caller: Caller,
    Path((name, number)): Path<(String, i32)>,
) -> Result<Json<WorkflowState>, Problem> {
    let workflow = workflows::find(&api, &caller, &name).await?;
    check_reach(&caller, [&find(&api, &caller, &workflow, number).await?.workflow])?;
    match api
        .app
        .runtime
        .definitions()
        .activate(caller.tenant, &name, number)
        .await
        .map_err(error::runtime)?
    {
        Activated::Unknown => Err(no_such_version(&api, &caller, &workflow, number).await),
        activated => {
            let changed = activated == Activated::Changed;
            Ok(Json(WorkflowState { name, version: number, archived: false, changed }))
        }
    }
}

/// Archives a workflow: it starts no more runs. Existing runs continue and its history stays. Doing it again changes
/// nothing.
pub(crate) async fn post_archive(
    State(api): State<Api>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<WorkflowState>, Problem> {
    let version = workflows::find(&api, &caller, &name).await?.version.number;
    let changed =
        api.app.runtime.definitions().archive(caller.tenant, &name).await.map_err(error::runtime)?;
    Ok(Json(WorkflowState { name, version, archived: true, changed }))
}
