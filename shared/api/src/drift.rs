//! Drift: when runs of schedules were planned, and when they started.
//!
//! A run starts on creation, or when its concurrency group has room. The time that its tasks then wait for slots is not
//! part of it. `GET /schedules` counts the drift of all runs of a schedule; this endpoint has that of the last ones.

use axum::Json;
use axum::extract::State;
use host::Problem;
use model::{Instant, RunId};
use read::StartRecord;
use serde::{Deserialize, Serialize};

use crate::request::{Path, Query};
use crate::{Api, Caller, schedules};

/// The default number of last runs.
pub const DEFAULT_RUNS: u32 = 100;

/// The maximum number of last runs.
const MAX_RUNS: u32 = 1_000;

/// Which runs to examine.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DriftQuery {
    /// Only of this schedule.
    pub name: Option<String>,
    /// The number of runs; by default 100.
    #[schemars(range(min = 1, max = 1000))]
    pub count: Option<u32>,
}

/// The drift of a workflow's schedules.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DriftList {
    /// Each of them, by name.
    pub items: Vec<LastDrift>,
}

/// How late the last runs of a schedule started, without runs of missed instants.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LastDrift {
    /// The name of the schedule.
    pub schedule: String,
    /// How many runs were counted.
    pub runs: usize,
    /// The median delay in milliseconds.
    pub p50_ms: Option<i64>,
    /// The 99th percentile of the delay in milliseconds.
    pub p99_ms: Option<i64>,
    /// The maximum delay in milliseconds.
    pub max_ms: Option<i64>,
    /// Each of the last runs, the latest date first.
    pub last: Vec<StartView>,
}

/// A run of a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StartView {
    /// The id of the run.
    #[schemars(with = "crate::openapi::shapes::Id")]
    pub run: RunId,
    /// The instant it was planned for.
    #[schemars(with = "crate::openapi::shapes::Time")]
    pub date: Instant,
    /// When it started: on creation, or when its concurrency group had room; null if it has not started.
    #[schemars(with = "Option<crate::openapi::shapes::Time>")]
    pub started_at: Option<Instant>,
    /// The delay in milliseconds.
    pub late_ms: Option<i64>,
    /// Whether it is the run of a missed instant.
    pub missed: bool,
}

impl From<StartRecord> for StartView {
    fn from(StartRecord { run, date, created_at, started_at }: StartRecord) -> Self {
        let late_ms = started_at.map(|at| (at - date).num_milliseconds());
        Self { run, date, started_at, late_ms, missed: runtime::made_up_for(date, created_at) }
    }
}

impl LastDrift {
    fn new(schedule: String, starts: Vec<StartRecord>) -> Self {
        let last: Vec<StartView> = starts.into_iter().map(StartView::from).collect();
        let on_time = last.iter().filter(|start| !start.missed);
        let mut late: Vec<i64> = on_time.filter_map(|start| start.late_ms).collect();
        late.sort_unstable();
        let share = |share: usize| late.get((late.len() * share).div_ceil(100).checked_sub(1)?).copied();
        let (runs, p50_ms, p99_ms, max_ms) = (late.len(), share(50), share(99), share(100));
        Self { schedule, runs, p50_ms, p99_ms, max_ms, last }
    }
}

pub(crate) async fn get_drift(
    State(api): State<Api>,
    caller: Caller,
    Path(workflow): Path<String>,
    Query(query): Query<DriftQuery>,
) -> Result<Json<DriftList>, Problem> {
    let count = query.count.unwrap_or(DEFAULT_RUNS);
    if !(1..=MAX_RUNS).contains(&count) {
        return Err(Problem::bad_request(format!("`count` must be between 1 and {MAX_RUNS}, not {count}")));
    }
    let (mut items, reader) = (Vec::new(), api.reader(&caller));
    for record in schedules::find(&api, &caller, &workflow, query.name.as_deref()).await? {
        let name = record.schedule.name;
        let starts = reader.schedules().last_starts(&workflow, &name, count).await?;
        items.push(LastDrift::new(name, starts));
    }
    Ok(Json(DriftList { items }))
}
