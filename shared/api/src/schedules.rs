//! Schedules: what is due when, what was missed, pausing and resuming.

use std::collections::BTreeMap;

use auth::Permission::Read;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use calendar::{Calendar, Drift, wall};
use chrono::TimeDelta;
use host::Problem;
use model::{Catchup, Instant, Overlap, Schedule, When, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{Pause, ScheduleRecord};

use crate::page::{Page, Wanted};
use crate::request::{self, Path, Query};
use crate::{Api, Caller, error, workflows};

/// So many instants to come are shown.
const SHOWN: usize = 5;

/// So many instants are worked out at most.
const MOST: usize = 1_000;

/// Which schedules to list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Only of this workflow.
    pub workflow: Option<String>,
    /// The maximum number of items.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<u32>,
    /// The `next_cursor` of an earlier page.
    pub cursor: Option<String>,
}

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
    /// In words.
    #[serde(deserialize_with = "request::brief")]
    #[schemars(length(max = 1000))]
    pub reason: Option<String>,
}

/// Which schedule to resume, and what becomes of what it missed.
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

/// Instants to come.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NextList {
    /// Each of them, in order.
    pub items: Vec<NextView>,
}

/// An instant of a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NextView {
    /// The schedule's name.
    pub schedule: String,
    /// The instant.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub at: Instant,
    /// What clocks of the schedule's time zone show then.
    pub local: String,
}

/// A schedule.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ScheduleView {
    /// The workflow's name.
    pub workflow: String,
    /// Its name within the workflow.
    pub name: String,
    /// Its pattern, if it has one.
    pub cron: Option<String>,
    /// How many seconds lie between its instants, if they are as far apart.
    pub every_seconds: Option<u32>,
    /// Its only instant, if it has one.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub at: Option<Instant>,
    /// The time zone of its pattern.
    pub timezone: String,
    /// What its runs are given.
    pub inputs: Map<String, Value>,
    /// What becomes of instants that were missed.
    #[schemars(with = "crate::openapi::shapes::Catchups")]
    pub catchup: Catchup,
    /// So many runs are made at once, at most.
    pub cap: Option<u32>,
    /// No more of its runs go on at the same time.
    pub max_active_runs: Option<u32>,
    /// What becomes of one too many.
    #[schemars(with = "Option<crate::openapi::shapes::Word>")]
    pub overlap: Option<Overlap>,
    /// Whether it makes no runs for now.
    pub paused: bool,
    /// Who paused it, if not the file.
    pub pause: Option<PauseView>,
    /// Its next instants.
    pub next: Vec<NextView>,
    /// What it would have to make up for; none if it is up to date.
    pub missed: Option<MissedView>,
    /// The last date that got its run.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub last_date: Option<Instant>,
    /// Why its last instant has no run, where it should have one.
    pub problem: Option<String>,
    /// How late its runs began.
    pub drift: DriftView,
}

/// Who paused something.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PauseView {
    /// When.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub at: Instant,
    /// Who.
    pub by: String,
    /// The reason, if one was given.
    pub reason: Option<String>,
}

impl From<Pause> for PauseView {
    fn from(Pause { at, by, reason }: Pause) -> Self {
        Self { at, by, reason }
    }
}

/// Instants that have no run yet and are past.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MissedView {
    /// How many there are, as far as they were counted.
    pub count: usize,
    /// Whether there are more than were counted.
    pub more: bool,
    /// The first one.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub first: Instant,
    /// The latest one.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub latest: Instant,
    /// The first few, and what clocks of the schedule's time zone showed then.
    #[serde(default)]
    pub dates: Vec<NextView>,
}

/// How late the runs of a schedule began, of those that were not missed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DriftView {
    /// How many runs were counted.
    pub runs: i64,
    /// The median delay in milliseconds; null if nothing was counted or it exceeds a minute.
    pub p50_ms: Option<i64>,
    /// 99 of a hundred did.
    pub p99_ms: Option<i64>,
    /// All of them did.
    pub max_ms: Option<i64>,
}

impl ScheduleView {
    fn new(record: ScheduleRecord, now: Instant) -> Self {
        let calendar = Calendar::of(&record.schedule);
        let unreadable = calendar.as_ref().err().map(ToString::to_string);
        let calendar = calendar.ok();
        let drift = Drift::from_counts(&record.drift);
        let missed = calendar.as_ref().and_then(|calendar| missed(calendar, &record, now));
        let (paused, Schedule { name, when, timezone, inputs, catchup, cap, max_active_runs, overlap, .. }) =
            (record.rests(), record.schedule);
        Self {
            next: calendar.map(|calendar| next(&name, &calendar, now, SHOWN)).unwrap_or_default(),
            cron: if let When::Cron(pattern) = &when { Some(pattern.clone()) } else { None },
            every_seconds: if let When::Every(seconds) = when { Some(seconds) } else { None },
            at: if let When::At(instant) = when { Some(instant) } else { None },
            workflow: record.workflow,
            name,
            timezone,
            inputs,
            catchup,
            cap,
            max_active_runs,
            overlap,
            paused,
            pause: record.pause.map(PauseView::from),
            missed,
            last_date: record.last_date,
            problem: record.problem.or(unreadable),
            drift: DriftView {
                runs: drift.count(),
                p50_ms: drift.percentile(50),
                p99_ms: drift.percentile(99),
                max_ms: drift.percentile(100),
            },
        }
    }
}

fn missed(calendar: &Calendar, record: &ScheduleRecord, now: Instant) -> Option<MissedView> {
    let past: Vec<Instant> =
        calendar.following(record.decided_until).take_while(|at| *at <= now).take(MOST + 1).collect();
    // The one that is due just now is one of them.
    let latest = calendar.before(now + TimeDelta::microseconds(1)).unwrap_or(now);
    let first = *past.first()?;
    let dates = next(&record.schedule.name, calendar, record.decided_until, past.len().min(SHOWN));
    Some(MissedView { count: past.len().min(MOST), more: past.len() > MOST, first, latest, dates })
}

fn next(schedule: &str, calendar: &Calendar, from: Instant, count: usize) -> Vec<NextView> {
    let view = |at: Instant| NextView {
        schedule: schedule.to_owned(),
        at,
        local: wall::shown(calendar.zone(), at).format("%Y-%m-%d %H:%M:%S %Z").to_string(),
    };
    calendar.following(from).take(count).map(view).collect()
}

/// The next instants of a definition's schedules, in order.
pub fn next_of(workflow: &Workflow, from: Instant) -> Vec<NextView> {
    let of = |schedule: &Schedule| {
        let calendar = Calendar::of(schedule).ok().filter(|_| !schedule.paused);
        calendar.map(|calendar| next(&schedule.name, &calendar, from, SHOWN)).unwrap_or_default()
    };
    let mut all: Vec<NextView> = workflow.schedules.iter().flat_map(of).collect();
    all.sort_by_key(|next| next.at);
    all.truncate(SHOWN);
    all
}

/// Schedules by workflow and name.
pub async fn list(api: &Api, caller: &Caller, query: &ListQuery) -> Result<Page<ScheduleView>, Problem> {
    let wanted = Wanted::<(String, String)>::read(query.limit, query.cursor.as_deref())?;
    let after = wanted.after.as_ref().map(|(workflow, name)| (workflow.as_str(), name.as_str()));
    let store = api.app.runtime.store();
    let rows = store.schedules(caller.tenant, query.workflow.as_deref(), after, wanted.rows()).await;
    let page =
        wanted.page(rows.map_err(error::store)?, |row| (row.workflow.clone(), row.schedule.name.clone()));
    let now = api.app.now();
    let page = page.only(|record| caller.may(Read, &record.workflow));
    Ok(page.map(|record| ScheduleView::new(record, now)))
}

/// The schedules of a workflow that is there, or one of them.
pub(crate) async fn find(
    api: &Api,
    caller: &Caller,
    workflow: &str,
    name: Option<&str>,
) -> Result<Vec<ScheduleRecord>, Problem> {
    workflows::find(api, caller, workflow).await?;
    let store = api.app.runtime.store();
    let mut found =
        store.schedules(caller.tenant, Some(workflow), None, u32::MAX).await.map_err(error::store)?;
    let Some(name) = name else { return Ok(found) };
    let hint = error::did_you_mean(name, found.iter().map(|record| record.schedule.name.as_str()));
    found.retain(|record| record.schedule.name == name);
    match found.is_empty() {
        true => Err(Problem::not_found(format!("workflow `{workflow}` has no schedule `{name}`{hint}"))),
        false => Ok(found),
    }
}

pub(crate) async fn get_list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<ListQuery>,
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
    let count = query.count.unwrap_or(SHOWN);
    if !(1..=MOST).contains(&count) {
        return Err(Problem::bad_request(format!("`count` must be between 1 and {MOST}, not {count}")));
    }
    let mut items = Vec::new();
    for record in find(&api, &caller, &workflow, query.name.as_deref()).await? {
        let calendar = Calendar::of(&record.schedule).map_err(|error| Problem::internal(&error))?;
        let from = match &query.from {
            Some(text) => wall::read(text, calendar.zone()).ok_or_else(|| no_time(text))?,
            None => api.app.now(),
        };
        items.extend(next(&record.schedule.name, &calendar, from, count));
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

/// Nothing is made until it is resumed. Doing it again changes nothing.
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

/// It goes on, with what it missed as far as it is asked for. Doing it again changes nothing.
pub(crate) async fn post_resume(
    State(api): State<Api>,
    caller: Caller,
    Path(workflow): Path<String>,
    request::Json(body): request::Json<ResumeBody>,
) -> Result<Json<ScheduleList>, Problem> {
    let found = find(&api, &caller, &workflow, body.name.as_deref()).await?;
    if let Some(resting) = found.iter().find(|record| record.schedule.paused && body.name.is_some()) {
        let name = &resting.schedule.name;
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
