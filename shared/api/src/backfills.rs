//! Backfills: plan, start, list, pause, resume and cancel.

use std::collections::BTreeMap;

use auth::Permission::Operate;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use host::Problem;
use model::{BackfillId, Instant, RunId, RunState};
use read::BackfillRecord;
use runtime::{BackfillPlan, BackfillState, NewBackfill, Rerun, Steer};
use serde::{Deserialize, Serialize};

use crate::page::{Page, Wanted, WorkflowPageQuery};
use crate::request::{self, Path, Query};
use crate::{Api, Caller, error, mutation, runs, workflows};

/// The default number of runs in progress at once.
pub const DEFAULT_PARALLEL: u32 = 4;

/// The default weight against live runs: turns for every ten of live tasks.
pub const DEFAULT_WEIGHT: u32 = 1;

/// The maximum number of dates in the response to a dry run.
const MAX_DATES: usize = 100;

/// The backfill to start.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackfillBody {
    /// The name of the workflow to backfill.
    pub workflow: String,
    /// The first date: an instant, or a day or time in the schedule's time zone.
    pub from: String,
    /// The last date, inclusive.
    pub to: String,
    /// The maximum number of runs in progress at once.
    #[serde(default = "parallel")]
    pub max_parallel: u32,
    /// The weight against live runs while slots are scarce: turns for every ten of live tasks, from 1 (the default) to 9.
    #[serde(default = "weight")]
    pub weight: u32,
    /// Which dates get a run: those that have none (`missing`), those whose run `failed`, or `all`.
    #[serde(default)]
    #[schemars(with = "crate::openapi::shapes::Reruns")]
    pub rerun: Rerun,
    /// The version its runs use; by default the active one.
    #[serde(default)]
    pub version: Option<i32>,
    /// The schedule whose dates to run, if the workflow has several.
    #[serde(default)]
    pub schedule: Option<String>,
    /// Whether to return the plan only.
    #[serde(default)]
    pub dry_run: bool,
}

fn parallel() -> u32 {
    DEFAULT_PARALLEL
}

fn weight() -> u32 {
    DEFAULT_WEIGHT
}

/// The plan of a backfill.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanView {
    /// The name of the workflow to backfill.
    pub workflow: String,
    /// The schedule that the dates belong to.
    pub schedule: String,
    /// The first date, inclusive.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub from: Instant,
    /// The last date, inclusive.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub to: Instant,
    /// The maximum number of runs in progress at once.
    pub max_parallel: u32,
    /// The weight against live runs while slots are scarce: turns for every ten of live tasks.
    pub weight: u32,
    /// Which dates get a run.
    #[schemars(with = "crate::openapi::shapes::Reruns")]
    pub rerun: Rerun,
    /// How many dates there are.
    pub dates: usize,
    /// How many of them get a run.
    pub to_run: usize,
    /// The first of these.
    #[schemars(with = "Vec<crate::openapi::shapes::Time>")]
    pub first_dates: Vec<Instant>,
    /// How many dates have a run already.
    pub existing: usize,
    /// The first of these.
    pub first_existing: Vec<ExistingView>,
    /// The expected duration, if runs take as long as the last ones did; null if none has succeeded yet.
    pub expected_seconds: Option<i64>,
}

/// A date that has a run already.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ExistingView {
    /// The logical date of the run.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub date: Instant,
    /// The run for this date.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub run: RunId,
    /// The current state of that run.
    #[schemars(with = "crate::openapi::shapes::RunStates")]
    pub state: RunState,
}

/// A backfill and its progress.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BackfillView {
    /// The id of the backfill.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub id: BackfillId,
    /// The name of its workflow.
    pub workflow: String,
    /// The schedule that the dates belong to.
    pub schedule: String,
    /// The number of the version that its runs use; null for the active one.
    pub version: Option<i32>,
    /// The first date, inclusive.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub from: Instant,
    /// The last date, inclusive.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub to: Instant,
    /// The maximum number of runs in progress at once.
    pub max_parallel: u32,
    /// The weight against live runs while slots are scarce: turns for every ten of live tasks.
    pub weight: u32,
    /// Which dates get a run.
    #[schemars(with = "crate::openapi::shapes::Reruns")]
    pub rerun: Rerun,
    /// The state of the backfill.
    #[schemars(with = "crate::openapi::shapes::BackfillStates")]
    pub state: BackfillState,
    /// When it was created.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub created_at: Instant,
    /// The account or service token that created it.
    pub created_by: String,
    /// When it ended; null while it is in progress.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub finished_at: Option<Instant>,
    /// The account or service token that cancelled it, if one did.
    pub cancelled_by: Option<String>,
    /// Why it does not continue, if it should.
    pub problem: Option<String>,
    /// How many dates it has.
    pub dates: u32,
    /// How many of their runs have ended.
    pub ended: u32,
    /// How many dates are `waiting`, and how many have a run in which state.
    pub progress: BTreeMap<String, u32>,
}

/// A backfill that was started, or the plan of one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum StartedView {
    /// The backfill that was started.
    Backfill(BackfillView),
    /// The plan; nothing was started.
    Plan(PlanView),
}

impl PlanView {
    fn new(plan: &BackfillPlan) -> Self {
        let record = &plan.record;
        let existing = plan.existing.iter().take(MAX_DATES);
        Self {
            workflow: record.workflow.clone(),
            schedule: record.schedule.clone(),
            from: record.from,
            to: record.to,
            max_parallel: record.max_parallel,
            weight: record.weight,
            rerun: record.rerun,
            dates: plan.in_range,
            to_run: plan.dates.len(),
            first_dates: plan.dates.iter().take(MAX_DATES).map(|date| date.date).collect(),
            existing: plan.existing.len(),
            first_existing: existing
                .map(|(date, (run, state))| ExistingView { date: *date, run: *run, state: *state })
                .collect(),
            expected_seconds: plan.expected.map(|expected| expected.num_seconds()),
        }
    }
}

async fn view(api: &Api, caller: &Caller, record: BackfillRecord) -> Result<BackfillView, Problem> {
    let progress = api.reader(caller).backfills().progress(&record).await?;
    let open = |name: &str| name == "waiting" || RunState::named(name).is_some_and(|state| !state.is_final());
    let ended = progress.iter().filter(|(name, _)| !open(name)).map(|(_, count)| count).sum();
    Ok(BackfillView {
        id: record.id,
        workflow: record.workflow,
        schedule: record.schedule,
        version: record.version,
        from: record.from,
        to: record.to,
        max_parallel: record.max_parallel,
        weight: record.weight,
        rerun: record.rerun,
        state: record.state,
        created_at: record.created_at,
        created_by: record.created_by,
        finished_at: record.finished_at,
        cancelled_by: record.cancelled_by,
        problem: record.problem,
        dates: progress.values().sum(),
        ended,
        progress,
    })
}

async fn show(api: &Api, caller: &Caller, id: BackfillId) -> Result<BackfillView, Problem> {
    view(api, caller, api.reader(caller).backfills().get(id).await?).await
}

/// Lists backfills, newest first.
pub async fn list(
    api: &Api,
    caller: &Caller,
    query: &WorkflowPageQuery,
) -> Result<Page<BackfillView>, Problem> {
    let wanted = Wanted::<(Instant, BackfillId)>::read(query.limit, query.cursor.as_deref())?;
    let (workflow, reader) = (query.workflow.as_deref(), api.reader(caller));
    let Page { items, next_cursor } =
        Page::of(reader.backfills().list(workflow, wanted.after, wanted.limit).await?);
    let mut views = Vec::with_capacity(items.len());
    for record in items {
        views.push(view(api, caller, record).await?);
    }
    Ok(Page { items: views, next_cursor })
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<WorkflowPageQuery>,
) -> Result<Json<Page<BackfillView>>, Problem> {
    list(&api, &caller, &query).await.map(Json)
}

pub(crate) async fn get_one(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<BackfillId>,
) -> Result<Json<BackfillView>, Problem> {
    show(&api, &caller, id).await.map(Json)
}

/// Starts a backfill, or returns its plan. Beside the recorded response, the id repeats with the key and the body: the same
/// request finds its backfill for as long as that exists.
pub(crate) async fn post_start(
    State(api): State<Api>,
    caller: Caller,
    headers: HeaderMap,
    request::Json(body): request::Json<BackfillBody>,
) -> Result<(StatusCode, HeaderMap, Json<StartedView>), Problem> {
    caller.check(Operate, &body.workflow, &format!("workflow `{}`", body.workflow))?;
    let request = serde_json::to_string(&body).expect("a body is made of JSON");
    let id = BackfillId(runs::run_id(&headers, &caller, &format!("backfill\n{request}"))?.0);
    if mutation::key_of(&headers)?.is_some()
        && let Ok(found) = show(&api, &caller, id).await
    {
        let headers = HeaderMap::from_iter([mutation::replayed()]);
        return Ok((StatusCode::OK, headers, Json(StartedView::Backfill(found))));
    }
    let new = NewBackfill {
        id,
        tenant: caller.tenant,
        workflow: body.workflow,
        schedule: body.schedule,
        from: body.from,
        to: body.to,
        max_parallel: body.max_parallel,
        weight: body.weight,
        rerun: body.rerun,
        version: body.version,
        by: caller.name.clone(),
    };
    let plan = match api.app.runtime.backfills().plan(&new).await {
        Ok(plan) => plan,
        Err(runtime::Error::NoSuchWorkflow(name)) => {
            return Err(workflows::no_such_workflow(&api, &caller, &name).await);
        }
        Err(error) => return Err(error::runtime(error)),
    };
    if body.dry_run {
        return Ok((StatusCode::OK, HeaderMap::new(), Json(StartedView::Plan(PlanView::new(&plan)))));
    }
    api.app.runtime.backfills().start(&plan).await.map_err(error::runtime)?;
    let started = StartedView::Backfill(show(&api, &caller, id).await?);
    Ok((StatusCode::CREATED, HeaderMap::new(), Json(started)))
}

/// Pauses a backfill: it starts no more runs; those in progress continue.
pub(crate) async fn post_pause(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<BackfillId>,
) -> Result<Json<BackfillView>, Problem> {
    steer(&api, &caller, id, Steer::Pause).await
}

/// Resumes a backfill: runs that were cancelled with it are re-run.
pub(crate) async fn post_resume(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<BackfillId>,
) -> Result<Json<BackfillView>, Problem> {
    steer(&api, &caller, id, Steer::Resume).await
}

/// Cancels a backfill and its runs.
pub(crate) async fn post_cancel(
    State(api): State<Api>,
    caller: Caller,
    Path(id): Path<BackfillId>,
) -> Result<Json<BackfillView>, Problem> {
    steer(&api, &caller, id, Steer::Cancel).await
}

async fn steer(
    api: &Api,
    caller: &Caller,
    id: BackfillId,
    steer: Steer,
) -> Result<Json<BackfillView>, Problem> {
    api.reader(caller).backfills().get(id).await?;
    let done = api.app.runtime.backfills().steer(id, steer, &caller.name).await.map_err(error::runtime)?;
    let view = show(api, caller, id).await?;
    // A resumed backfill may have ended at once.
    if done == Some(true) || (steer == Steer::Resume && view.state == BackfillState::Running) {
        return Ok(Json(view));
    }
    let message = format!("backfill {id} is {}", view.state.name());
    Err(Problem::new(StatusCode::CONFLICT, "not_possible", message).with(serde_json::json!(view)))
}
