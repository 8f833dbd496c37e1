//! Schedules: list, next instants, missed instants, pause and resume.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use host::Problem;
use model::{Catchup, Instant, Overlap, Schedule, When, Workflow};
use read::ScheduleRecord;
use runtime::{DriftSummary, DueAt, Missed, Pause, SchedulePreview};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::page::{Page, Wanted, WorkflowPageQuery};
use crate::request::{self, Path, Query};
use crate::{Api, Caller, error, workflows};

/// The default number of next instants.
const MAX_SHOWN: usize = 5;

/// The maximum number of next instants.
const MAX_INSTANTS: usize = 1_000;

/// Which instants to show.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NextQuery {
    /// Only of this schedule.
    pub name: Option<String>,
    /// Those after this instant, or after this local time in the schedule's zone; by default now.
    pub from: Option<String>,
    /// The number of instants; by default five.
    #[schemars(range(min = 1, max = 1000))]
    pub count: Option<usize>,
}

/// Which schedule to pause, and why.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PauseBody {
    /// The schedule's name; by default all schedules of the workflow.
    pub name: Option<String>,
    /// The reason, for people.
    #[serde(deserialize_with = "request::brief")]
    #[schemars(length(max = 1000))]
    pub reason: Option<String>,
}

/// Which schedule to resume, and what to do about the instants it missed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResumeBody {
    /// The schedule's name; by default all schedules of the workflow.
    pub name: Option<String>,
    /// Which missed instants get a run: `all`, `latest` or `none`; by default as the schedule's `catchup` says.
    #[schemars(with = "Option<crate::openapi::shapes::Catchups>")]
    pub missed: Option<Catchup>,
}

/// Schedules of a workflow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ScheduleList {
    /// Each of them, by name.
    pub items: Vec<ScheduleView>,
}

/// The next instants of some schedules.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NextList {
    /// Each of them, in order.
    pub items: Vec<NextView>,
}

/// An instant of a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NextView {
    /// The name of the schedule.
    pub schedule: String,
    /// The instant in UTC.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub at: Instant,
    /// The local time in the schedule's time zone.
    pub local: String,
}

/// A schedule and its present state.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ScheduleView {
    /// The name of its workflow.
    pub workflow: String,
    /// Its name within the workflow.
    pub name: String,
    /// Its pattern, if it has one.
    pub cron: Option<String>,
    /// The seconds between its instants, if they are equally spaced.
    pub every_seconds: Option<u32>,
    /// Its only instant, if it has one.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub at: Option<Instant>,
    /// The time zone of its pattern.
    pub timezone: String,
    /// The inputs of its runs.
    pub inputs: Map<String, Value>,
    /// The treatment of missed instants.
    #[schemars(with = "crate::openapi::shapes::Catchups")]
    pub catchup: Catchup,
    /// The maximum number of missed instants that get a run at once.
    pub cap: Option<u32>,
    /// The maximum number of its runs in progress at once.
    pub max_active_runs: Option<u32>,
    /// The treatment of a run beyond that limit.
    #[schemars(with = "Option<crate::openapi::shapes::Word>")]
    pub overlap: Option<Overlap>,
    /// Whether it starts no runs for now.
    pub paused: bool,
    /// Who paused it, if not the file.
    pub pause: Option<PauseView>,
    /// Its next few instants.
    pub next: Vec<NextView>,
    /// The instants it missed; null if it is up to date.
    pub missed: Option<MissedView>,
    /// The last date that got its run.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub last_date: Option<Instant>,
    /// Why its last instant has no run, if it should have one.
    pub problem: Option<String>,
    /// How late its runs started.
    pub drift: DriftView,
}

/// Who paused it, when and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PauseView {
    /// When it was paused.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub at: Instant,
    /// The account or service token that paused it.
    pub by: String,
    /// The reason, if one was given.
    pub reason: Option<String>,
}

impl From<Pause> for PauseView {
    fn from(Pause { at, by, reason }: Pause) -> Self {
        Self { at, by, reason }
    }
}

/// Instants that are past and have no run yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MissedView {
    /// How many there are, at most 1,000.
    pub count: usize,
    /// Whether there are more than were counted.
    pub more: bool,
    /// The earliest missed instant.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub first: Instant,
    /// The latest missed instant.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub latest: Instant,
    /// The earliest few of them.
    #[serde(default)]
    pub dates: Vec<NextView>,
}

/// How late the runs of a schedule started, without runs of missed instants.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DriftView {
    /// How many runs were counted.
    pub runs: i64,
    /// The median delay in milliseconds; null if nothing was counted or it exceeds a minute.
    pub p50_ms: Option<i64>,
    /// The 99th percentile of the delay in milliseconds.
    pub p99_ms: Option<i64>,
    /// The maximum delay in milliseconds.
    pub max_ms: Option<i64>,
}

impl ScheduleView {
    fn new(record: ScheduleRecord, now: Instant) -> Self {
        let preview = SchedulePreview::new(&record.schedule);
        let unreadable = preview.as_ref().err().cloned();
        let preview = preview.ok();
        let missed =
            preview.as_ref().and_then(|preview| preview.missed(record.decided_until, now, MAX_SHOWN));
        let (paused, Schedule { name, when, timezone, inputs, catchup, cap, max_active_runs, overlap, .. }) =
            (record.rests(), record.schedule);
        Self {
            next: preview.map(|preview| views(&name, preview.next(now, MAX_SHOWN))).unwrap_or_default(),
            cron: if let When::Cron(pattern) = &when { Some(pattern.clone()) } else { None },
            every_seconds: if let When::Every(seconds) = when { Some(seconds) } else { None },
            at: if let When::At(instant) = when { Some(instant) } else { None },
            workflow: record.workflow,
            missed: missed.map(|missed| MissedView::new(&name, missed)),
            name,
            timezone,
            inputs,
            catchup,
            cap,
            max_active_runs,
            overlap,
            paused,
            pause: record.pause.map(PauseView::from),
            last_date: record.last_date,
            problem: record.problem.or(unreadable),
            drift: DriftSummary::of(&record.drift).into(),
        }
    }
}

impl MissedView {
    fn new(schedule: &str, missed: Missed) -> Self {
        let Missed { count, more, first, latest, dates } = missed;
        Self { count, more, first, latest, dates: views(schedule, dates) }
    }
}

impl From<DriftSummary> for DriftView {
    fn from(DriftSummary { runs, p50_ms, p99_ms, max_ms }: DriftSummary) -> Self {
        Self { runs, p50_ms, p99_ms, max_ms }
    }
}

fn views(schedule: &str, instants: Vec<DueAt>) -> Vec<NextView> {
    let view = |DueAt { at, local }| NextView { schedule: schedule.to_owned(), at, local };
    instants.into_iter().map(view).collect()
}

/// The next instants of a definition's schedules, in order.
pub fn next_of(workflow: &Workflow, from: Instant) -> Vec<NextView> {
    let of = |schedule: &Schedule| {
        let preview = SchedulePreview::new(schedule).ok().filter(|_| !schedule.paused);
        preview.map(|preview| views(&schedule.name, preview.next(from, MAX_SHOWN))).unwrap_or_default()
    };
    let mut all: Vec<NextView> = workflow.schedules.iter().flat_map(of).collect();
    all.sort_by_key(|next| next.at);
    all.truncate(MAX_SHOWN);
    all
}

/// Schedules by workflow and name.
pub async fn list(
    api: &Api,
    caller: &Caller,
    query: &WorkflowPageQuery,
) -> Result<Page<ScheduleView>, Problem> {
    let wanted = Wanted::<(String, String)>::read(query.limit, query.cursor.as_deref())?;
    let after = wanted.after.as_ref().map(|(workflow, name)| (workflow.as_str(), name.as_str()));
    let schedules =
        api.reader(caller).schedules().list(query.workflow.as_deref(), after, wanted.limit).await?;
    let now = api.app.now();
    Ok(Page::of(schedules).map(|record| ScheduleView::new(record, now)))
}

/// The schedules of a workflow, or the one with that name.
pub(crate) async fn find(
    api: &Api,
    caller: &Caller,
    workflow: &str,
    name: Option<&str>,
) -> Result<Vec<ScheduleRecord>, Problem> {
    workflows::find(api, caller, workflow).await?;
    let mut found = api.reader(caller).schedules().list(Some(workflow), None, u32::MAX).await?.items;
    let Some(name) = name else { return Ok(found) };
    let Some(index) = found.iter().position(|record| record.schedule.name == name) else {
        let hint = error::did_you_mean(name, found.iter().map(|record| record.schedule.name.as_str()));
        return Err(Problem::not_found(format!("workflow `{workflow}` has no schedule `{name}`{hint}")));
    };
    Ok(vec![found.swap_remove(index)])
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<WorkflowPageQuery>,
) -> Result<Json<Page<ScheduleView>>, Problem> {
    list(&api, &caller, &query).await.map(Json)
}

pub(crate) async fn get_of_workflow(
    State(api): State<Api>,
    caller: Caller,
    Path(workflow): Path<String>,
) -> Result<Json<ScheduleList>, Problem> {
    let (found, now) = (find(&api, &caller, &workflow, None).await?, api.app.now());
    Ok(Json(ScheduleList { items: found.into_iter().map(|record| ScheduleView::new(record, now)).collect() }))
}

pub(crate) async fn get_next(
    State(api): State<Api>,
    caller: Caller,
    Path(workflow): Path<String>,
    Query(query): Query<NextQuery>,
) -> Result<Json<NextList>, Problem> {
    let count = query.count.unwrap_or(MAX_SHOWN);
    if !(1..=MAX_INSTANTS).contains(&count) {
        return Err(Problem::bad_request(format!(
            "`count` must be between 1 and {MAX_INSTANTS}, not {count}"
        )));
    }
    let mut items = Vec::new();
    for record in find(&api, &caller, &workflow, query.name.as_deref()).await? {
        let preview = SchedulePreview::new(&record.schedule).map_err(|error| Problem::internal(&error))?;
        let from = match &query.from {
            Some(text) => preview.parse(text).ok_or_else(|| no_time(text))?,
            None => api.app.now(),
        };
        items.extend(views(&record.schedule.name, preview.next(from, count)));
    }
    items.sort_by(|one, other| (one.at, &one.schedule).cmp(&(other.at, &other.schedule)));
    items.truncate(count);
    Ok(Json(NextList { items }))
}

fn no_time(text: &str) -> Problem {
    Problem::bad_request(format!(
        "invalid `from` `{text}`; use a form such as `2026-01-31` or `2026-01-31T18:00:00Z`"
    ))
}

/// Pauses schedules: they start no runs until they are resumed. Doing it again changes nothing.
pub(crate) async fn post_pause(
    State(api): State<Api>,
    caller: Caller,
    Path(workflow): Path<String>,
    request::Json(body): request::Json<PauseBody>,
) -> Result<Json<ScheduleList>, Problem> {
    let now = api.app.now();
    let mut done = BTreeMap::new();
    for record in find(&api, &caller, &workflow, body.name.as_deref()).await? {
        let name = record.schedule.name;
        let pause = Pause { at: now, by: caller.name.clone(), reason: body.reason.clone() };
        let paused = api.app.runtime.schedules().pause(caller.tenant, &workflow, &name, pause).await;
        done.extend(paused.map_err(error::runtime)?.map(|record| (name, ScheduleView::new(record, now))));
    }
    Ok(Json(ScheduleList { items: done.into_values().collect() }))
}

/// Resumes schedules, with runs for missed instants if they are asked for. Doing it again changes nothing.
pub(crate) async fn post_resume(
    State(api): State<Api>,
    caller: Caller,
    Path(workflow): Path<String>,
    request::Json(body): request::Json<ResumeBody>,
) -> Result<Json<ScheduleList>, Problem> {
    let found = find(&api, &caller, &workflow, body.name.as_deref()).await?;
    if let Some(paused) = found.iter().find(|record| record.schedule.paused && body.name.is_some()) {
        let name = &paused.schedule.name;
        let message = format!("the definition of `{workflow}` pauses `{name}`; change it there");
        return Err(Problem::new(StatusCode::CONFLICT, "defined_by_the_workflow", message));
    }
    let mut items = Vec::new();
    for record in found {
        let name = &record.schedule.name;
        let resumed = api.app.runtime.schedules().resume(caller.tenant, &workflow, name, body.missed).await;
        items.extend(resumed.map_err(error::runtime)?.map(|record| ScheduleView::new(record, api.app.now())));
    }
    Ok(Json(ScheduleList { items }))
}
