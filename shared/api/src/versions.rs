//! Versions of a workflow: list, get, compare, roll back; and taking a workflow out of use.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use host::Problem;
use model::{Instant, Workflow};
use read::{VersionRecord, WorkflowRecord};
use serde::{Deserialize, Serialize};
use store::Activated;

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
    /// Its content hash.
    pub hash: String,
    /// When it was registered.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub created_at: Instant,
    /// Who registered it.
    pub created_by: String,
    /// Whether new runs take it.
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
    /// What a list says of it.
    #[serde(flatten)]
    pub summary: VersionView,
    /// The definition, every reference resolved.
    #[schemars(with = "crate::openapi::shapes::Definition")]
    pub definition: Workflow,
    /// The text it was written as.
    pub source: String,
}

/// What differs between two versions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Comparison {
    /// The workflow's name.
    pub workflow: String,
    /// The version that is compared with.
    pub before: i32,
    /// The version that is compared.
    pub after: i32,
    /// What must be done to the one to make it the other.
    #[serde(flatten)]
    pub difference: Difference,
}

/// A workflow after it was paused or resumed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// Its active version's number.
    pub version: i32,
    /// Whether it is out of use.
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
    let rows = api.reader(caller).versions(name, wanted.after, wanted.rows()).await?;
    Ok(wanted.page(rows, |row| row.number).map(|row| VersionView::new(&row, &workflow)))
}

/// One version of a workflow that exists, or words that say which ones there are.
pub async fn find(
    api: &Api,
    caller: &Caller,
    of: &WorkflowRecord,
    number: i32,
) -> Result<VersionRecord, Problem> {
    match api.reader(caller).version(&of.name, number).await? {
        Some(version) => Ok(version),
        None => Err(no_such_version(api, caller, of, number).await),
    }
}

/// What differs between two versions of a workflow.
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
    let newest = match api.reader(caller).versions(&of.name, None, 1).await {
        Ok(newest) => newest.first().map_or(of.version.number, |version| version.number),
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

/// Makes a version the one that new runs take; runs under way keep theirs. Doing it again changes nothing.
pub(crate) async fn post_activate(
    State(api): State<Api>,
    caller: Caller,
    Path((name, number)): Path<(String, i32)>,
) -> Result<Json<Standing>, Problem> {
    let workflow = workflows::find(&api, &caller, &name).await?;
    let store = api.app.runtime.store();
    match store.activate(caller.tenant, &name, number, api.app.now()).await.map_err(error::store)? {
        Activated::Unknown => Err(no_such_version(&api, &caller, &workflow, number).await),
        activated => {
            let changed = activated == Activated::Changed;
            api.app.runtime.wake_sweep(api.app.now()).await;
            Ok(Json(Standing { name, version: number, archived: false, changed }))
        }
    }
}

/// Takes a workflow out of use; runs under way go on and its history stays. Doing it again changes nothing.
pub(crate) async fn post_archive(
    State(api): State<Api>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Standing>, Problem> {
    let version = workflows::find(&api, &caller, &name).await?.version.number;
    let store = api.app.runtime.store();
    let changed = store.archive(caller.tenant, &name, api.app.now()).await.map_err(error::store)?;
    Ok(Json(Standing { name, version, archived: true, changed }))
}
